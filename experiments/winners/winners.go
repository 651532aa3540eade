// Package winners says which way of carrying out a collective wins on a cluster
// from which size on, by tutti's model, beside what NCCL would choose. Times are
// those of calls back to back, as benchmarks measure them.
package winners

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"tutti/experiments/rows"
	"tutti/model"
	"tutti/model/profile"
	"tutti/model/schedule"
	"tutti/model/tuning"
	"tutti/model/tuning/export"
	"tutti/model/tuning/nccl"
	"tutti/model/units"
	"tutti/topo"
	"tutti/topo/search"
)

// Study asks for winners on a cluster.
type Study struct {
	Cluster *topo.Cluster
	// Task has the collective and the type; its count is that of each size.
	Task schedule.Task

	model    *tuning.Predictor
	channels *tuning.Model
	comm     nccl.Communicator
	nccl     *nccl.Model
}

// New prepares a study.
func New(c *topo.Cluster, g search.Graphs, p *profile.Profile, t schedule.Task, s nccl.Settings) (*Study, error) {
	comm := nccl.Describe(c, g)
	m, err := nccl.New(comm, s)
	if err != nil {
		return nil, err
	}
	t.Ranks, t.Nodes = c.Ranks(), c.Nodes
	channels := tuning.New(c, g)
	if s.CollNet {
		channels = tuning.NewCollNet(c, g)
	}
	return &Study{c, t, tuning.NewPredictor(c, g, p).BackToBack(), channels, comm, m}, nil
}

// Winner is a range of sizes and what wins it.
type Winner struct {
	tuning.Range
	// Next is the second best at the smallest size; its Time is +Inf where there
	// is none.
	Next tuning.Choice
	// NCCL is what NCCL would choose at the smallest size, and Loss how much
	// longer the model says that takes; NaN where NCCL has one way only, as for
	// sends.
	NCCL tuning.Way
	Loss float64
}

// OnlyNCCL leaves the algorithms that NCCL does not have out.
func (s *Study) OnlyNCCL() {
	var list []model.Algorithm
	for _, a := range model.Algorithms() {
		if _, ok := nccl.Of(a); ok {
			list = append(list, a)
		}
	}
	s.model = s.model.Only(list)
}

// Find returns the winners from one size to another.
func (s *Study) Find(from, to units.Bytes) ([]Winner, error) {
	ranges, err := s.model.Ranges(s.Task, s.channels.On(s.Task.Collective), from, to)
	if err != nil {
		return nil, err
	}
	list := make([]Winner, len(ranges))
	for i, r := range ranges {
		choices, err := s.Choices(r.From)
		if err != nil {
			return nil, err
		}
		w := Winner{Range: r, Next: tuning.Choice{Prediction: tuning.Prediction{Time: math.Inf(1)}}}
		if len(choices) > 1 {
			w.Next = choices[1]
		}
		w.Loss = math.NaN()
		if slices.Contains(nccl.Functions(), s.Task.Collective) {
			chosen, err := s.nccl.Choose(nccl.Call{Collective: s.Task.Collective, Datatype: s.Task.Datatype, Redop: s.Task.Redop, Bytes: r.From})
			if err != nil {
				return nil, err
			}
			a, known := chosen.Algorithm.Model()
			if !known {
				return nil, fmt.Errorf("NCCL would choose %v, which has no model", chosen.Algorithm)
			}
			w.NCCL = tuning.Way{Algorithm: a, Protocol: chosen.Protocol}
			w.Loss = tuning.Loss(choices, w.NCCL)
		}
		list[i] = w
	}
	return list, nil
}

// Choices returns what every way takes at a size, the fastest first.
func (s *Study) Choices(size units.Bytes) ([]tuning.Choice, error) {
	return s.model.Choices(s.Task.Sized(size), s.channels.On(s.Task.Collective))
}

// leading is how many ways a figure shows at each size.
const leading = 3

// Rows returns a row at every size for each way that is among the fastest three
// at one of them.
func (s *Study) Rows(sizes []units.Bytes) ([]rows.Row, error) {
	all := make([][]tuning.Choice, len(sizes))
	shown := map[tuning.Way]bool{}
	for i, size := range sizes {
		var err error
		if all[i], err = s.Choices(size); err != nil {
			return nil, err
		}
		for _, c := range all[i][:min(leading, len(all[i]))] {
			shown[c.Way] = true
		}
	}
	var list []rows.Row
	for i, size := range sizes {
		for _, c := range all[i] {
			if !shown[c.Way] {
				continue
			}
			source := "model"
			if c.Kernel != "" {
				source = c.Way.String()
			}
			list = append(list, rows.Row{
				Source: source, Machine: s.Cluster.Machine.Name, Collective: s.Task.Collective, Algorithm: c.Algorithm, Protocol: c.Protocol,
				Nodes: s.Task.Nodes, Ranks: s.Task.Ranks, Channels: max(1, c.Channels), Datatype: s.Task.Datatype, Redop: s.Task.Redop,
				Bytes: size, Time: units.FromMicroseconds(c.Time),
			})
		}
	}
	slices.SortStableFunc(list, func(a, b rows.Row) int {
		return cmp.Or(cmp.Compare(a.Algorithm, b.Algorithm), cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Source, b.Source))
	})
	return list, nil
}

// Entries returns the winners as other libraries are told of them.
func (s *Study) Entries(list []Winner) ([]export.Entry, error) {
	entries := make([]export.Entry, len(list))
	for i, w := range list {
		a, ok := nccl.Of(w.Best.Algorithm)
		if !ok {
			return nil, fmt.Errorf("%v wins from %v on, and NCCL does not have it", w.Best.Algorithm, w.From)
		}
		channels := w.Best.Channels
		entries[i] = export.Entry{Collective: s.Task.Collective, From: w.From, To: w.To, Algorithm: a, Protocol: w.Best.Protocol,
			Channels: channels, Nodes: s.Task.Nodes, Ranks: s.Task.Ranks}
	}
	return entries, nil
}

var columns = []string{"from_bytes", "to_bytes", "winner", "channels", "time_us", "next", "next_slower", "nccl", "nccl_slower"}

func (w Winner) fields() []string {
	next, slower := "", ""
	if !math.IsInf(w.Next.Time, 1) {
		next, slower = w.Next.Way.String(), fmt.Sprintf("%.4f", w.Next.Time/w.Best.Time-1)
	}
	chosen, loss := "", ""
	if !math.IsNaN(w.Loss) {
		chosen = w.NCCL.String()
		if !math.IsInf(w.Loss, 1) { // else the model does not know it
			loss = fmt.Sprintf("%.4f", w.Loss)
		}
	}
	channels := strconv.Itoa(w.Best.Channels)
	if w.Best.Kernel != "" {
		channels = ""
	}
	return []string{
		strconv.FormatInt(int64(w.From), 10), strconv.FormatInt(int64(w.To), 10), w.Best.Way.String(), channels,
		fmt.Sprintf("%.3f", w.Best.Time), next, slower, chosen, loss,
	}
}

// WriteTable writes a line for each winner; the first columns are the crossover
// points. Shares say how much slower the second best and NCCL's choice are at
// the smallest size.
func WriteTable(w io.Writer, list []Winner) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%12s %12s  %-20s %8s %10s  %-20s %7s  %-16s %7s\n", "from(B)", "to(B)", "winner", "channels", "time(us)", "next", "slower", "NCCL's choice", "slower")
	for _, l := range list {
		f := l.fields()
		percent := func(s string) string {
			if v, err := strconv.ParseFloat(s, 64); err == nil {
				return fmt.Sprintf("%.1f %%", 100*v)
			}
			return ""
		}
		fmt.Fprintf(&b, "%12s %12s  %-20s %8s %10.2f  %-20s %7s  %-16s %7s\n", f[0], f[1], f[2], f[3], l.Best.Time, f[5], percent(f[6]), f[7], percent(f[8]))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteCSV writes the winners as CSV.
func WriteCSV(w io.Writer, list []Winner) error {
	out := csv.NewWriter(w)
	_ = out.Write(columns) // an error is kept for Flush
	for _, l := range list {
		_ = out.Write(l.fields())
	}
	out.Flush()
	return out.Error()
}

// WriteJSON writes the winners as a JSON list.
func WriteJSON(w io.Writer, list []Winner) error {
	objects := make([]map[string]string, len(list))
	for i, l := range list {
		objects[i] = map[string]string{}
		for j, f := range l.fields() {
			objects[i][columns[j]] = f
		}
	}
	out := json.NewEncoder(w)
	out.SetIndent("", " ")
	return out.Encode(objects)
}

// Explain writes, for a size, what every way takes and what that is made of.
func (s *Study) Explain(w io.Writer, size units.Bytes) error {
	choices, err := s.Choices(size)
	if err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%v of %v on %d ranks\n", s.Task.Collective, size, s.Task.Ranks)
	for _, c := range choices {
		on := fmt.Sprintf(" on %d channels", c.Channels)
		if c.Kernel != "" {
			on = ", a kernel of tutti's own"
		}
		fmt.Fprintf(&b, "  %-20v %10.2f us%s\n", c.Way, c.Time, on)
		for _, t := range c.Terms() {
			fmt.Fprintf(&b, "    %12.2f us  %s\n", t.Time, t.Name)
		}
	}
	_, err = io.WriteString(w, b.String())
	return err
}
