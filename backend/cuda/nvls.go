package cuda

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strings"

	"tutti/backend/cuda/driver"
	"tutti/kernels"
	"tutti/model"
)

// ErrMulticastLocked is the reason of every refusal to use NVLink multicast.
var ErrMulticastLocked = errors.New("NVLink multicast is locked")

// UnlockMulticast tells whether NVLink multicast may be used. A program that uses
// it on a shared host can put the GPUs of all its users out of service, so it
// must be asked for, NCCL_NVLS_ENABLE must not be 0, and every GPU must have it.
func UnlockMulticast(asked bool, gpus []*driver.GPU) error {
	return unlockMulticast(asked, os.Getenv("NCCL_NVLS_ENABLE"), gpus)
}

func unlockMulticast(asked bool, enable string, gpus []*driver.GPU) error {
	switch {
	case strings.TrimSpace(enable) == "0":
		return fmt.Errorf("%w: NCCL_NVLS_ENABLE is 0 on this host", ErrMulticastLocked)
	case !asked:
		return fmt.Errorf("%w: it must be asked for, and only where no one else uses the GPUs of this host", ErrMulticastLocked)
	}
	for _, g := range gpus {
		if !g.Multicast {
			return fmt.Errorf("%w: GPU %d (%s) does not support it", ErrMulticastLocked, g.Index, g.Name)
		}
	}
	return nil
}

// nvlsKernel is AllReduce by multimem instructions.
const nvlsKernel = "nvls_twoshot"

// NVLS is a communicator's multicast memory, in which its calls must have their
// buffers: input at the beginning, output behind Room bytes.
type NVLS struct {
	comm   *Comm
	memory *driver.Multicast
	room   int64
	loaded map[model.Datatype][]*module
}

// OpenNVLS makes multicast memory for calls of up to room bytes. The error is
// [ErrMulticastLocked] unless [UnlockMulticast] allows it.
func (c *Comm) OpenNVLS(asked bool, room int64) (*NVLS, error) {
	gpus := make([]*driver.GPU, len(c.ranks))
	for i, r := range c.ranks {
		gpus[i] = r.gpu
	}
	if err := UnlockMulticast(asked, gpus); err != nil {
		return nil, err
	}
	room = (room + align - 1) / align * align
	memory, err := driver.NewMulticast(gpus, 2*room)
	if err != nil {
		return nil, err
	}
	return &NVLS{comm: c, memory: memory, room: room, loaded: map[model.Datatype][]*module{}}, nil
}

// Buffers returns each rank's own input and output.
func (n *NVLS) Buffers() (input, output []driver.Pointer) {
	for _, p := range n.memory.Own {
		input, output = append(input, p), append(output, p+driver.Pointer(n.room))
	}
	return input, output
}

// Close frees the memory. No call may be under way.
func (n *NVLS) Close() error {
	errs := []error{n.memory.Free()}
	for _, modules := range n.loaded {
		for _, m := range modules {
			errs = append(errs, m.unload())
		}
	}
	return errors.Join(errs...)
}

// AllReduce queues a sum of count elements on a stream of each rank: each rank
// loads its chunk of all inputs, summed by the switch, and stores it into all
// outputs at once.
func (n *NVLS) AllReduce(count int64, d model.Datatype, launch Launch, streams []*driver.Stream) error {
	bytes := uint64(count) * uint64(d.Size())
	if bytes%packBytes != 0 || int64(bytes) > n.room {
		return fmt.Errorf("NVLS of %d bytes: want a multiple of %d up to %d", bytes, packBytes, n.room)
	}
	l := n.comm.layout
	l.scratchPacks = math.MaxUint32 // it needs none
	s, err := l.fit(Launch{Algorithm: TwoShotPush, Blocks: launch.Blocks, Threads: launch.Threads}, bytes, len(n.comm.ranks))
	if err != nil {
		return err
	}
	modules, err := n.load(d)
	if err != nil {
		return err
	}
	call := Call{Input: n.memory.All, Output: make([]driver.Pointer, len(n.memory.All)), Count: count, Datatype: d}
	for i, p := range n.memory.All {
		call.Output[i] = p + driver.Pointer(n.room)
	}
	for i := range n.comm.ranks {
		a := n.comm.args(call, i)
		a.units, a.chunk, a.extra, a.stripe, a.rounds = s.units, s.chunk, s.extra, s.stripe, 1
		if err := streams[i].LaunchOverlapped(modules[i].kernels[nvlsKernel], s.blocks, launch.Threads, a.pointer()); err != nil {
			return err
		}
	}
	return nil
}

func (n *NVLS) load(d model.Datatype) ([]*module, error) {
	if m := n.loaded[d]; m != nil {
		return m, nil
	}
	ptx, err := kernels.PTX("nvls_" + d.String())
	if err != nil {
		return nil, err
	}
	modules := make([]*module, len(n.comm.ranks))
	for i := range modules {
		modules[i] = &module{}
		if err := modules[i].add(n.comm, ptx, i, []string{nvlsKernel}); err != nil {
			for _, m := range modules[:i+1] {
				err = errors.Join(err, m.unload())
			}
			return nil, err
		}
	}
	n.loaded[d] = modules
	return modules, nil
}
