package compare

import (
	"cmp"
	"fmt"
	"slices"

	"tutti/experiments/rows"
	"tutti/model"
	"tutti/model/units"
)

// Series is lines that differ in size and time only or, where a library chose the way
// by size, in the way, too.
type Series struct {
	// Like has what the rows of the series share.
	Like rows.Row
	// Chosen says that lines may differ in algorithm, protocol and kernel, of which
	// Like has none.
	Chosen bool
	Lines  []Line
}

// Name says which series it is: "ring over ll128 on 4 ranks", of AllReduce unless
// it says "allgather by ring", of float unless it says "in half"; or "nccl on 4 ranks".
func (s Series) Name() string {
	name := Way(s.Like)
	if s.Chosen {
		name = s.Like.Source
	}
	name = fmt.Sprintf("%s on %d ranks", name, s.Like.Ranks)
	if s.Like.Datatype != model.Float32 {
		name += fmt.Sprintf(" in %v", s.Like.Datatype)
	}
	if s.Like.Collective != model.AllReduce {
		name = fmt.Sprintf("%v by %s", s.Like.Collective, name)
	}
	return name
}

// Way names the way that a row's call went: a kernel of tutti's, or "ring over ll".
func Way(r rows.Row) string {
	return cmp.Or(r.Kernel, fmt.Sprintf("%v over %v", r.Algorithm, r.Protocol))
}

// run returns what the rows of one run share in which each size has one way.
func run(r rows.Row) rows.Row {
	r = r.Series()
	r.Algorithm, r.Protocol, r.Kernel, r.InPlace = 0, 0, "", false
	return r
}

// way returns what rows share that went one way.
func way(r rows.Row) rows.Row {
	r = r.Series()
	r.Source, r.InPlace = "", false
	return r
}

// chosen tells of each run whether ways were chosen by size: there are several, but one
// for each call.
func (c *Comparison) chosen() map[rows.Row]bool {
	type call struct {
		run     rows.Row
		bytes   units.Bytes
		inPlace bool
	}
	calls, ways := map[call]int{}, map[rows.Row]map[rows.Row]bool{}
	for _, l := range c.Lines {
		r := run(l.Row)
		if ways[r] == nil {
			ways[r] = map[rows.Row]bool{}
		}
		calls[call{r, l.Bytes, l.InPlace}]++
		ways[r][way(l.Row)] = true
	}
	chosen := map[rows.Row]bool{}
	for r, list := range ways {
		chosen[r] = len(list) > 1
	}
	for c, count := range calls {
		chosen[c.run] = chosen[c.run] && count == 1
	}
	return chosen
}

// Series groups the lines, each group by rising size.
func (c *Comparison) Series() (list []Series) {
	chosen := c.chosen()
	for _, l := range c.Lines {
		like, by := way(l.Row), run(l.Row)
		if chosen[by] {
			like = by
		}
		i := slices.IndexFunc(list, func(s Series) bool { return s.Like == like && s.Chosen == chosen[by] })
		if i < 0 {
			i = len(list)
			list = append(list, Series{Like: like, Chosen: chosen[by]})
		}
		list[i].Lines = append(list[i].Lines, l)
	}
	for _, s := range list {
		slices.SortStableFunc(s.Lines, func(a, b Line) int { return cmp.Compare(a.Bytes, b.Bytes) })
	}
	return list
}
