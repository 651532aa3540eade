package sweep

import (
	"cmp"
	"fmt"
	"slices"

	"tutti/experiments/rows"
)

// File is a list of rows and where they were read.
type File struct {
	Name string
	Rows []rows.Row
}

// Merged is what several files have together.
type Merged struct {
	// Rows are in the order of the study or, where they have no numbers, of the
	// files.
	Rows []rows.Row
	// Missing are the numbers of the study's cases that no file has.
	Missing []int
	// Of is how many cases the study has; 0 where rows have no numbers.
	Of int
	// Duplicates says how many rows stood in more than one place, all alike.
	Duplicates int
}

// Merge brings the rows of several files together. It fails for files without
// rows, for rows of different studies, and where two rows contradict each other:
// one case that is another call, or took another time.
func Merge(files []File) (Merged, error) {
	type place struct {
		file string
		row  rows.Row
	}
	var m Merged
	var first *place
	seen := map[rows.Row]place{} // by call or, if they are numbered, by case
	for _, f := range files {
		if len(f.Rows) == 0 {
			return m, fmt.Errorf("%s has no rows", f.Name)
		}
		for _, r := range f.Rows {
			here := place{f.Name, r}
			if first == nil {
				first = &here
			}
			if a, b := first.row.Case, r.Case; a.Study != b.Study || a.Of != b.Of {
				return m, fmt.Errorf("%s is of %s, and %s of %s: want parts of one", first.file, study(a), f.Name, study(b))
			}
			key := r.Call()
			if r.Case.Of > 0 {
				key = rows.Row{Case: r.Case}
			}
			other, twice := seen[key]
			switch {
			case !twice:
				seen[key] = here
				m.Rows = append(m.Rows, r)
			case other.row.Call() != r.Call():
				return m, fmt.Errorf("case %d is %s in %s, and %s in %s", r.Case.Number, call(other.row), other.file, call(r), f.Name)
			case other.row.Time != r.Time:
				return m, fmt.Errorf("%s takes %v in %s, and %v in %s", call(r), other.row.Time, other.file, r.Time, f.Name)
			default:
				m.Duplicates++
			}
		}
	}
	slices.SortStableFunc(m.Rows, func(a, b rows.Row) int { return cmp.Compare(a.Case.Number, b.Case.Number) })
	if first == nil {
		return m, nil
	}
	m.Of = first.row.Case.Of
	for n, i := 1, 0; n <= m.Of; n++ {
		if i < len(m.Rows) && m.Rows[i].Case.Number == n {
			i++
		} else {
			m.Missing = append(m.Missing, n)
		}
	}
	return m, nil
}

// study names a study.
func study(c rows.Case) string {
	if c.Of == 0 {
		return "no study's part"
	}
	return fmt.Sprintf("study %s with %d cases", c.Study, c.Of)
}

// call names a row.
func call(r rows.Row) string {
	return fmt.Sprintf("%v %v over %v on %d ranks of %s, %v", r.Collective, r.Algorithm, r.Protocol, r.Ranks, r.Machine, r.Bytes)
}
