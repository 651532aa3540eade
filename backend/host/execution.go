package host

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"tutti/backend"
	"tutti/backend/number"
	"tutti/model"
	"tutti/model/schedule"
	"tutti/model/units"
)

// execution is a schedule with memory.
type execution struct {
	schedule    schedule.Schedule
	task        schedule.Task
	size        int64 // bytes of an element
	fold        fold
	average     bool        // sums are divided in the end
	inputStays  bool        // to the end of the run
	buffers     [][2][]byte // of each rank, by [backend.Side]
	workers     []worker
	connections []connection
	hands       []hand
	crew        *crew
	pool        pool
	moved       int64       // bytes, by the last collective
	stop        atomic.Bool // the run was given up
	failed      struct {
		sync.Once
		err error
	}
}

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

func newExecution(s schedule.Schedule, hands int) (*execution, error) {
	t := s.Task()
	x := &execution{
		schedule: s, task: t, size: int64(t.Datatype.Size()), fold: newFold(t), buffers: make([][2][]byte, t.Ranks),
		workers: make([]worker, s.Workers()), connections: make([]connection, s.Connections()), hands: make([]hand, hands), crew: newCrew(hands),
	}
	x.average = t.Collective.Reduces() && t.Redop == model.Avg
	x.inputStays = !t.InPlace || !t.Collective.Reduces() // what is only moved is equal wherever it is
	for rank := range x.buffers {
		in, out := t.Input(rank).Len()*x.size, t.Output(rank).Len()*x.size
		if a, b, together := backend.Overlap(t, rank); together {
			a, b = a*x.size, b*x.size
			memory := number.Memory(max(a+in, b+out))
			x.buffers[rank] = [...][]byte{memory[a : a+in], memory[b : b+out]}
		} else {
			x.buffers[rank] = [...][]byte{number.Memory(in), number.Memory(out)}
		}
	}
	for i := range x.connections {
		x.connections[i].init(s.Connection(i))
	}
	for i := range x.workers {
		if err := x.workers[i].init(i, s.Worker(i), x.connections); err != nil {
			return nil, err
		}
	}
	for i := range x.hands {
		x.hands[i].execution = x
	}
	return x, nil
}

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

// Write implements [backend.Execution].
func (x *execution) Write(rank int, side backend.Side, at units.Bytes, data []byte) error {
	memory, err := x.part(rank, side, at, len(data))
	copy(memory, data)
	return err
}

// Read implements [backend.Execution].
func (x *execution) Read(rank int, side backend.Side, at units.Bytes, into []byte) error {
	memory, err := x.part(rank, side, at, len(into))
	copy(into, memory)
	return err
}

func (x *execution) part(rank int, side backend.Side, at units.Bytes, count int) ([]byte, error) {
	if rank < 0 || rank >= len(x.buffers) {
		return nil, fmt.Errorf("rank %d: want one of %d", rank, len(x.buffers))
	}
	memory := x.buffers[rank][side]
	if at < 0 || int64(at)+int64(count) > int64(len(memory)) {
		return nil, fmt.Errorf("bytes %d to %d of rank %d's buffer, which has %d", at, int64(at)+int64(count), rank, len(memory))
	}
	return memory[at : int64(at)+int64(count)], nil
}

// Run implements [backend.Execution]. A schedule that deadlocks is an error that
// names a worker which waits, and for what.
func (x *execution) Run(ctx context.Context, times int) (units.Time, error) {
	release := context.AfterFunc(ctx, func() {
		x.stop.Store(true)
		x.crew.giveUp()
	})
	defer release()
	start := time.Now()
	for range times {
		if err := x.once(ctx); err != nil {
			return 0, err
		}
	}
	return since(start) / units.Time(max(1, times)), nil
}

// once carries out the collective.
func (x *execution) once(ctx context.Context) error {
	for i := range x.workers {
		x.workers[i].next = 0
		x.workers[i].state.Store(busy)
	}
	x.crew.start(len(x.workers))
	var group sync.WaitGroup
	for i := range x.hands {
		group.Go(func() { x.hands[i].work(i) })
	}
	group.Wait()
	x.moved = 0
	for i := range x.hands {
		x.moved += x.hands[i].moved
	}
	if err := context.Cause(ctx); err != nil {
		return fmt.Errorf("given up: %w", err)
	}
	if x.failed.err != nil {
		return x.failed.err
	}
	for i := range x.workers {
		if w := &x.workers[i]; w.next < w.Steps {
			return fmt.Errorf("deadlock: %v waits for ever %s", w, x.why(w))
		}
	}
	return nil
}

// why tells what a worker waits for.
func (x *execution) why(w *worker) string {
	c := &x.connections[w.state.Load()]
	if slices.Contains(c.To, w.number) {
		return fmt.Sprintf("for an item from worker %v", c.From)
	}
	return fmt.Sprintf("for one of %d slots to worker %v", c.Slots, c.To)
}

func (x *execution) fail(err error) {
	x.failed.Do(func() { x.failed.err = err })
	x.stop.Store(true)
	x.crew.giveUp()
}

// Moved returns the bytes that the last collective read and wrote.
func (x *execution) Moved() units.Bytes { return units.Bytes(x.moved) }

// Close implements [backend.Execution]. It hands large buffers back to the
// system, so that the next ones find room.
func (x *execution) Close() error {
	large := memoryOf(x.task) > float64(256*units.MiB)
	x.buffers, x.connections, x.pool.free = nil, nil, nil
	if large {
		debug.FreeOSMemory()
	}
	return nil
}
