// Package timeline records what every worker, every connection of the network
// and every link does in a simulation, and writes it as a trace for the Perfetto
// UI or as a picture.
package timeline

import (
	"cmp"
	"fmt"
	"slices"

	"tutti/model/schedule"
	"tutti/model/units"
	"tutti/sim"
	"tutti/topo"
)

// StepBytes is about how much memory a timeline takes for each step that it
// records, until it is written.
const StepBytes = 400

// Timeline is a [sim.Watcher] that keeps everything.
type Timeline struct {
	schedule schedule.Schedule
	cluster  *topo.Cluster
	trouble  []trouble
	steps    []step
	items    []item

	passages []passage // of connections
	stalls   []stall   // of steps
	tracks   []track   // of links, of how many there are
	of       int
}

type step struct {
	worker, number   int32
	from, begin, end units.Time
}

type item struct {
	connection int32
	begin, end units.Time
}

// trouble is a fault, or that of a straggler, whose rank is -1 for a fault.
type trouble struct {
	rank       int
	name       string
	begin, end units.Time // 0: until all ends
}

// New returns an empty timeline for simulations of a schedule on a cluster, with
// the faults and stragglers of the options.
func New(s schedule.Schedule, c *topo.Cluster, o sim.Options) *Timeline {
	t := &Timeline{schedule: s, cluster: c}
	for i, f := range o.Faults {
		if f.Rate == 1 { // the end of one
			continue
		}
		name := fmt.Sprintf("%s at %.4g %%", f.Link, 100*f.Rate)
		if f.Rate == 0 {
			name = f.Link + " carries nothing"
		}
		end := units.Time(0)
		for _, later := range o.Faults[i+1:] {
			if later.Link == f.Link && later.At > f.At && (end == 0 || later.At < end) {
				end = later.At
			}
		}
		t.trouble = append(t.trouble, trouble{-1, name, f.At, end})
	}
	for _, s := range o.Stragglers {
		if s.Delay > 0 {
			t.trouble = append(t.trouble, trouble{s.Rank, fmt.Sprintf("late by %v", s.Delay), 0, s.Delay})
		}
		if s.Slow > 1 {
			t.trouble = append(t.trouble, trouble{s.Rank, fmt.Sprintf("threads take %g times as long", s.Slow), s.Delay, 0})
		}
	}
	return t
}

// Step implements [sim.Watcher].
func (t *Timeline) Step(worker, number int, from, begin, end units.Time) {
	t.steps = append(t.steps, step{int32(worker), int32(number), from, begin, end})
}

// Crossing implements [sim.Watcher].
func (t *Timeline) Crossing(connection int, begin, end units.Time) {
	t.items = append(t.items, item{int32(connection), begin, end})
}

// Len returns the number of steps.
func (t *Timeline) Len() int { return len(t.steps) }

// End completes the timeline once the simulation is over: what waited for what, and
// what links carried.
func (t *Timeline) End(r sim.Result) {
	slices.SortFunc(t.steps, func(a, b step) int { return cmp.Or(cmp.Compare(a.worker, b.worker), cmp.Compare(a.number, b.number)) })
	slices.SortFunc(t.items, func(a, b item) int {
		return cmp.Or(cmp.Compare(a.connection, b.connection), cmp.Compare(a.begin, b.begin))
	})
	for i := range t.trouble {
		if t.trouble[i].end == 0 {
			t.trouble[i].end = max(t.last(), t.trouble[i].begin)
		}
	}
	t.passages = t.findPassages()
	t.stalls = t.findStalls()
	t.tracks, t.of = t.findTracks(r, 4*len(t.steps))
}

// last returns when the last step ended.
func (t *Timeline) last() (last units.Time) {
	for _, s := range t.steps {
		last = max(last, s.end)
	}
	return last
}

// name says what a step does in the words of NCCL's primitives.
func name(s schedule.Step) string {
	text := ""
	if s.Recv.Len() > 0 {
		text = "recv"
		if s.Input {
			text += "Reduce"
		}
	}
	if s.Output {
		text += "Copy"
	}
	if s.Send.Len() > 0 {
		text += "Send"
	}
	switch text {
	case "recvCopy":
		return "recv"
	case "Send":
		return "send"
	case "Copy":
		return "copy"
	case "CopySend":
		return "copySend"
	case "":
		return "barrier"
	}
	return text
}
