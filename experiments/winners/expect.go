package winners

import (
	"fmt"
	"io"
	"math"
	"strings"

	"tutti/experiments/rows"
	"tutti/model/tuning"
	"tutti/model/tuning/nccl"
	"tutti/model/units"
)

// Expectation is what to expect of a size.
type Expectation struct {
	// Row has NCCL's choice and the time that tutti's model gives it.
	rows.Row
	// NCCL is the time that NCCL's own model gives its choice, in microseconds.
	NCCL float64
	// Best is the fastest way.
	Best tuning.Choice
}

// Logged makes the study choose by a table that NCCL logged.
func (s *Study) Logged(t *nccl.Table) {
	s.nccl = nccl.NewFromTable(s.comm, t)
}

// Expect returns what to expect of each size: of what NCCL chooses among the
// ways that tutti can model.
func (s *Study) Expect(sizes []units.Bytes) ([]Expectation, error) {
	list := make([]Expectation, len(sizes))
	for i, size := range sizes {
		choices, err := s.Choices(size)
		if err != nil {
			return nil, err
		}
		e := Expectation{NCCL: math.Inf(1), Best: choices[0]}
		call := nccl.Call{Collective: s.Task.Collective, Datatype: s.Task.Datatype, Redop: s.Task.Redop, Bytes: size}
		for _, c := range choices {
			a, ok := nccl.Of(c.Algorithm)
			if !ok || c.Kernel != "" {
				continue
			}
			if t := s.nccl.Time(call, a, c.Protocol); t < e.NCCL {
				channels, _ := s.nccl.Launch(call, a, c.Protocol)
				e.NCCL = t
				e.Row = rows.Row{
					Source: "model", Machine: s.Cluster.Machine.Name, Collective: s.Task.Collective, Algorithm: c.Algorithm, Protocol: c.Protocol,
					Nodes: s.Task.Nodes, Ranks: s.Task.Ranks, Channels: channels, Datatype: s.Task.Datatype, Redop: s.Task.Redop,
					Bytes: size, Time: units.FromMicroseconds(c.Time),
				}
			}
		}
		if math.IsInf(e.NCCL, 1) {
			return nil, fmt.Errorf("NCCL's table has no way that carries out %v: tutti tune --coll %[1]v has tutti's own", s.Task.Collective)
		}
		list[i] = e
	}
	return list, nil
}

// RowsOf returns the rows of expectations.
func RowsOf(list []Expectation) []rows.Row {
	all := make([]rows.Row, len(list))
	for i, e := range list {
		all[i] = e.Row
	}
	return all
}

// WriteExpectations writes a line for each size.
func WriteExpectations(w io.Writer, list []Expectation) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%12s  %-16s %8s %12s %12s %12s  %-20s %9s\n", "size(B)", "NCCL's choice", "channels", "NCCL(us)", "tutti(us)", "busbw(GB/s)", "fastest", "saves")
	for _, e := range list {
		way := tuning.Way{Algorithm: e.Algorithm, Protocol: e.Protocol}
		saves := ""
		if e.Best.Way != way {
			saves = fmt.Sprintf("%.1f %%", 100*(1-e.Best.Time/e.Time.Microseconds()))
		}
		fmt.Fprintf(&b, "%12d  %-16v %8d %12.2f %12.2f %12.2f  %-20v %9s\n", e.Bytes, way, e.Channels, e.NCCL, e.Time.Microseconds(),
			float64(e.BusBW()/units.GBps), e.Best.Way, saves)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
