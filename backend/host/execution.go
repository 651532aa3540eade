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
	stop        atomic.Bool // the run is given up
}

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
	x.reset()
	ended := make(chan struct{})
	release := context.AfterFunc(ctx, func() {
		x.giveUp(fmt.Errorf("given up: %w", context.Cause(ctx)))
		close(ended)
	})
	defer func() {
		if !release() {
			<-ended
		}
	}()
	start := time.Now()
	for range times {
		if err := x.once(); err != nil {
			return 0, err
		}
	}
	return since(start) / units.Time(max(1, times)), nil
}

// reset forgets what a run that was given up has left.
func (x *execution) reset() {
	x.stop.Store(false)
	x.crew.err = nil
	for i := range x.workers {
		clear(x.workers[i].received)
		clear(x.workers[i].sent)
	}
	for i := range x.connections {
		x.connections[i].init(x.connections[i].Connection)
	}
}

// once carries out the collective.
func (x *execution) once() error {
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
	if err := x.crew.why(); err != nil {
		return err
	}
	for i := range x.workers {
		if w := &x.workers[i]; w.next < w.Steps {
			return fmt.Errorf("deadlock: %v waits for ever %s", w, x.lacks(w))
		}
	}
	return nil
}

// lacks tells what a worker waits for.
func (x *execution) lacks(w *worker) string {
	c := &x.connections[w.state.Load()]
	if slices.Contains(c.To, w.number) {
		return fmt.Sprintf("for an item from worker %v", c.From)
	}
	return fmt.Sprintf("for one of %d slots to worker %v", c.Slots, c.To)
}

// giveUp ends a run before its time.
func (x *execution) giveUp(err error) {
	x.stop.Store(true)
	x.crew.giveUp(err)
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
