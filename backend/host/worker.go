package host

import (
	"fmt"
	"slices"
	"sync/atomic"

	"tutti/model/schedule"
)

// worker is where a worker stands. Only the hand that has it looks at it, but
// for its state.
type worker struct {
	schedule.Worker
	number         int
	next           int   // step
	received, sent []int // items so far, by port
	writer         []int // which of a connection's writers it is, by outbound port
	state          atomic.Int32
}

// The states of a worker that does not wait; that of one which does is the
// number of the connection. One that is busy is called when it may have what it
// looked for, so that it looks again before it waits.
const (
	busy   int32 = -1 - iota // on a stack, or with a hand
	called                   // and so
)

func (w *worker) init(number int, described schedule.Worker, connections []connection) error {
	w.Worker, w.number = described, number
	w.received, w.sent = make([]int, len(w.In)), make([]int, len(w.Out))
	if w.Steps == 0 {
		return nil
	}
	for _, c := range slices.Concat(w.In, w.Out) {
		if c < 0 || c >= len(connections) {
			return fmt.Errorf("%v names connection %d of %d: verify the schedule", w, c, len(connections))
		}
	}
	for _, c := range w.Out {
		place := slices.Index(connections[c].From, number)
		if place < 0 {
			return fmt.Errorf("%v names connection %d, which does not name it: verify the schedule", w, c)
		}
		w.writer = append(w.writer, place)
	}
	return nil
}

func (w *worker) String() string {
	return fmt.Sprintf("rank %d, channel %d, %s worker, step %d of %d", w.Rank, w.Channel, w.Role, w.next, w.Steps)
}
