package nccl

import (
	"errors"
	"fmt"
	"slices"

	"tutti/backend"
	"tutti/backend/cuda"
	"tutti/backend/cuda/driver"
	"tutti/model"
	"tutti/model/schedule"
)

// Backend runs collectives by NCCL, which goes its own way: of a schedule it takes
// the call alone.
type Backend struct {
	gpus    []*driver.GPU
	windows bool
	groups  map[int]*group // by number of ranks
}

type group struct {
	*Comm
	streams []*driver.Stream
}

// NewBackend returns a backend that uses the given GPUs, a rank each; with windows,
// buffers lie in symmetric windows, for which NCCL has kernels of their own. It
// fails where there is no NCCL.
func NewBackend(gpus []*driver.GPU, windows bool) (*Backend, error) {
	if err := Load(); err != nil {
		return nil, err
	}
	if windows && (lib.MemAlloc == nil || lib.WindowRegister == nil) {
		return nil, errNoWindows
	}
	return &Backend{gpus, windows, map[int]*group{}}, nil
}

// Name implements [backend.Backend]: nccl, or nccl-symmetric with windows.
func (b *Backend) Name() string {
	if b.windows {
		return "nccl-symmetric"
	}
	return "nccl"
}

// group returns the communicator of the first GPUs.
func (b *Backend) group(ranks int) (*group, error) {
	if g := b.groups[ranks]; g != nil {
		return g, nil
	}
	if ranks > len(b.gpus) {
		return nil, fmt.Errorf("%d ranks on %d GPUs: want one each (--gpus %d)", ranks, len(b.gpus), len(b.gpus))
	}
	c, err := New(b.gpus[:ranks])
	if err != nil {
		return nil, err
	}
	streams, err := cuda.OpenStreams(b.gpus[:ranks])
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	b.groups[ranks] = &group{c, streams}
	return b.groups[ranks], nil
}

// Prepare implements [backend.Backend]. What NCCL has queued cannot be called
// back: a run that is given up waits for its calls under way.
func (b *Backend) Prepare(s schedule.Schedule) (e backend.Execution, err error) {
	t := s.Task()
	if t.Collective == model.Exchange {
		return nil, fmt.Errorf("%w: NCCL has no %v", backend.ErrUnsupported, t.Collective)
	}
	g, err := b.group(t.Ranks)
	if err != nil {
		return nil, err
	}
	x := &execution{Work: cuda.Work{
		Buffers: cuda.Buffers{Call: t, GPUs: g.gpus}, Streams: g.streams, Check: func() error { return nil },
	}}
	alloc := x.Alloc
	if b.windows {
		if alloc, err = x.window(g); err != nil {
			return nil, err
		}
	}
	if err := x.Place(alloc); err != nil {
		return nil, errors.Join(err, x.Close())
	}
	call := Call{
		Collective: t.Collective, Input: x.Side(backend.Input), Output: x.Side(backend.Output),
		Count: t.Count, Datatype: t.Datatype, Redop: t.Redop, Root: t.Root,
	}
	x.Queue = func() error { return g.Queue(call, g.streams) }
	return x, nil
}

// execution is a call with memory.
type execution struct {
	cuda.Work
	windows *Buffers
}

// window takes memory for both buffers of each rank that is registered on all, and
// returns what hands it out.
func (x *execution) window(g *group) (alloc func(rank int, bytes int64) (driver.Pointer, error), err error) {
	const align = 256
	if x.windows, err = g.Alloc(2*(int64(x.Call.Bytes())/align+1)*align, true); err != nil {
		return nil, err
	}
	next := slices.Clone(x.windows.Pointers)
	return func(rank int, bytes int64) (driver.Pointer, error) {
		p := next[rank]
		next[rank] += driver.Pointer((bytes + align - 1) / align * align)
		return p, nil
	}, nil
}

// Close implements [backend.Execution].
func (x *execution) Close() error {
	err := x.Work.Close()
	if x.windows != nil {
		err = errors.Join(err, x.windows.Free())
	}
	return err
}
