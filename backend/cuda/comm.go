// Package cuda runs collectives on the GPUs of one host through the CUDA driver
// and the kernels of tutti/kernels. One process drives all GPUs; they read and
// write one another's memory over NVLink.
package cuda

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"tutti/backend/cuda/driver"
)

// Comm is a communicator: a rank for each of its GPUs, with the memory in which
// they meet. Calls on it must be queued in the same order on all ranks.
type Comm struct {
	options Options
	layout  layout
	ranks   []*rank
	modules map[moduleKey][]*module
	aborted bool // since the last reset
}

// Options are the settings of a communicator; zero values stand for defaults.
type Options struct {
	// Scratch is the memory for what peers push, of each rank; default 512 MiB.
	Scratch int64
	// Timeout is how long a kernel waits for a peer before it gives up; default
	// 10 s.
	Timeout time.Duration
}

type rank struct {
	gpu    *driver.GPU
	region driver.Pointer
	// fault has two words: what a wait that timed out waited for; and a 1, which
	// Abort copies to where waits look.
	fault  *driver.Host
	aborts *driver.Stream
	common *module // kernels that are the same for all datatypes
	lanes  *lanes
}

// New joins GPUs to a communicator, a rank each. A GPU may stand for several
// ranks, which tests use.
func New(gpus []*driver.GPU, options Options) (*Comm, error) {
	if len(gpus) < 2 || len(gpus) > maxRanks {
		return nil, fmt.Errorf("a communicator of %d GPUs: want 2 to %d", len(gpus), maxRanks)
	}
	if options.Scratch == 0 {
		options.Scratch = 512 << 20
	}
	if options.Timeout == 0 {
		options.Timeout = 10 * time.Second
	}
	c := &Comm{options: options, layout: newLayout(len(gpus), options.Scratch), modules: map[moduleKey][]*module{}}
	for _, g := range gpus {
		for _, peer := range gpus {
			if g == peer {
				continue
			}
			if err := g.Reach(peer); err != nil {
				return nil, errors.Join(err, c.Close())
			}
		}
		r := &rank{gpu: g}
		c.ranks = append(c.ranks, r)
		var err error
		if r.region, err = g.Alloc(c.layout.bytes); err != nil {
			return nil, errors.Join(fmt.Errorf("the communicator's memory: %w", err), c.Close())
		}
		if r.fault, err = g.AllocHost(16); err != nil {
			return nil, errors.Join(err, c.Close())
		}
		r.fault.Data[8] = 1
		if r.aborts, err = g.NewStream(); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	if _, err := c.loadCommon(commonKernels...); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	if err := c.Reset(); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// Ranks returns how many ranks there are.
func (c *Comm) Ranks() int { return len(c.ranks) }

// sharing returns how many ranks a GPU stands for.
func (c *Comm) sharing(g *driver.GPU) (n int) {
	for _, r := range c.ranks {
		if r.gpu == g {
			n++
		}
	}
	return n
}

// Reset brings the communicator back to its first state after a fault. No call
// may be under way.
func (c *Comm) Reset() error {
	c.aborted = false
	for _, r := range c.ranks {
		clear(r.fault.Data[:8])
		if err := r.gpu.Fill(r.region, 0, int64(c.layout.scratch)); err != nil {
			return err
		}
	}
	return nil
}

// Abort ends the waits of all calls that are under way, so that these run through
// at once; their results are void. Wait for the streams, then [Comm.Reset].
func (c *Comm) Abort() error {
	c.aborted = true
	for _, r := range c.ranks {
		if err := r.aborts.Copy(r.region, r.fault.Pointer()+8, 4); err != nil { // Control.stop
			return err
		}
	}
	for _, r := range c.ranks { // so that it is there before a reset
		if err := r.aborts.Sync(); err != nil {
			return err
		}
	}
	return nil
}

// TimeoutError says that a rank waited for its peers in vain.
type TimeoutError struct {
	Rank, GPU, Block int
	After            time.Duration
}

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("rank %d (GPU %d) waited %v for a peer in block %d: a rank did not take part, or other work holds its GPU; results are void", e.Rank, e.GPU, e.After, e.Block)
}

// Check returns the faults of calls that have ended; after one, [Comm.Reset].
func (c *Comm) Check() error {
	var faults []error
	for i, r := range c.ranks {
		if word := binary.LittleEndian.Uint64(r.fault.Data); word != 0 {
			faults = append(faults, &TimeoutError{Rank: i, GPU: r.gpu.Index, Block: int(word >> 16 & 0xffff), After: c.options.Timeout})
		}
	}
	return errors.Join(faults...)
}

// Close frees what the communicator holds. No call may be under way.
func (c *Comm) Close() error {
	var errs []error
	for _, modules := range c.modules {
		for _, m := range modules {
			errs = append(errs, m.unload())
		}
	}
	for _, r := range c.ranks {
		if r.common != nil {
			errs = append(errs, r.common.unload())
		}
		errs = append(errs, r.lanes.close(), r.gpu.Free(r.region))
		if r.aborts != nil {
			errs = append(errs, r.aborts.Destroy())
		}
		if r.fault != nil {
			errs = append(errs, r.fault.Free())
		}
	}
	c.ranks = nil
	return errors.Join(errs...)
}
