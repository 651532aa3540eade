// Package timeline records what every worker and every connection of the network
// does in a simulation, and writes it as a trace for the Perfetto UI or as a
// picture.
package timeline

import (
	"cmp"
	"slices"

	"tutti/model/schedule"
	"tutti/model/units"
)

// Timeline is a [sim.Watcher] that keeps everything. It takes some 50 bytes for
// each step.
type Timeline struct {
	schedule schedule.Schedule
	steps    []step
	items    []item
}

type step struct {
	worker, number   int32
	from, begin, end units.Time
}

type item struct {
	connection int32
	begin, end units.Time
}

// New returns an empty timeline for simulations of a schedule.
func New(s schedule.Schedule) *Timeline { return &Timeline{schedule: s} }

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

// sort puts everything in the order of time.
func (t *Timeline) sort() {
	slices.SortFunc(t.steps, func(a, b step) int { return cmp.Or(cmp.Compare(a.worker, b.worker), cmp.Compare(a.number, b.number)) })
	slices.SortFunc(t.items, func(a, b item) int {
		return cmp.Or(cmp.Compare(a.connection, b.connection), cmp.Compare(a.begin, b.begin))
	})
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
