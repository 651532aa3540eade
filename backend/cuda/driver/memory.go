package driver

import (
	"fmt"
	"runtime"
	"unsafe"
)

// Alloc takes memory of the GPU, aligned to at least 256 bytes.
func (g *GPU) Alloc(bytes int64) (p Pointer, err error) {
	err = g.Do(func() error {
		if err := g.check("cuMemAlloc", cu.MemAlloc(&p, uint64(bytes))); err != nil {
			return fmt.Errorf("allocating %d bytes: %w", bytes, err)
		}
		return nil
	})
	return p, err
}

// Free gives memory back; freeing 0 does nothing.
func (g *GPU) Free(p Pointer) error {
	if p == 0 {
		return nil
	}
	return g.Do(func() error { return g.check("cuMemFree", cu.MemFree(p)) })
}

// Fill sets every byte of memory, and waits for it.
func (g *GPU) Fill(p Pointer, value byte, bytes int64) error {
	return g.Do(func() error {
		if err := g.check("cuMemsetD8", cu.MemsetD8(p, value, uint64(bytes))); err != nil {
			return err
		}
		return g.check("cuCtxSynchronize", cu.CtxSynchronize())
	})
}

// Put copies data to the GPU, and waits for it.
func (g *GPU) Put(to Pointer, from []byte) error {
	if len(from) == 0 {
		return nil
	}
	return g.Do(func() error {
		if err := g.check("cuMemcpyHtoD", cu.MemcpyHtoD(to, unsafe.Pointer(&from[0]), uint64(len(from)))); err != nil {
			return err
		}
		return g.check("cuCtxSynchronize", cu.CtxSynchronize())
	})
}

// Copy queues a copy within the GPU's memory, before later calls of Sync.
func (g *GPU) Copy(to, from Pointer, bytes int64) error {
	return g.Do(func() error { return g.check("cuMemcpyAsync", cu.MemcpyAsync(to, from, uint64(bytes), 0)) })
}

// Get copies data from the GPU.
func (g *GPU) Get(to []byte, from Pointer) error {
	if len(to) == 0 {
		return nil
	}
	return g.Do(func() error {
		return g.check("cuMemcpyDtoH", cu.MemcpyDtoH(unsafe.Pointer(&to[0]), from, uint64(len(to))))
	})
}

// Host is memory of the host, pinned, that all GPUs can read and write.
type Host struct {
	gpu  *GPU
	base unsafe.Pointer
	Data []byte
}

// Flags of cuMemHostAlloc: seen by all contexts, at the same address.
const hostPortable, hostMapped = 1, 2

// AllocHost takes pinned memory of the host, set to zero.
func (g *GPU) AllocHost(bytes int) (*Host, error) {
	h := &Host{gpu: g}
	err := g.Do(func() error {
		return g.check("cuMemHostAlloc", cu.MemHostAlloc(&h.base, uint64(bytes), hostPortable|hostMapped))
	})
	if err != nil {
		return nil, err
	}
	h.Data = unsafe.Slice((*byte)(h.base), bytes)
	clear(h.Data)
	return h, nil
}

// Pointer returns the memory's address, which is the same on GPUs and host.
func (h *Host) Pointer() Pointer { return Pointer(uintptr(h.base)) }

// Free gives the memory back.
func (h *Host) Free() error {
	return h.gpu.Do(func() error { return h.gpu.check("cuMemFreeHost", cu.MemFreeHost(h.base)) })
}

// Module is a set of kernels on one GPU.
type Module struct {
	gpu    *GPU
	handle module
}

// Options of CUjit_option.
const jitErrorLog, jitErrorLogSize = 5, 6

// LoadModule compiles PTX for the GPU, or takes a cubin as it is.
func (g *GPU) LoadModule(image []byte) (*Module, error) {
	m := &Module{gpu: g}
	text := append(append([]byte{}, image...), 0) // PTX ends with a zero byte
	log := make([]byte, 8192)
	options := []int32{jitErrorLog, jitErrorLogSize}
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(&log[0])
	values := []uintptr{uintptr(unsafe.Pointer(&log[0])), uintptr(len(log))}
	err := g.Do(func() error {
		r := cu.ModuleLoad(&m.handle, &text[0], uint32(len(options)), &options[0], &values[0])
		if err := g.check("cuModuleLoadDataEx", r); err != nil {
			if why := cString(append(log, 0)); why != "" {
				return fmt.Errorf("%w\n%s", err, why)
			}
			return err
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

// Unload frees the module; no kernel of it may run.
func (m *Module) Unload() error {
	return m.gpu.Do(func() error { return m.gpu.check("cuModuleUnload", cu.ModuleUnload(m.handle)) })
}

// Kernel is one kernel of a module.
type Kernel struct {
	gpu    *GPU
	name   string
	handle function
	// Registers and Local are what a thread uses: registers, and bytes of local
	// memory (spills, above all).
	Registers, Local int
}

// Attributes of CUfunction_attribute.
const attributeLocalBytes, attributeRegisters = 3, 4

// Kernel finds a kernel by its name and loads it, so that its first launch does
// not wait for kernels that are running.
func (m *Module) Kernel(name string) (*Kernel, error) {
	g := m.gpu
	k := &Kernel{gpu: g, name: name}
	err := g.Do(func() error {
		if err := g.check("cuModuleGetFunction "+name, cu.ModuleGetFunction(&k.handle, m.handle, name)); err != nil {
			return err
		}
		if cu.FuncLoad != nil {
			if err := g.check("cuFuncLoad "+name, cu.FuncLoad(k.handle)); err != nil {
				return err
			}
		}
		for attribute, to := range map[int32]*int{attributeLocalBytes: &k.Local, attributeRegisters: &k.Registers} {
			var v int32
			if err := g.check("cuFuncGetAttribute "+name, cu.FuncGetAttribute(&v, attribute, k.handle)); err != nil {
				return err
			}
			*to = int(v)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return k, nil
}

// Resident returns how many blocks of the given threads run at once on the GPU:
// those that wait for one another must not be more.
func (k *Kernel) Resident(threads int) (blocks int, err error) {
	var each int32
	err = k.gpu.Do(func() error {
		return k.gpu.check("cuOccupancyMaxActiveBlocksPerMultiprocessor "+k.name, cu.Occupancy(&each, k.handle, int32(threads), 0))
	})
	return int(each) * k.gpu.Multiprocessors, err
}
