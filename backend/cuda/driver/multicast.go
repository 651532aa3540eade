package driver

import (
	"errors"
	"fmt"
)

// The driver's structs for memory that several GPUs map (cuda.h, 12.1 and later).
type (
	multicastProp struct { // CUmulticastObjectProp
		devices uint32
		_       uint32
		size    uint64
		_       uint64 // handle types: none, all is in one process
		_       uint64 // flags
	}
	location struct { // CUmemLocation
		kind uint32
		id   int32
	}
	allocationProp struct { // CUmemAllocationProp
		kind     uint32
		_        uint32 // handle types
		location location
		_        uintptr // of Windows
		_        uint64  // flags
	}
	accessDesc struct { // CUmemAccessDesc
		location location
		flags    uint32
	}
	memHandle uint64
)

const (
	allocationPinned       = 1
	locationDevice         = 1
	accessReadWrite        = 3
	granularityRecommended = 1
)

// Multicast is memory of the same size on each of several GPUs, with one address
// on each GPU for its own part and one for all parts at once, which only
// multimem instructions may use.
type Multicast struct {
	gpus []*GPU
	size uint64
	all  memHandle
	mine []memHandle
	// Own and All are the two addresses on each GPU.
	Own, All []Pointer
}

// NewMulticast makes multicast memory of at least the given size. On failure it
// frees what it has made on every GPU, so that all fall back together. It must
// not be called on a shared host without its owner's leave: multicast can put the
// host's NVSwitches out of service.
func NewMulticast(gpus []*GPU, bytes int64) (m *Multicast, err error) {
	if cu.MulticastCreate == nil {
		return nil, errors.New("the driver has no multicast: want one for CUDA 12.1 or later")
	}
	n := len(gpus)
	m = &Multicast{gpus: gpus, mine: make([]memHandle, n), Own: make([]Pointer, n), All: make([]Pointer, n)}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("multicast memory: %w", err), m.Free())
		}
	}()
	first := gpus[0]
	prop := &multicastProp{devices: uint32(n), size: uint64(bytes)}
	err = first.Do(func() error {
		var granularity uint64
		if err := first.check("cuMulticastGetGranularity", cu.MulticastGranularity(&granularity, prop, granularityRecommended)); err != nil {
			return err
		}
		m.size = (prop.size + granularity - 1) / granularity * granularity
		prop.size = m.size
		return first.check("cuMulticastCreate", cu.MulticastCreate(&m.all, prop))
	})
	if err != nil {
		return m, err
	}
	// Binding waits until every GPU has been added, so these come first.
	for _, g := range gpus {
		if err := g.Do(func() error { return g.check("cuMulticastAddDevice", cu.MulticastAddDevice(m.all, g.device)) }); err != nil {
			return m, err
		}
	}
	for i, g := range gpus {
		if err := g.Do(func() error { return m.bind(i, g) }); err != nil {
			return m, err
		}
	}
	return m, nil
}

// bind takes a GPU's memory, puts it behind the common address and maps both.
func (m *Multicast) bind(i int, g *GPU) error {
	here := location{kind: locationDevice, id: int32(g.device)}
	prop := &allocationProp{kind: allocationPinned, location: here}
	if err := g.check("cuMemCreate", cu.MemCreate(&m.mine[i], m.size, prop, 0)); err != nil {
		return err
	}
	if err := g.check("cuMulticastBindMem", cu.MulticastBindMem(m.all, 0, m.mine[i], 0, m.size, 0)); err != nil {
		return err
	}
	access := &accessDesc{location: here, flags: accessReadWrite}
	for to, handle := range map[*Pointer]memHandle{&m.Own[i]: m.mine[i], &m.All[i]: m.all} {
		if err := g.check("cuMemAddressReserve", cu.MemAddressReserve(to, m.size, 0, 0, 0)); err != nil {
			return err
		}
		if err := g.check("cuMemMap", cu.MemMap(*to, m.size, 0, handle, 0)); err != nil {
			return err
		}
		if err := g.check("cuMemSetAccess", cu.MemSetAccess(*to, m.size, access, 1)); err != nil {
			return err
		}
	}
	return nil
}

// Free takes apart what there is of the memory.
func (m *Multicast) Free() error {
	var errs []error
	for i, g := range m.gpus {
		errs = append(errs, g.Do(func() error {
			var errs []error
			for _, p := range []Pointer{m.Own[i], m.All[i]} {
				if p != 0 {
					errs = append(errs, g.check("cuMemUnmap", cu.MemUnmap(p, m.size)), g.check("cuMemAddressFree", cu.MemAddressFree(p, m.size)))
				}
			}
			if m.mine[i] != 0 {
				errs = append(errs,
					g.check("cuMulticastUnbind", cu.MulticastUnbind(m.all, g.device, 0, m.size)),
					g.check("cuMemRelease", cu.MemRelease(m.mine[i])))
			}
			return errors.Join(errs...)
		}))
	}
	if m.all != 0 {
		g := m.gpus[0]
		errs = append(errs, g.Do(func() error { return g.check("cuMemRelease", cu.MemRelease(m.all)) }))
	}
	return errors.Join(errs...)
}
