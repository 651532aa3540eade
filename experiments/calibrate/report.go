package calibrate

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"

	"tutti/experiments/rows"
	"tutti/model/profile"
	"tutti/model/units"
)

// Report is how well a profile predicts the rows that it was fitted to, and
// others.
type Report struct {
	series []series
}

// series is rows that differ in size and time only, and in how they were called.
type series struct {
	like  rows.Row
	lines []line
}

type line struct {
	rows.Row
	predicted units.Time
	held      bool
}

func (l line) error() float64 { return float64(l.predicted)/float64(l.Time) - 1 }

// NewReport predicts the rows that were fitted and those that were held out.
func NewReport(fitted, held []rows.Row, p *profile.Profile, worlds *Worlds) (*Report, error) {
	report := &Report{}
	for _, part := range []struct {
		list []rows.Row
		held bool
	}{{fitted, false}, {held, true}} {
		times, err := worlds.Predict(part.list, p)
		if err != nil {
			return nil, err
		}
		for i, r := range part.list {
			s := report.at(r)
			s.lines = append(s.lines, line{r, times[i], part.held})
		}
	}
	for _, s := range report.series {
		slices.SortStableFunc(s.lines, func(a, b line) int { return cmp.Compare(a.Bytes, b.Bytes) })
	}
	return report, nil
}

func (r *Report) at(row rows.Row) *series {
	row.Source, row.Bytes, row.Time, row.Channels, row.InPlace = "", 0, 0, 0, false
	i := slices.IndexFunc(r.series, func(s series) bool { return s.like == row })
	if i < 0 {
		i = len(r.series)
		r.series = append(r.series, series{like: row})
	}
	return &r.series[i]
}

// summaries returns the summaries of the fitted and of the held-out lines.
func summaries(lines []line) (fitted, held Summary) {
	var errors [2][]float64
	for _, l := range lines {
		i := 0
		if l.held {
			i = 1
		}
		errors[i] = append(errors[i], l.error())
	}
	return Summarise(errors[0]), Summarise(errors[1])
}

// WriteTable writes a line for each series, and one for all.
func (r *Report) WriteTable(w io.Writer) error {
	_, err := fmt.Fprintf(w, "%-9s %-5s %-8s %-6s | %5s %7s %7s %7s | %5s %7s %7s %7s\n%-9s %-5s %-8s %-6s | %5s %7s %7s %7s | %5s %7s %7s %7s\n",
		"", "", "", "", "fit", "median", "90th", "worst", "held", "median", "90th", "worst",
		"machine", "ranks", "algo", "proto", "rows", "%", "%", "%", "rows", "%", "%", "%")
	if err != nil {
		return err
	}
	var all []line
	write := func(name, ranks, algorithm, protocol string, lines []line) error {
		f, h := summaries(lines)
		_, err := fmt.Fprintf(w, "%-9s %5s %-8s %-6s | %5d %7.1f %7.1f %7.1f | %5d %7.1f %7.1f %7.1f\n", name, ranks, algorithm, protocol,
			f.Rows, 100*f.Median, 100*f.Ninetieth, 100*f.Max, h.Rows, 100*h.Median, 100*h.Ninetieth, 100*h.Max)
		return err
	}
	for _, s := range r.series {
		all = append(all, s.lines...)
		if err := write(s.like.Machine, strconv.Itoa(s.like.Ranks), s.like.Algorithm.String(), s.like.Protocol.String(), s.lines); err != nil {
			return err
		}
	}
	return write("all", "", "", "", all)
}

// WriteCSV writes every row with its prediction: the columns of the schema, and
// behind them predicted_us, error and held.
func (r *Report) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	_ = out.Write(append(rows.Header(), "predicted_us", "error", "held")) // an error is kept for Flush
	for _, s := range r.series {
		for _, l := range s.lines {
			_ = out.Write(append(l.Fields(), strconv.FormatFloat(l.predicted.Microseconds(), 'f', 3, 64),
				strconv.FormatFloat(l.error(), 'f', 4, 64), strconv.FormatBool(l.held)))
		}
	}
	out.Flush()
	return out.Error()
}
