package driver

import (
	"bytes"
	"fmt"
	"runtime"
)

// GPU is one GPU with its primary context, which the CUDA runtime and so NCCL
// share.
type GPU struct {
	Index int
	// Name is the model, as in "NVIDIA H200"; BusID its PCI address.
	Name, BusID string
	// SM is the compute capability times ten: 90 for Hopper.
	SM int
	// Multiprocessors is how many there are: 132 in an H200.
	Multiprocessors int
	// Memory is how many bytes there are.
	Memory uint64
	// Multicast says that the GPU can take part in NVLink multicast (NVLS).
	Multicast bool

	device  device
	context primary
	work    chan func()
}

// Attributes of CUdevice_attribute.
const (
	attributeMultiprocessors = 16
	attributeMajor           = 75
	attributeMinor           = 76
	attributeMulticast       = 132
)

// Open retains the primary context of a GPU and starts its thread. Close ends
// both.
func Open(index int) (*GPU, error) {
	if err := Load(); err != nil {
		return nil, err
	}
	g := &GPU{Index: index, work: make(chan func())}
	go g.serve()
	if err := g.Do(g.open); err != nil {
		close(g.work)
		return nil, err
	}
	return g, nil
}

func (g *GPU) serve() {
	runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
	for f := range g.work {
		f()
	}
}

// Do runs f on the GPU's thread, where its context is current. Inside f none of
// the GPU's methods may be called.
func (g *GPU) Do(f func() error) error {
	done := make(chan error, 1)
	g.work <- func() { done <- f() }
	return <-done
}

func (g *GPU) open() error {
	if err := g.check("cuDeviceGet", cu.DeviceGet(&g.device, int32(g.Index))); err != nil {
		return err
	}
	text := make([]byte, 256)
	if err := g.check("cuDeviceGetName", cu.DeviceGetName(&text[0], int32(len(text)), g.device)); err != nil {
		return err
	}
	g.Name = cString(text)
	if err := g.check("cuDeviceGetPCIBusId", cu.DeviceGetBusID(&text[0], int32(len(text)), g.device)); err != nil {
		return err
	}
	g.BusID = cString(text)
	values := map[int32]int32{attributeMultiprocessors: 0, attributeMajor: 0, attributeMinor: 0, attributeMulticast: 0}
	for a := range values {
		var v int32
		if err := g.check("cuDeviceGetAttribute", cu.DeviceGetAttr(&v, a, g.device)); err != nil {
			return err
		}
		values[a] = v
	}
	g.Multiprocessors = int(values[attributeMultiprocessors])
	g.SM = int(values[attributeMajor]*10 + values[attributeMinor])
	g.Multicast = values[attributeMulticast] != 0
	if err := g.check("cuDeviceTotalMem", cu.DeviceTotalMem(&g.Memory, g.device)); err != nil {
		return err
	}
	if err := g.check("cuDevicePrimaryCtxRetain", cu.CtxRetain(&g.context, g.device)); err != nil {
		return err
	}
	return g.check("cuCtxSetCurrent", cu.CtxSetCurrent(g.context))
}

// Close releases the context and ends the GPU's thread.
func (g *GPU) Close() error {
	err := g.Do(func() error { return g.check("cuDevicePrimaryCtxRelease", cu.CtxRelease(g.device)) })
	close(g.work)
	return err
}

// Sync waits until all work of the GPU is done.
func (g *GPU) Sync() error {
	return g.Do(func() error { return g.check("cuCtxSynchronize", cu.CtxSynchronize()) })
}

// CanReach tells whether the GPU can be given access to a peer's memory.
func (g *GPU) CanReach(peer *GPU) (bool, error) {
	var can int32
	err := g.Do(func() error {
		return g.check("cuDeviceCanAccessPeer", cu.DeviceCanPeer(&can, g.device, peer.device))
	})
	return can != 0, err
}

const errorPeerAlreadyEnabled = 704

// Reach gives the GPU access to all memory of a peer that is or will be
// allocated by [GPU.Alloc].
func (g *GPU) Reach(peer *GPU) error {
	if can, err := g.CanReach(peer); err != nil {
		return err
	} else if !can {
		return fmt.Errorf("GPU %d cannot reach the memory of GPU %d: want GPUs joined by NVLink (nvidia-smi topo -m)", g.Index, peer.Index)
	}
	return g.Do(func() error {
		r := cu.CtxEnablePeer(peer.context, 0)
		if r == errorPeerAlreadyEnabled {
			return nil
		}
		return g.check("cuCtxEnablePeerAccess", r)
	})
}

func (g *GPU) check(call string, r result) error { return check(call, g.Index, r) }

// cString returns the text up to the first zero byte.
func cString(text []byte) string {
	end := bytes.IndexByte(text, 0)
	return string(text[:end])
}
