package cuda

import (
	"fmt"

	"tutti/backend/cuda/driver"
	"tutti/model"
	"tutti/model/schedule"
)

// Call is an AllReduce of all ranks.
type Call struct {
	// Input and Output are each rank's buffers; they may be the same.
	Input, Output []driver.Pointer
	// Count is the number of elements in each.
	Count    int64
	Datatype model.Datatype
	Redop    model.Redop
}

func (c *Call) bytes() uint64 { return uint64(c.Count) * uint64(c.Datatype.Size()) }

// Prepare loads the kernels that a call needs, which would otherwise wait for those
// that run.
func (c *Comm) Prepare(call Call, launch Launch) error {
	_, err := c.load(call.Datatype, call.Redop, launch.kernels(call.bytes())...)
	return err
}

// AllReduce queues a call on a stream of each rank. It returns before the call
// is done; wait for the streams, then ask [Comm.Check].
func (c *Comm) AllReduce(call Call, launch Launch, streams []*driver.Stream) error {
	return c.allReduce(call, launch, streams, none)
}

// none of the ranks is left out.
const none = -1

// allReduce is AllReduce without a rank.
func (c *Comm) allReduce(call Call, launch Launch, streams []*driver.Stream, without int) error {
	if err := c.validate(call, streams); err != nil {
		return err
	}
	if call.Count == 0 {
		return nil
	}
	modules, err := c.load(call.Datatype, call.Redop, launch.kernels(call.bytes())...)
	if err != nil {
		return err
	}
	if launch.Algorithm.hybrid() {
		return c.hybrid(call, launch, modules, streams, without)
	}
	s, err := c.layout.fit(launch, call.bytes(), len(c.ranks))
	if err != nil {
		return err
	}
	for i, r := range c.ranks {
		if i == without {
			continue
		}
		a := c.allReduceArgs(call, launch, s, i)
		if err := streams[i].LaunchOverlapped(modules[i].kernels[launch.Algorithm.String()], s.blocks, launch.Threads, a.pointer()); err != nil {
			return fmt.Errorf("rank %d of %d on GPU %d: %w", i, len(c.ranks), r.gpu.Index, err)
		}
	}
	if s.tail == 0 {
		return nil
	}
	return c.allReduce(call.tail(int64(s.tail)), tailLaunch, streams, without)
}

// tailLaunch is for the bytes behind the last whole pack.
var tailLaunch = Launch{Algorithm: OneShotLL, Blocks: 1, Threads: 32}

// allReduceArgs returns the parameters of a rank's kernel.
func (c *Comm) allReduceArgs(call Call, launch Launch, s shape, rank int) *args {
	a := c.args(call, rank)
	a.bytes -= s.tail
	a.inbox, a.capacity = s.inbox, s.capacity
	a.units, a.chunk, a.extra, a.stripe = s.units, s.chunk, s.extra, s.stripe
	a.rounds = uint32(max(launch.Rounds, 1))
	return a
}

// fits says why a launch does not suit a call.
func (c *Comm) fits(launch Launch, t schedule.Task) (err error) {
	switch bytes := uint64(t.Bytes()); {
	case t.Collective != model.AllReduce:
		_, err = c.layout.fitCollective(launch, t)
	case launch.Algorithm.hybrid():
		err = c.fitsHybrid(launch, bytes/packBytes)
	default:
		_, err = c.layout.fit(launch, bytes, len(c.ranks))
	}
	return err
}

// tail returns the call of the last bytes.
func (c Call) tail(bytes int64) Call {
	offset := driver.Pointer(int64(c.bytes()) - bytes)
	t := c
	t.Count = bytes / int64(c.Datatype.Size())
	t.Input, t.Output = make([]driver.Pointer, len(c.Input)), make([]driver.Pointer, len(c.Output))
	for i := range c.Input {
		t.Input[i], t.Output[i] = c.Input[i]+offset, c.Output[i]+offset
	}
	return t
}

// args returns what the kernels of all algorithms need on a rank.
func (c *Comm) args(call Call, rank int) *args {
	a := &args{
		fault:   c.ranks[rank].fault.Pointer(),
		timeout: uint64(c.options.Timeout.Nanoseconds()),
		bytes:   call.bytes(),
	}
	for i, r := range c.ranks {
		a.region[i], a.input[i], a.output[i] = r.region, call.Input[i], call.Output[i]
	}
	return a
}

func (c *Comm) validate(call Call, streams []*driver.Stream) error {
	n := len(c.ranks)
	if len(call.Input) != n || len(call.Output) != n || len(streams) != n {
		return fmt.Errorf("%d inputs, %d outputs and %d streams: want one of each for %d ranks", len(call.Input), len(call.Output), len(streams), n)
	}
	if call.Count < 0 {
		return fmt.Errorf("count %d: want 0 or more", call.Count)
	}
	for i := range n {
		for _, p := range []driver.Pointer{call.Input[i], call.Output[i]} {
			if p%packBytes != 0 || p == 0 {
				return fmt.Errorf("rank %d has a buffer at %#x: want an address that is a multiple of %d and is not 0", i, uint64(p), packBytes)
			}
		}
		if streams[i].GPU != c.ranks[i].gpu {
			return fmt.Errorf("rank %d has a stream of GPU %d: want GPU %d", i, streams[i].GPU.Index, c.ranks[i].gpu.Index)
		}
	}
	return nil
}
