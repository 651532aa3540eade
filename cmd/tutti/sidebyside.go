package main

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"tutti/experiments/figure"
	"tutti/experiments/rows"
	"tutti/experiments/sweep"
	"tutti/topo"
)

// comparison is what several settings have for the same cases.
type comparison struct {
	settings []setting
	places   []sweep.Place
}

// places lists the cases that some setting has a row of.
func places(settings []setting) (list []sweep.Place) {
	seen := map[sweep.Place]bool{}
	for _, s := range settings {
		for _, j := range s.jobs {
			if _, done := s.rows[j.Place]; done && !seen[j.Place] {
				seen[j.Place] = true
				list = append(list, j.Place)
			}
		}
	}
	slices.SortStableFunc(list, sweep.Place.Compare)
	return list
}

// letter is the short name of a setting in the table.
func letter(i int) string {
	if i < 26 {
		return string(rune('A' + i))
	}
	return "S" + strconv.Itoa(i+1)
}

// ratio is the time of a setting over that of the first.
func (t comparison) ratio(i int, at sweep.Place) (float64, bool) {
	first, ok1 := t.settings[0].rows[at]
	r, ok2 := t.settings[i].rows[at]
	return float64(r.Time) / float64(max(1, first.Time)), ok1 && ok2
}

// writeTable writes a line for each case, below what the letters mean.
func (t comparison) writeTable(w io.Writer) error {
	var out table
	out.header = []string{"ranks", "size(B)"}
	for i, s := range t.settings {
		if _, err := fmt.Fprintf(w, "# %s: %s\n", letter(i), s.name); err != nil {
			return err
		}
		out.header = append(out.header, letter(i)+" by", letter(i)+" time(us)")
		if i > 0 {
			out.header = append(out.header, letter(i)+"/A")
		}
	}
	for _, at := range t.places {
		var cells, ranks, sizes []string
		for i, s := range t.settings {
			r, ok := s.rows[at]
			if !ok {
				cells = append(cells, none, none)
			} else {
				cells = append(cells, fmt.Sprintf("%v/%v", r.Algorithm, r.Protocol), fmt.Sprintf("%.2f", r.Time.Microseconds()))
				ranks = addOnce(ranks, strconv.Itoa(r.Ranks))
				sizes = addOnce(sizes, strconv.FormatInt(int64(r.Bytes), 10))
			}
			if ratio, ok := t.ratio(i, at); ok && i > 0 {
				cells = append(cells, fmt.Sprintf("%.3f", ratio))
			} else if i > 0 {
				cells = append(cells, none)
			}
		}
		out.add(append([]string{strings.Join(ranks, "/"), strings.Join(sizes, "/")}, cells...)...)
	}
	return out.write(w, false)
}

func addOnce(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// writeCSV writes result rows, before each the setting and its time over that of
// the first.
func (t comparison) writeCSV(w io.Writer) error {
	var list []rows.Row
	var before [][]string
	for _, at := range t.places {
		for i, s := range t.settings {
			if r, ok := s.rows[at]; ok {
				text := ""
				if ratio, ok := t.ratio(i, at); ok {
					text = fmt.Sprintf("%.4f", ratio)
				}
				list, before = append(list, r), append(before, []string{s.name, text})
			}
		}
	}
	var text bytes.Buffer
	if err := rows.WriteCSV(&text, list); err != nil {
		return err
	}
	records, err := csv.NewReader(&text).ReadAll()
	if err != nil {
		return err
	}
	for i, head := range append([][]string{{"setting", "time_ratio"}}, before...) {
		records[i] = append(head, records[i]...)
	}
	return csv.NewWriter(w).WriteAll(records)
}

// writeJSON writes for each setting its rows and their ratios, case by case.
func (t comparison) writeJSON(w io.Writer) error {
	type side struct {
		Name   string       `json:"name"`
		Ratios []*float64   `json:"time_ratio"`
		Rows   []*rows.JSON `json:"rows"`
	}
	var sides []side
	for i, s := range t.settings {
		one := side{Name: s.name}
		for _, at := range t.places {
			r, ok := s.rows[at]
			if !ok {
				one.Ratios, one.Rows = append(one.Ratios, nil), append(one.Rows, nil)
				continue
			}
			var ratio *float64
			if v, ok := t.ratio(i, at); ok {
				ratio = &v
			}
			row := r.JSON()
			one.Ratios, one.Rows = append(one.Ratios, ratio), append(one.Rows, &row)
		}
		sides = append(sides, one)
	}
	return writeJSON(w, struct {
		Schema   string `json:"schema"`
		Settings []side `json:"settings"`
	}{"tutti.whatif/1", sides})
}

// lines sorts the rows into the lines of a figure: one for each setting, in
// panels by whatever else there are several of.
func (t comparison) lines(x string) (lines []figure.Line) {
	for _, at := range t.places {
		for _, s := range t.settings {
			r, ok := s.rows[at]
			if !ok {
				continue
			}
			study := s.study
			var words []string
			if x == figure.Size && len(study.Clusters) > 1 {
				words = append(words, fmt.Sprintf("%d GPUs", r.Ranks))
			}
			if x == figure.Ranks && len(study.Sizes) > 1 {
				words = append(words, r.Bytes.String())
			}
			if len(study.Algorithms) > 1 {
				words = append(words, r.Algorithm.String())
			}
			if len(study.Protocols) > 1 {
				words = append(words, r.Protocol.String())
			}
			if len(study.Channels) > 1 {
				words = append(words, fmt.Sprintf("%d channels", r.Channels))
			}
			panel := strings.Join(words, " ")
			i := slices.IndexFunc(lines, func(l figure.Line) bool { return l.Panel == panel && l.Name == s.name })
			if i < 0 {
				i = len(lines)
				lines = append(lines, figure.Line{Panel: panel, Name: s.name})
			}
			lines[i].Rows = append(lines[i].Rows, r)
		}
	}
	return lines
}

// title says what all settings have in common.
func (t comparison) title() string {
	study := t.settings[0].study
	title := study.Collective.String()
	if len(study.Sizes) == 1 {
		title += " of " + study.Sizes[0].String()
	}
	on := gpusOf(study)
	for _, s := range t.settings[1:] {
		if gpusOf(s.study) != on {
			on = ""
		}
	}
	return title + on + ", simulated"
}

// gpusOf says how many GPUs of which machine a study is of, if it is of one cluster.
func gpusOf(s sweep.Study) string {
	if len(s.Clusters) != 1 {
		return ""
	}
	return fmt.Sprintf(" on %d GPUs of %s", s.Clusters[0].Ranks(), topo.ShortName(s.Clusters[0].Machine.Name))
}
