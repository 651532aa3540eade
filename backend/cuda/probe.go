package cuda

import (
	"context"
	"fmt"
	"time"

	"tutti/backend/cuda/driver"
	"tutti/model/units"
)

// The kernels of the probe.
const (
	storesKernel = "probe_stores"
	bulkKernel   = "probe_bulk"
	loadsKernel  = "probe_loads"
	flagsKernel  = "probe_flags"
)

// Engine is what moves data between GPUs.
type Engine int

// The engines.
const (
	Stores      Engine = iota // by the multiprocessors, into peers' memory
	Loads                     // by the multiprocessors, from peers' memory
	Bulk                      // by bulk copies of the multiprocessors (TMA), into peers' memory
	CopyEngines               // copies that the driver queues
)

func (e Engine) String() string { return [...]string{"store", "load", "bulk", "copy"}[e] }

// Traffic is all ranks moving data to a number of peers at once.
type Traffic struct {
	Engine Engine
	// Peers is how many peers each rank moves data to.
	Peers int
	// Bytes is what each peer gets.
	Bytes units.Bytes
	// Blocks and Threads are those of a kernel, Tile the bytes of a bulk copy; Lanes
	// the streams of the copies.
	Blocks, Threads, Tile, Lanes int
	// Pull has copies queued by the GPU that gets the data. Eager measures without
	// graphs.
	Pull, Eager bool
}

// Probe measures traffic between buffers of at least Peers*Bytes on each rank
// and returns how long it takes, at the median.
func (c *Comm) Probe(ctx context.Context, t Traffic, buffers Call, streams []*driver.Stream) (time.Duration, error) {
	if t.Peers < 1 || t.Peers >= len(c.ranks) {
		return 0, fmt.Errorf("%d peers: want 1 to %d", t.Peers, len(c.ranks)-1)
	}
	if err := c.openLanes(); err != nil {
		return 0, err
	}
	times, err := Measure(ctx, streams, Repeats{Calls: 4, Replays: 5, Eager: t.Eager}, func() error {
		q := &queue{}
		for i := range c.ranks {
			if t.Engine == CopyEngines {
				c.probeCopies(q, t, i, buffers, streams[i])
				continue
			}
			a := c.args(buffers, i)
			a.units, a.rounds, a.chunk = uint32(t.Bytes/packBytes), uint32(t.Peers), uint32(t.Tile)
			for r := range c.ranks {
				a.output[r] += driver.Pointer(i) * driver.Pointer(t.Bytes) // each sender has a place of its own
			}
			kernel := map[Engine]string{Stores: storesKernel, Loads: loadsKernel, Bulk: bulkKernel}[t.Engine]
			q.do(func() error {
				return streams[i].Launch(c.ranks[i].common.kernels[kernel], t.Blocks/t.Peers*t.Peers, t.Threads, a.pointer())
			})
		}
		return q.err
	}, c.Abort)
	if err != nil {
		return 0, err
	}
	return Median(times), c.Check()
}

func (c *Comm) probeCopies(q *queue, t Traffic, rank int, buffers Call, s *driver.Stream) {
	l := c.ranks[rank].lanes
	q.record(s, l.begun)
	for k := range t.Peers {
		peer := (rank + 1 + k) % len(c.ranks)
		lane := l.copies[(rank+1+k%t.Lanes)%len(c.ranks)]
		q.wait(lane, l.begun)
		to, from := peer, rank
		if t.Pull {
			to, from = rank, peer
		}
		q.copy(lane, buffers.Output[to]+driver.Pointer(from)*driver.Pointer(t.Bytes), buffers.Input[from], int64(t.Bytes))
		q.record(lane, l.done[peer])
	}
	for k := range t.Peers {
		q.wait(s, l.done[(rank+1+k)%len(c.ranks)])
	}
}

// ProbeFlags returns how long a flag takes from rank 0 to another rank.
func (c *Comm) ProbeFlags(ctx context.Context, peer int, streams []*driver.Stream) (time.Duration, error) {
	const trips = 1000
	times, err := Measure(ctx, streams, Repeats{Calls: 4, Replays: 3}, func() error {
		q := &queue{}
		for i, r := range c.ranks {
			a := c.args(Call{Input: make([]driver.Pointer, len(c.ranks)), Output: make([]driver.Pointer, len(c.ranks))}, i)
			a.units, a.rounds = uint32(peer), trips
			q.do(func() error { return streams[i].Launch(r.common.kernels[flagsKernel], 1, 32, a.pointer()) })
		}
		return q.err
	}, c.Abort)
	if err != nil {
		return 0, err
	}
	return Median(times) / (2 * trips), c.Check()
}
