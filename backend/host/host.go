// Package host runs schedules on the cores and the memory of this computer: the
// backend where there is no GPU, and the proof that a schedule does what the
// verifier says on real data.
//
// As many goroutines as there are cores, the hands, share the workers. A hand
// carries out steps until a worker has to wait for an item or a slot, and turns
// at once to those for whom it has just put an item: what one worker writes, the
// next reads while it is in the core's cache.
//
// An item is a view of memory. Where the schedule sends what lies in the
// writer's input or output and stays there, the view is of that, and nothing is
// copied; otherwise it is of a slot that the connection's credits allow for. So
// every byte is written once for each time that it is reduced or put into an
// output.
//
// A step adds up its items in the order: local input, then the ports, and of a
// reduction or aggregation the writers, in theirs. It computes float16 and
// bfloat16 in float32 and rounds its result once. An average is a sum that is
// divided once, by the first step that writes it to an output.
package host

import (
	"fmt"
	"runtime"

	"tutti/backend"
	"tutti/model/schedule"
	"tutti/model/units"
)

// Host is the backend.
type Host struct{ hands int }

// New returns the backend with the given number of hands; 0 stands for one for
// each core.
func New(hands int) *Host {
	if hands == 0 {
		hands = runtime.GOMAXPROCS(0)
	}
	return &Host{hands}
}

// Name implements [backend.Backend].
func (h *Host) Name() string { return "host" }

// Prepare implements [backend.Backend].
func (h *Host) Prepare(s schedule.Schedule) (backend.Execution, error) {
	t := s.Task()
	if need, has := memoryOf(t), available(); need > has {
		return nil, fmt.Errorf("%v of %v on %d ranks needs %.1f GiB of memory for inputs and outputs, and this machine has %.1f GiB free: use smaller sizes or fewer ranks",
			t.Collective, t.Bytes(), t.Ranks, need/float64(units.GiB), has/float64(units.GiB))
	}
	return newExecution(s, h.hands)
}

// memoryOf returns the bytes that the buffers of all ranks take up.
func memoryOf(t schedule.Task) (bytes float64) {
	for rank := range t.Ranks {
		elements := t.Input(rank).Len() + t.Output(rank).Len()
		if in, out, together := backend.Overlap(t, rank); together {
			elements = max(in+t.Input(rank).Len(), out+t.Output(rank).Len())
		}
		bytes += float64(elements) * float64(t.Datatype.Size())
	}
	return bytes
}
