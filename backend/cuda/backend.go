package cuda

import (
	"errors"
	"fmt"
	"slices"

	"tutti/backend"
	"tutti/backend/cuda/driver"
	"tutti/model"
	"tutti/model/schedule"
)

// Backend runs collectives on the GPUs of this host: by one shot and two by the
// hot kernels, other schedules by the interpreter.
type Backend struct {
	gpus    []*driver.GPU
	options Options
	groups  map[int]*group // by number of ranks
}

// group is the communicator of the first GPUs, with a stream for each rank.
type group struct {
	*Comm
	gpus    []*driver.GPU
	streams []*driver.Stream
}

// NewBackend returns a backend that uses the given GPUs, a rank each.
func NewBackend(gpus []*driver.GPU, o Options) *Backend {
	return &Backend{gpus, o, map[int]*group{}}
}

// GPUs returns the GPUs, a rank each.
func (b *Backend) GPUs() []*driver.GPU { return b.gpus }

// Comm returns the communicator of all GPUs, and its streams.
func (b *Backend) Comm() (*Comm, []*driver.Stream, error) {
	g, err := b.group(len(b.gpus))
	if err != nil {
		return nil, nil, err
	}
	return g.Comm, g.streams, nil
}

// group returns the communicator of so many ranks.
func (b *Backend) group(ranks int) (*group, error) {
	if g := b.groups[ranks]; g != nil {
		return g, nil
	}
	if ranks > len(b.gpus) {
		return nil, fmt.Errorf("%d ranks on %d GPUs: want one each (--gpus %d)", ranks, len(b.gpus), len(b.gpus))
	}
	gpus := b.gpus[:ranks]
	c, err := New(gpus, b.options)
	if err != nil {
		return nil, err
	}
	streams, err := OpenStreams(gpus)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	b.groups[ranks] = &group{c, gpus, streams}
	return b.groups[ranks], nil
}

// OpenStreams makes a stream for each rank.
func OpenStreams(gpus []*driver.GPU) ([]*driver.Stream, error) {
	var streams []*driver.Stream
	for _, g := range gpus {
		s, err := g.NewStream()
		if err != nil {
			return nil, errors.Join(err, closeStreams(streams))
		}
		streams = append(streams, s)
	}
	return streams, nil
}

func closeStreams(streams []*driver.Stream) error {
	var errs []error
	for _, s := range streams {
		errs = append(errs, s.Destroy())
	}
	return errors.Join(errs...)
}

// Close frees the communicators.
func (b *Backend) Close() error {
	var errs []error
	for _, g := range b.groups {
		errs = append(errs, closeStreams(g.streams), g.Comm.Close())
	}
	clear(b.groups)
	return errors.Join(errs...)
}

// Name implements [backend.Backend].
func (*Backend) Name() string { return "cuda" }

// Prepare implements [backend.Backend]. It fails for schedules that need more
// ranks than there are GPUs and, with [backend.ErrUnsupported], for what neither
// the hot kernels nor the interpreter can run.
func (b *Backend) Prepare(s schedule.Schedule) (backend.Execution, error) {
	if l, ok := LaunchOf(s.Task()); ok {
		x, err := b.PrepareLaunch(s.Task(), l)
		if s.Task().Collective == model.AllReduce || !errors.Is(err, backend.ErrUnsupported) {
			return x, err
		}
	}
	return b.interpreted(s)
}

// LaunchOf returns how a hot kernel carries out a call, if one does: what [Choose]
// returns for the size if that is of the call's algorithm and protocol, and else
// the launch that sweeps found good for such a kernel at most sizes.
func LaunchOf(t schedule.Task) (l Launch, ok bool) {
	if t.Ranks < 2 || t.Ranks > maxRanks {
		return l, false
	}
	if l = ChooseFor(t.Collective, t.Ranks, int64(t.Bytes())); l.Algorithm.is(t) {
		return l, true
	}
	usual := usual
	if t.Collective != model.AllReduce {
		usual = usualCollective
	}
	i := slices.IndexFunc(usual, func(l Launch) bool { return l.Algorithm.is(t) })
	return usual[max(0, i)], i >= 0
}

// usual are good launches where the size is not known.
var usual = []Launch{
	{Algorithm: OneShotLL, Blocks: 64, Threads: 256, Rounds: 1},
	{Algorithm: OneShotLL128, Blocks: 69, Threads: 512, Rounds: 1},
	{Algorithm: TwoShotLL, Blocks: 64, Threads: 512, Rounds: 1},
	{Algorithm: TwoShotLL128, Blocks: 69, Threads: 512, Rounds: 1},
	{Algorithm: TwoShotPush, Blocks: 64, Threads: 512, Rounds: 1},
}

// is tells whether the kernel carries out the algorithm and protocol of a call.
func (a Algorithm) is(t schedule.Task) bool {
	return a.Shots() == t.Algorithm && a.Protocol() == t.Protocol
}

// PrepareLaunch gives a call memory, to be run by a hot kernel.
func (b *Backend) PrepareLaunch(t schedule.Task, l Launch) (x *Work, err error) {
	g, err := b.group(t.Ranks)
	if err != nil {
		return nil, err
	}
	l = g.together(l)
	if err := g.fits(l, t); err != nil {
		return nil, fmt.Errorf("%w: %w", backend.ErrUnsupported, err)
	}
	x = &Work{Kernel: l.Algorithm.String(), Blocks: l.Blocks, Buffers: Buffers{Call: t, GPUs: g.gpus}, Streams: g.streams, Check: g.restore, Abort: g.Abort}
	if err := x.Place(x.Alloc); err != nil {
		return nil, errors.Join(err, x.Close())
	}
	input, output := x.Side(backend.Input), x.Side(backend.Output)
	if t.Collective == model.AllReduce {
		call := Call{Input: input, Output: output, Count: t.Count, Datatype: t.Datatype, Redop: t.Redop}
		err = g.Comm.Prepare(call, l)
		x.Queue = func() error { return g.allReduce(call, l, g.streams, x.Absent-1) }
	} else {
		var c *collective
		if c, err = g.newCollective(t, l, input, output); err == nil {
			err = c.load()
		} else {
			err = fmt.Errorf("%w: %w", backend.ErrUnsupported, err)
		}
		x.Queue = func() error { return c.queue(g.streams, x.Absent-1) }
	}
	if err != nil {
		return nil, errors.Join(err, x.Close())
	}
	return x, nil
}

// restore is Check that makes the communicator usable again after a fault.
func (g *group) restore() error {
	err := g.Check()
	if err != nil || g.aborted {
		err = errors.Join(err, g.Reset())
	}
	return err
}
