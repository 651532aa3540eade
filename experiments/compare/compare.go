// Package compare lays predictions over measured rows: by the model, by the
// simulator, or both, with the error of every row.
package compare

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"

	"golang.org/x/sync/errgroup"

	"tutti/experiments/calibrate"
	"tutti/experiments/rows"
	"tutti/model"
	"tutti/model/profile"
	"tutti/model/schedule"
	"tutti/model/units"
	"tutti/sim"
)

// Line is a measured row and what was predicted for it.
type Line struct {
	rows.Row
	// Predicted is by the sources of the comparison, in their order.
	Predicted []units.Time
	// Limit is the bus bandwidth that the machine's links would allow.
	Limit units.Rate
}

// Error returns the i-th prediction over the measured time, less one.
func (l Line) Error(i int) float64 { return float64(l.Predicted[i])/float64(l.Time) - 1 }

// Comparison is measured rows with predictions.
type Comparison struct {
	// Sources names what predicted: model, sim.
	Sources []string
	Lines   []Line
}

// Sources are those that can predict.
var Sources = []string{"model", "sim"}

// Run predicts every row by each of the sources, on all cores. It calls started,
// from one goroutine at a time, when a row is begun. It fails for a row that the
// machine cannot run.
func Run(list []rows.Row, sources []string, p *profile.Profile, worlds *calibrate.Worlds, started func(rows.Row)) (*Comparison, error) {
	c := &Comparison{Sources: sources, Lines: make([]Line, len(list))}
	modelled, err := worlds.Predict(list, p)
	if err != nil {
		return nil, err
	}
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, r := range list {
		w, err := worlds.Of(r)
		if err != nil {
			return nil, err
		}
		l := &c.Lines[i]
		*l = Line{Row: r, Predicted: make([]units.Time, len(sources)), Limit: limit(w, r)}
		if at := slices.Index(sources, "model"); at >= 0 {
			l.Predicted[at] = modelled[i]
		}
		at := slices.Index(sources, "sim")
		if at < 0 {
			continue
		}
		group.Go(func() error {
			s, err := schedule.New(w.Task(r), w.Cluster, w.Graphs)
			if err != nil {
				return fmt.Errorf("row %d: %w", i+1, err)
			}
			l.Predicted[at], err = sim.BackToBack(s, w.Cluster, p)
			return err
		})
		started(r)
	}
	return c, group.Wait()
}

// limit returns the bus bandwidth that the links allow, all else being free: on
// one node a GPU's way to the next, which NVLS loads with n+1 shares of the n
// that others send twice; across nodes no more than a node's NETs together.
func limit(w *calibrate.World, r rows.Row) units.Rate {
	c := w.Cluster
	if c.Ranks() == 1 {
		return 0
	}
	m := c.Machine
	rate := units.Rate(0)
	if c.RanksPerNode() > 1 {
		rate = m.Path(c.GPU(0), c.GPU(1)).Rate
		if r.Algorithm == model.NVLS || r.Algorithm == model.NVLSTree {
			n := units.Rate(c.RanksPerNode())
			rate *= 2 * (n - 1) / (n + 1)
		}
	}
	if c.Nodes == 1 {
		return rate
	}
	nets := units.Rate(0)
	for _, net := range m.NETs {
		nets += m.Links[m.Nodes[net].Out[0]].Rate
	}
	if rate == 0 {
		return nets
	}
	return min(rate, nets)
}

// Series is lines that differ in size and time only.
type Series struct {
	// Like has what the rows of the series share.
	Like  rows.Row
	Lines []Line
}

// Name says which series it is: "ring over ll128 on 4 ranks", of AllReduce unless
// it says "allgather by ring".
func (s Series) Name() string {
	name := fmt.Sprintf("%v over %v on %d ranks", s.Like.Algorithm, s.Like.Protocol, s.Like.Ranks)
	if s.Like.Collective != model.AllReduce {
		name = fmt.Sprintf("%v by %s", s.Like.Collective, name)
	}
	return name
}

// Series groups the lines, each group by rising size.
func (c *Comparison) Series() (list []Series) {
	for _, l := range c.Lines {
		like := l.Row
		like.Source, like.Bytes, like.Time, like.Channels, like.InPlace = "", 0, 0, 0, false
		i := slices.IndexFunc(list, func(s Series) bool { return s.Like == like })
		if i < 0 {
			i = len(list)
			list = append(list, Series{Like: like})
		}
		list[i].Lines = append(list[i].Lines, l)
	}
	for _, s := range list {
		slices.SortStableFunc(s.Lines, func(a, b Line) int { return int(min(1, max(-1, a.Bytes-b.Bytes))) })
	}
	return list
}

// Summarise tells how far the i-th source is off on some lines.
func Summarise(lines []Line, i int) calibrate.Summary {
	errors := make([]float64, len(lines))
	for j, l := range lines {
		errors[j] = l.Error(i)
	}
	return calibrate.Summarise(errors)
}

// WriteTable writes a line for each row, series by series, and then how far each
// source is off in the median, at the 90th percentile and at worst.
func (c *Comparison) WriteTable(w io.Writer) error {
	out := &printer{w: w}
	for _, s := range c.Series() {
		out.printf("%s: %s\n%12s %12s", s.Like.Machine, s.Name(), "size(B)", "measured(us)")
		for _, source := range c.Sources {
			out.printf(" %12s %8s", source+"(us)", "error")
		}
		out.printf("\n")
		for _, l := range s.Lines {
			out.printf("%12d %12.2f", l.Bytes, l.Time.Microseconds())
			for i := range c.Sources {
				out.printf(" %12.2f %+6.1f %%", l.Predicted[i].Microseconds(), 100*l.Error(i))
			}
			out.printf("\n")
		}
		out.printf("\n")
	}
	out.printf("%-32s %-6s %5s %9s %9s %9s\n", "series", "by", "rows", "median", "90th", "worst")
	line := func(name, source string, s calibrate.Summary) {
		out.printf("%-32s %-6s %5d %7.1f %% %7.1f %% %7.1f %%\n", name, source, s.Rows, 100*s.Median, 100*s.Ninetieth, 100*s.Max)
	}
	for i, source := range c.Sources {
		for _, s := range c.Series() {
			line(s.Name(), source, Summarise(s.Lines, i))
		}
		line("all", source, Summarise(c.Lines, i))
	}
	return out.err
}

// printer keeps the first error.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}

// WriteCSV writes the rows in the schema with, for each source, its time and its
// error.
func (c *Comparison) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	head := rows.Header()
	for _, source := range c.Sources {
		head = append(head, source+"_us", source+"_error")
	}
	_ = out.Write(head) // an error is kept for Flush
	for _, l := range c.Lines {
		fields := l.Fields()
		for i := range c.Sources {
			fields = append(fields, strconv.FormatFloat(l.Predicted[i].Microseconds(), 'f', 3, 64), strconv.FormatFloat(l.Error(i), 'f', 4, 64))
		}
		_ = out.Write(fields)
	}
	out.Flush()
	return out.Error()
}

// WriteJSON writes the rows with their predictions, and the summary of each
// source.
func (c *Comparison) WriteJSON(w io.Writer) error {
	type prediction struct {
		Time  float64 `json:"time_us"`
		Error float64 `json:"error"`
	}
	type row struct {
		Machine   string                `json:"machine"`
		Algorithm string                `json:"algorithm"`
		Protocol  string                `json:"protocol"`
		Nodes     int                   `json:"nodes"`
		Ranks     int                   `json:"ranks"`
		Bytes     int64                 `json:"bytes"`
		Measured  float64               `json:"measured_us"`
		Predicted map[string]prediction `json:"predicted"`
	}
	type summary struct {
		Rows      int     `json:"rows"`
		Median    float64 `json:"median"`
		Ninetieth float64 `json:"ninetieth"`
		Worst     float64 `json:"worst"`
	}
	var doc struct {
		Rows      []row              `json:"rows"`
		Summaries map[string]summary `json:"summaries"`
	}
	doc.Summaries = map[string]summary{}
	for _, l := range c.Lines {
		r := row{l.Machine, l.Algorithm.String(), l.Protocol.String(), l.Nodes, l.Ranks, int64(l.Bytes), l.Time.Microseconds(), map[string]prediction{}}
		for i, source := range c.Sources {
			r.Predicted[source] = prediction{l.Predicted[i].Microseconds(), l.Error(i)}
		}
		doc.Rows = append(doc.Rows, r)
	}
	for i, source := range c.Sources {
		s := Summarise(c.Lines, i)
		doc.Summaries[source] = summary{s.Rows, s.Median, s.Ninetieth, s.Max}
	}
	out := json.NewEncoder(w)
	out.SetIndent("", " ")
	return out.Encode(doc)
}
