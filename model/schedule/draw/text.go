package draw

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// MaxText is how many steps a text may have.
const MaxText = 5000

// WriteText writes a line for each step, by the instant at which it can be done:
// what a worker does with which elements, from whom it receives them and to whom
// it sends them. Channels and roles are told where there are several.
func (t *Timeline) WriteText(w io.Writer) error {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "time\trank\tchannel\trole\tstep\telements\tfrom\tto")
	for i, m := range t.Moves {
		l := t.Lanes[m.Lane]
		when := strconv.Itoa(m.Time)
		if i > 0 && t.Moves[i-1].Time == m.Time {
			when = ""
		}
		var from, to []int
		for _, item := range m.From {
			for _, s := range item.Senders {
				from = append(from, t.Lanes[s.Lane].Rank)
			}
		}
		for _, lanes := range m.To {
			for _, lane := range lanes {
				to = append(to, t.Lanes[lane].Rank)
			}
		}
		fmt.Fprintf(out, "%s\t%d\t%d\t%v\t%s\t%s\t%s\t%s\n", when, l.Rank, l.Channel, l.Role, m.Verb(), elements(m.ranges()), list(from), list(to))
	}
	return out.Flush()
}

// elements writes ranges, those that follow one another as one.
func elements(ranges [][2]int64) string {
	var merged [][2]int64
	for _, r := range ranges {
		if n := len(merged); r[0] == r[1] {
			continue
		} else if n > 0 && merged[n-1][1] == r[0] {
			merged[n-1][1] = r[1]
			continue
		}
		merged = append(merged, r)
	}
	if len(merged) == 0 {
		return "-"
	}
	words := make([]string, len(merged))
	for i, r := range merged {
		words[i] = span(r)
	}
	return strings.Join(words, " ")
}

// span writes the first and the last element.
func span(r [2]int64) string {
	if r[1] == r[0]+1 {
		return strconv.FormatInt(r[0], 10)
	}
	return fmt.Sprintf("%d-%d", r[0], r[1]-1)
}

// list writes ranks, each once.
func list(ranks []int) string {
	if len(ranks) == 0 {
		return "-"
	}
	slices.Sort(ranks)
	words := make([]string, 0, len(ranks))
	for _, r := range slices.Compact(ranks) {
		words = append(words, strconv.Itoa(r))
	}
	return strings.Join(words, " ")
}
