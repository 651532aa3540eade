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
	"tutti/topo"
)

// Line is a measured row and what was predicted for it.
type Line struct {
	rows.Row
	// Predicted is by the sources of the comparison, in their order: 0 of one that
	// does not tell of the row, as the simulator of tutti's own kernels.
	Predicted []units.Time
	// Limit is the bus bandwidth that the machine's links would allow.
	Limit units.Rate
}

// Error returns the i-th prediction over the measured time, less one, if there is
// that prediction.
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
		if at < 0 || r.Kernel != "" {
			started(r)
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
// that others send twice; across nodes no more than a node's NETs together. Of a
// mixture, it is that of the machine with the least.
func limit(w *calibrate.World, r rows.Row) (least units.Rate) {
	for kind := range w.Cluster.Machines() {
		if rate := limitOf(w.Cluster.AllOf(kind), r); kind == 0 || rate < least {
			least = rate
		}
	}
	return least
}

// limitOf is limit for equal machines.
func limitOf(c *topo.Cluster, r rows.Row) units.Rate {
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

// Told returns the lines that the i-th source tells of.
func Told(lines []Line, i int) []Line {
	return slices.DeleteFunc(slices.Clone(lines), func(l Line) bool { return l.Predicted[i] == 0 })
}

// Summarise tells how far the i-th source is off on those lines that it tells of.
func Summarise(lines []Line, i int) calibrate.Summary {
	lines = Told(lines, i)
	errors := make([]float64, len(lines))
	for j, l := range lines {
		errors[j] = l.Error(i)
	}
	return calibrate.Summarise(errors)
}

// wayWidth is that of the column that says which way was chosen.
const wayWidth = 18

// WriteTable writes a line for each row, series by series, and then how far each
// source is off in the median, at the 90th percentile and at worst.
func (c *Comparison) WriteTable(w io.Writer) error {
	out := &printer{w: w}
	for _, s := range c.Series() {
		out.printf("%s: %s\n%12s", s.Like.Machine, s.Name(), "size(B)")
		if s.Chosen {
			out.printf(" %-*s", wayWidth, "by")
		}
		out.printf(" %12s", "measured(us)")
		for _, source := range c.Sources {
			out.printf(" %12s %8s", source+"(us)", "error")
		}
		out.printf("\n")
		for _, l := range s.Lines {
			out.printf("%12d", l.Bytes)
			if s.Chosen {
				out.printf(" %-*s", wayWidth, Way(l.Row))
			}
			out.printf(" %12.2f", l.Time.Microseconds())
			for i := range c.Sources {
				if l.Predicted[i] == 0 {
					out.printf(" %12s %8s", "-", "-")
					continue
				}
				out.printf(" %12.2f %+6.1f %%", l.Predicted[i].Microseconds(), 100*l.Error(i))
			}
			out.printf("\n")
		}
		out.printf("\n")
	}
	width := len("series")
	for _, s := range c.Series() {
		width = max(width, len(s.Name()))
	}
	out.printf("%-*s %-6s %5s %9s %9s %9s\n", width, "series", "by", "rows", "median", "90th", "worst")
	line := func(name, source string, s calibrate.Summary) {
		if s.Rows == 0 {
			return
		}
		out.printf("%-*s %-6s %5d %7.1f %% %7.1f %% %7.1f %%\n", width, name, source, s.Rows, 100*s.Median, 100*s.Ninetieth, 100*s.Max)
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
	kernels := slices.ContainsFunc(c.Lines, func(l Line) bool { return l.Kernel != "" })
	if kernels {
		head = append(head, "kernel")
	}
	for _, source := range c.Sources {
		head = append(head, source+"_us", source+"_error")
	}
	_ = out.Write(head) // an error is kept for Flush
	for _, l := range c.Lines {
		fields := l.Fields()
		if kernels {
			fields = append(fields, l.Kernel)
		}
		for i := range c.Sources {
			if l.Predicted[i] == 0 {
				fields = append(fields, "", "")
				continue
			}
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
		Source     string                `json:"source"`
		Machine    string                `json:"machine"`
		Collective string                `json:"collective"`
		Algorithm  string                `json:"algorithm"`
		Protocol   string                `json:"protocol"`
		Kernel     string                `json:"kernel,omitempty"`
		Nodes      int                   `json:"nodes"`
		Ranks      int                   `json:"ranks"`
		Datatype   string                `json:"datatype"`
		Bytes      int64                 `json:"bytes"`
		Measured   float64               `json:"measured_us"`
		Predicted  map[string]prediction `json:"predicted"`
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
		r := row{
			l.Source, l.Machine, l.Collective.String(), l.Algorithm.String(), l.Protocol.String(), l.Kernel,
			l.Nodes, l.Ranks, l.Datatype.String(), int64(l.Bytes), l.Time.Microseconds(), map[string]prediction{},
		}
		for i, source := range c.Sources {
			if l.Predicted[i] > 0 {
				r.Predicted[source] = prediction{l.Predicted[i].Microseconds(), l.Error(i)}
			}
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
