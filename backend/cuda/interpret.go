package cuda

import (
	"errors"
	"fmt"
	"unsafe"

	"tutti/backend"
	"tutti/backend/cuda/driver"
	"tutti/model"
	"tutti/model/schedule"
)

// interpreters are the kernels that run any schedule, a block for each worker, by
// protocol.
var interpreters = map[model.Protocol]struct {
	kernel  string
	threads int
}{
	model.Simple: {"interpreter", 512 + 32}, // the last warp posts
	model.LL:     {"interpreter_ll", 512},
	model.LL128:  {"interpreter_ll128", 640},
}

// interpreted prepares a schedule for the interpreter.
func (b *Backend) interpreted(s schedule.Schedule) (e backend.Execution, err error) {
	t := s.Task()
	if t.Protocol != model.Simple && !staged(s) {
		return nil, fmt.Errorf("%w: %v over %v has items outside slots, which lines cannot carry", backend.ErrUnsupported, t.Algorithm, t.Protocol)
	}
	g, err := b.group(t.Ranks)
	if err != nil {
		return nil, err
	}
	x := &execution{Work: Work{Buffers: Buffers{Call: t, GPUs: g.gpus}, Streams: g.streams, Abort: g.Abort}, program: program{schedule: s, task: t}, comm: g}
	x.Queue, x.Check = x.queue, x.restore
	defer func() {
		if err != nil {
			err = errors.Join(err, x.Close())
		}
	}()
	op := t.Redop
	if !t.Collective.Reduces() {
		op = model.Sum
	}
	if x.modules, err = x.comm.load(t.Datatype, op, interpreters[t.Protocol].kernel); err != nil {
		return nil, err
	}
	if err := x.place(x.Alloc); err != nil {
		return nil, err
	}
	return x, x.write()
}

// staged tells whether all connections keep their items in slots.
func staged(s schedule.Schedule) bool {
	for c := range s.Connections() {
		if s.Connection(c).Storage != schedule.Staged {
			return false
		}
	}
	return true
}

// execution is a schedule with memory on GPUs.
type execution struct {
	Work
	program
	comm    *group
	modules []*module
	workers [][]workerRecord // of each rank
	table   []driver.Pointer // of workers, by rank
	shared  []driver.Pointer // slots and counters, by rank
	sizes   []int64          // of these, in bytes
}

// workerRecord is Worker in kernels/interpret.cuh.
type workerRecord struct {
	moves driver.Pointer
	count uint32
	_     uint32 // calls, which the kernel counts
}

// place finds memory for buffers, slots and counters.
func (x *execution) place(alloc func(rank int, bytes int64) (driver.Pointer, error)) error {
	if err := x.Place(alloc); err != nil {
		return err
	}
	size := int64(x.task.Datatype.Size())
	x.memory = memory{elementSize: size, buffers: x.sides, protocol: x.task.Protocol}
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
			p.base = take(reader, int64(c.Slots)*x.memory.slotBytes(c))
		}
		p.put, p.taken = take(reader, 4), take(writer, 4)
	})
	x.shared, x.sizes = make([]driver.Pointer, x.task.Ranks), need
	for rank, bytes := range need {
		var err error
		if x.shared[rank], err = alloc(rank, bytes); err != nil {
			return err
		}
	}
	x.eachPair(func(p *pair, _ schedule.Connection, writer, reader int) {
		p.base += x.shared[reader]
		p.put += x.shared[reader]
		p.taken += x.shared[writer]
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
	all, err := x.transfers()
	if err != nil {
		return err
	}
	x.workers = make([][]workerRecord, x.task.Ranks)
	for w, transfers := range all {
		if len(transfers) == 0 {
			continue
		}
		rank, moves := x.schedule.Worker(w).Rank, encode(x.task, transfers)
		p, err := x.Alloc(rank, int64(len(moves)))
		if err != nil {
			return err
		}
		if err := x.GPUs[rank].Put(p, moves); err != nil {
			return err
		}
		x.workers[rank] = append(x.workers[rank], workerRecord{moves: p, count: uint32(len(transfers))})
	}
	for rank, workers := range x.workers {
		p, err := x.Alloc(rank, int64(len(workers))*int64(unsafe.Sizeof(workerRecord{})))
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
		kernel, threads := x.kernel(rank)
		resident, err := kernel.Resident(threads)
		if err != nil {
			return err
		}
		if sharing := x.comm.sharing(x.GPUs[rank]); len(workers) > resident/sharing {
			return fmt.Errorf("%w: rank %d has %d workers: its GPU runs %d blocks at once for %d ranks; use fewer channels", backend.ErrUnsupported, rank, len(workers), resident, sharing)
		}
	}
	return nil
}

// kernel returns what runs the workers of a rank, and with how many threads.
func (x *execution) kernel(rank int) (k *driver.Kernel, threads int) {
	i := interpreters[x.task.Protocol]
	return x.modules[rank].kernels[i.kernel], i.threads
}

// encode lays transfers out for the kernel of a call.
func encode(t schedule.Task, list []transfer) []byte {
	switch {
	case t.Protocol != model.Simple:
		return raw(each(list, (*transfer).inLines))
	case t.Collective.Reduces() && t.Redop == model.Avg:
		return raw(each(list, (*transfer).apart))
	default:
		return raw(each(list, func(m *transfer) move { return m.apart().move }))
	}
}

func each[T any](list []transfer, lay func(*transfer) T) []T {
	out := make([]T, len(list))
	for i := range list {
		out[i] = lay(&list[i])
	}
	return out
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
	for rank, s := range x.Streams {
		if len(x.workers[rank]) == 0 || rank == x.Absent-1 {
			continue
		}
		a := &programArgs{workers: x.table[rank], args: *x.comm.args(Call{Input: none, Output: none, Datatype: x.task.Datatype}, rank)}
		kernel, threads := x.kernel(rank)
		if err := s.Launch(kernel, len(x.workers[rank]), threads, unsafe.Pointer(a)); err != nil {
			return err
		}
	}
	return nil
}

// restore is Check that forgets, after a fault, how far the workers came.
func (x *execution) restore() error {
	if !x.comm.aborted && x.comm.Check() == nil {
		return nil
	}
	errs := []error{x.comm.restore()}
	for rank, workers := range x.workers {
		g := x.GPUs[rank]
		errs = append(errs, g.Fill(x.shared[rank], 0, x.sizes[rank]))
		if len(workers) > 0 {
			errs = append(errs, g.Put(x.table[rank], raw(workers)))
		}
	}
	return errors.Join(errs...)
}
