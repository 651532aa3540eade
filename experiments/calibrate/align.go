package calibrate

import (
	"fmt"
	"io"
	"slices"

	"tutti/experiments/rows"
	"tutti/model"
	"tutti/model/units"
)

// Offset is how much longer a call takes where the rows of a source were
// measured than where those of the first source were.
type Offset struct {
	Source    string
	Algorithm model.Algorithm
	Protocol  model.Protocol
	Time      units.Time
}

// small is the largest size that is made of what a call and its hops cost alone.
const small = 4 * units.MiB

// Align makes rows of several sources, one after the other, alike: another
// release, or one that is called in another way, spends more or less on every
// call. From the rows of all sources but the first it takes the median
// difference to the first, by algorithm and protocol, over the small calls that
// both measured. It fails for rows that leave nothing of a time.
func Align(list []rows.Row) ([]rows.Row, []Offset, error) {
	type call struct {
		collective   model.Collective
		algorithm    model.Algorithm
		protocol     model.Protocol
		nodes, ranks int
		bytes        units.Bytes
	}
	callOf := func(r rows.Row) call {
		return call{r.Collective, r.Algorithm, r.Protocol, r.Nodes, r.Ranks, r.Bytes}
	}
	first := map[call]units.Time{}
	for _, r := range list {
		if r.Source == list[0].Source && r.Bytes <= small {
			first[callOf(r)] = r.Time
		}
	}
	var offsets []Offset
	differences := map[Offset][]units.Time{}
	for _, r := range list {
		if t, both := first[callOf(r)]; both && r.Source != list[0].Source {
			o := Offset{Source: r.Source, Algorithm: r.Algorithm, Protocol: r.Protocol}
			if differences[o] == nil {
				offsets = append(offsets, o)
			}
			differences[o] = append(differences[o], r.Time-t)
		}
	}
	aligned := slices.Clone(list)
	for i, o := range offsets {
		all := slices.Sorted(slices.Values(differences[o]))
		offsets[i].Time = all[len(all)/2]
		for j, r := range aligned {
			if (Offset{Source: r.Source, Algorithm: r.Algorithm, Protocol: r.Protocol}) != o {
				continue
			}
			if r.Time <= offsets[i].Time {
				return nil, nil, fmt.Errorf("row %d: %.3f us of %s, whose calls take %.3f us longer than those of %s: want rows that can be compared",
					j+1, r.Time.Microseconds(), r.Source, offsets[i].Time.Microseconds(), list[0].Source)
			}
			aligned[j].Time -= offsets[i].Time
		}
	}
	return aligned, offsets, nil
}

// WriteOffsets writes a line for each offset.
func WriteOffsets(w io.Writer, offsets []Offset) error {
	for _, o := range offsets {
		if _, err := fmt.Fprintf(w, "%s: %.3f us taken off every call of %v over %v\n", o.Source, o.Time.Microseconds(), o.Algorithm, o.Protocol); err != nil {
			return err
		}
	}
	return nil
}
