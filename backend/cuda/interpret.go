package cuda

import (
	"context"
	"errors"
	"fmt"
	"unsafe"

	"tutti/backend"
	"tutti/backend/cuda/driver"
	"tutti/model"
	"tutti/model/schedule"
	"tutti/model/units"
)

// interpreterKernel runs any schedule, a block for each worker.
const interpreterKernel = "interpreter"

const interpreterThreads = 512

// Backend runs verified schedules on the GPUs of this host by the interpreter
// kernel.
type Backend struct {
	gpus    []*driver.GPU
	options Options
	comms   map[int]*Comm // by number of ranks
}

// NewBackend returns a backend that uses the given GPUs, a rank each.
func NewBackend(gpus []*driver.GPU, o Options) *Backend {
	return &Backend{gpus, o, map[int]*Comm{}}
}

// comm returns the communicator of the first GPUs.
func (b *Backend) comm(ranks int) (*Comm, error) {
	if c := b.comms[ranks]; c != nil {
		return c, nil
	}
	c, err := New(b.gpus[:ranks], b.options)
	if err == nil {
		b.comms[ranks] = c
	}
	return c, err
}

// Name implements [backend.Backend].
func (*Backend) Name() string { return "cuda" }

// Prepare implements [backend.Backend]. It fails for schedules that need more
// ranks than there are GPUs, for protocols other than Simple, averages, and
// other datatypes than float, double, half, bfloat16, int32 and int64.
func (b *Backend) Prepare(s schedule.Schedule) (e backend.Execution, err error) {
	t := s.Task()
	if t.Ranks > len(b.gpus) {
		return nil, fmt.Errorf("%d ranks on %d GPUs: want one each (--gpus %d)", t.Ranks, len(b.gpus), len(b.gpus))
	}
	if t.Protocol != model.Simple {
		return nil, fmt.Errorf("the CUDA interpreter sends whole items and flags apart, not %v yet: want --proto simple", t.Protocol)
	}
	if t.Collective.Reduces() && t.Redop == model.Avg {
		return nil, errors.New("the CUDA interpreter has no averages yet")
	}
	x := &execution{program: program{schedule: s, task: t}}
	defer func() {
		if err != nil {
			err = errors.Join(err, x.Close())
		}
	}()
	if x.comm, err = b.comm(t.Ranks); err != nil {
		return nil, err
	}
	op := t.Redop
	if !t.Collective.Reduces() {
		op = model.Sum
	}
	if x.modules, err = x.comm.load(t.Datatype, op); err != nil {
		return nil, err
	}
	for _, r := range x.comm.ranks {
		s, err := r.gpu.NewStream()
		if err != nil {
			return nil, err
		}
		x.streams = append(x.streams, s)
	}
	if err := x.place(x.alloc); err != nil {
		return nil, err
	}
	return x, x.write()
}

// execution is a schedule with memory on GPUs.
type execution struct {
	program
	comm      *Comm
	modules   []*loaded
	streams   []*driver.Stream
	allocated []allocation
	workers   [][]workerRecord // of each rank
	table     []driver.Pointer // of workers, by rank
}

type allocation struct {
	gpu *driver.GPU
	p   driver.Pointer
}

// workerRecord is Worker in kernels/interpret.cuh.
type workerRecord struct {
	moves driver.Pointer
	count uint32
	_     uint32 // calls, which the kernel counts
}

// alloc takes memory of a rank, set to zero; it is freed by Close.
func (x *execution) alloc(rank int, bytes int64) (driver.Pointer, error) {
	g := x.comm.ranks[rank].gpu
	bytes = max(packBytes, bytes)
	p, err := g.Alloc(bytes)
	if err != nil {
		return 0, err
	}
	x.allocated = append(x.allocated, allocation{g, p})
	return p, g.Fill(p, 0, bytes)
}

// place finds memory for buffers, slots and counters.
func (x *execution) place(alloc func(rank int, bytes int64) (driver.Pointer, error)) error {
	x.memory.elementSize = int64(x.task.Datatype.Size())
	size := x.memory.elementSize
	x.memory.buffers = make([][2]driver.Pointer, x.task.Ranks)
	for rank := range x.memory.buffers {
		in, out := x.task.Input(rank).Len()*size, x.task.Output(rank).Len()*size
		var err error
		buffers := &x.memory.buffers[rank]
		if a, b, together := backend.Overlap(x.task, rank); together {
			p, err := alloc(rank, max(a*size+in, b*size+out))
			if err != nil {
				return err
			}
			*buffers = [2]driver.Pointer{p + driver.Pointer(a*size), p + driver.Pointer(b*size)}
			continue
		}
		if buffers[backend.Input], err = alloc(rank, in); err != nil {
			return err
		}
		if buffers[backend.Output], err = alloc(rank, out); err != nil {
			return err
		}
	}
	// One allocation a rank holds its slots and counters.
	need := make([]int64, x.task.Ranks)
	take := func(rank int, bytes int64) driver.Pointer {
		at := need[rank]
		need[rank] += (bytes + flagBytes - 1) / flagBytes * flagBytes
		return driver.Pointer(at)
	}
	x.memory.pairs = make([][]pair, x.schedule.Connections())
	x.eachPair(func(p *pair, c schedule.Connection, writer, reader int) {
		if c.Storage == schedule.Staged {
			p.slots = take(reader, int64(c.Slots)*slotBytes(c, size))
		}
		p.put, p.taken = take(reader, 4), take(writer, 4)
	})
	base := make([]driver.Pointer, x.task.Ranks)
	for rank, bytes := range need {
		var err error
		if base[rank], err = alloc(rank, bytes); err != nil {
			return err
		}
	}
	x.eachPair(func(p *pair, _ schedule.Connection, writer, reader int) {
		p.slots += base[reader]
		p.put += base[reader]
		p.taken += base[writer]
	})
	return nil
}

// eachPair goes through the pairs of all connections, with their ranks.
func (x *execution) eachPair(f func(p *pair, c schedule.Connection, writer, reader int)) {
	for i := range x.memory.pairs {
		c := x.schedule.Connection(i)
		if x.memory.pairs[i] == nil {
			x.memory.pairs[i] = make([]pair, len(c.From)*len(c.To))
		}
		for w, from := range c.From {
			for r, to := range c.To {
				f(&x.memory.pairs[i][w*len(c.To)+r], c, x.schedule.Worker(from).Rank, x.schedule.Worker(to).Rank)
			}
		}
	}
}

// write puts the moves and workers into the GPUs' memory.
func (x *execution) write() error {
	all, err := x.moves()
	if err != nil {
		return err
	}
	x.workers = make([][]workerRecord, x.task.Ranks)
	for w, moves := range all {
		if len(moves) == 0 {
			continue
		}
		rank := x.schedule.Worker(w).Rank
		p, err := x.alloc(rank, int64(len(moves))*int64(unsafe.Sizeof(move{})))
		if err != nil {
			return err
		}
		if err := x.comm.ranks[rank].gpu.Put(p, raw(moves)); err != nil {
			return err
		}
		x.workers[rank] = append(x.workers[rank], workerRecord{moves: p, count: uint32(len(moves))})
	}
	for rank, workers := range x.workers {
		p, err := x.alloc(rank, int64(len(workers))*int64(unsafe.Sizeof(workerRecord{})))
		if err != nil {
			return err
		}
		x.table = append(x.table, p)
		if len(workers) == 0 {
			continue
		}
		if err := x.comm.ranks[rank].gpu.Put(p, raw(workers)); err != nil {
			return err
		}
		resident, err := x.modules[rank].kernels[interpreterKernel].Resident(interpreterThreads)
		if err != nil {
			return err
		}
		if len(workers) > resident {
			return fmt.Errorf("rank %d has %d workers: its GPU runs %d blocks at once; use fewer channels", rank, len(workers), resident)
		}
	}
	return nil
}

// raw returns the bytes of structs.
func raw[T any](list []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(&list[0])), len(list)*int(unsafe.Sizeof(list[0])))
}

// programArgs is Program in kernels/interpret.cuh.
type programArgs struct {
	args    args
	workers driver.Pointer
}

// queue queues a call on all ranks.
func (x *execution) queue() error {
	none := make([]driver.Pointer, x.task.Ranks)
	for rank, s := range x.streams {
		if len(x.workers[rank]) == 0 {
			continue
		}
		a := &programArgs{workers: x.table[rank], args: *x.comm.args(Call{Input: none, Output: none, Datatype: x.task.Datatype}, rank)}
		if err := s.Launch(x.modules[rank].kernels[interpreterKernel], len(x.workers[rank]), interpreterThreads, unsafe.Pointer(a)); err != nil {
			return err
		}
	}
	return nil
}

// Run implements [backend.Execution]. Several calls are replayed as a CUDA graph
// and timed on the GPUs; what the buffers hold is that of many calls then. One
// call is run as it is. Contexts are looked at before work is queued; a call that
// is stuck ends by the communicator's timeout.
func (x *execution) Run(ctx context.Context, times int) (units.Time, error) {
	if err := context.Cause(ctx); err != nil {
		return 0, fmt.Errorf("given up: %w", err)
	}
	r := Repeats{Calls: times, Replays: 3}
	if times == 1 {
		if err := x.queue(); err != nil {
			return 0, err
		}
		for _, s := range x.streams {
			if err := s.Sync(); err != nil {
				return 0, err
			}
		}
		return 0, x.comm.Check()
	}
	t, err := Measure(x.streams, r, x.queue)
	if err := errors.Join(err, x.comm.Check()); err != nil {
		return 0, err
	}
	return units.FromMicroseconds(float64(Median(t)) / 1e3), nil
}

// Write implements [backend.Execution].
func (x *execution) Write(rank int, side backend.Side, at units.Bytes, data []byte) error {
	p, err := x.part(rank, side, at, len(data))
	if err != nil {
		return err
	}
	return x.comm.ranks[rank].gpu.Put(p, data)
}

// Read implements [backend.Execution].
func (x *execution) Read(rank int, side backend.Side, at units.Bytes, into []byte) error {
	p, err := x.part(rank, side, at, len(into))
	if err != nil {
		return err
	}
	return x.comm.ranks[rank].gpu.Get(into, p)
}

func (x *execution) part(rank int, side backend.Side, at units.Bytes, bytes int) (driver.Pointer, error) {
	if rank < 0 || rank >= x.task.Ranks {
		return 0, fmt.Errorf("rank %d: want one of %d", rank, x.task.Ranks)
	}
	if has := side.Of(x.task, rank).Len() * x.memory.elementSize; at < 0 || int64(at)+int64(bytes) > has {
		return 0, fmt.Errorf("bytes %d to %d of rank %d's buffer, which has %d", at, int64(at)+int64(bytes), rank, has)
	}
	return x.memory.buffers[rank][side] + driver.Pointer(at), nil
}

// Close implements [backend.Execution].
func (x *execution) Close() error {
	var errs []error
	for _, a := range x.allocated {
		errs = append(errs, a.gpu.Free(a.p))
	}
	for _, s := range x.streams {
		errs = append(errs, s.Destroy())
	}
	x.allocated, x.streams = nil, nil
	return errors.Join(errs...)
}
