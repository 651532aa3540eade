// Package driver is the part of the CUDA driver API that tutti uses, without cgo
// and without the CUDA toolkit: the NVIDIA driver's libcuda.so.1 is opened while
// the program runs, and where there is none, only [Load] fails.
//
// Every [GPU] has an operating system thread of its own, on which its primary
// context is current. All methods send their work there, so that they can be
// called from any goroutine. An [Error] names the call, the GPU and what to do.
package driver

import (
	"fmt"
	"sync"
	"unsafe"

	"tutti/backend/dynlib"
)

// Library is the shared library of the NVIDIA driver.
const Library = "libcuda.so.1"

// Pointer is an address in a GPU's memory. Addresses are unique over all GPUs
// and the host.
type Pointer uint64

// result is a CUresult; 0 is success.
type result int32

// Handles of the driver's objects.
type (
	primary  uintptr
	module   uintptr
	function uintptr
	stream   uintptr
	event    uintptr
	graph    uintptr
	exec     uintptr
	device   int32
)

// api holds the driver's functions. The versions (_v2, …) are those that CUDA
// 12 and 13 headers give the plain names.
type api struct {
	Init              func(flags uint32) result                                                                              `c:"cuInit"`
	DriverGetVersion  func(version *int32) result                                                                            `c:"cuDriverGetVersion"`
	GetErrorName      func(code result, text **byte) result                                                                  `c:"cuGetErrorName"`
	GetErrorString    func(code result, text **byte) result                                                                  `c:"cuGetErrorString"`
	DeviceGetCount    func(count *int32) result                                                                              `c:"cuDeviceGetCount"`
	DeviceGet         func(d *device, ordinal int32) result                                                                  `c:"cuDeviceGet"`
	DeviceGetName     func(text *byte, size int32, d device) result                                                          `c:"cuDeviceGetName"`
	DeviceGetBusID    func(text *byte, size int32, d device) result                                                          `c:"cuDeviceGetPCIBusId"`
	DeviceGetAttr     func(value *int32, attribute int32, d device) result                                                   `c:"cuDeviceGetAttribute"`
	DeviceTotalMem    func(bytes *uint64, d device) result                                                                   `c:"cuDeviceTotalMem_v2"`
	DeviceCanPeer     func(can *int32, d, peer device) result                                                                `c:"cuDeviceCanAccessPeer"`
	CtxRetain         func(c *primary, d device) result                                                                      `c:"cuDevicePrimaryCtxRetain"`
	CtxRelease        func(d device) result                                                                                  `c:"cuDevicePrimaryCtxRelease_v2"`
	CtxSetCurrent     func(c primary) result                                                                                 `c:"cuCtxSetCurrent"`
	CtxSynchronize    func() result                                                                                          `c:"cuCtxSynchronize"`
	CtxEnablePeer     func(peer primary, flags uint32) result                                                                `c:"cuCtxEnablePeerAccess"`
	MemAlloc          func(p *Pointer, bytes uint64) result                                                                  `c:"cuMemAlloc_v2"`
	MemFree           func(p Pointer) result                                                                                 `c:"cuMemFree_v2"`
	MemHostAlloc      func(p *unsafe.Pointer, bytes uint64, flags uint32) result                                             `c:"cuMemHostAlloc"`
	MemFreeHost       func(p unsafe.Pointer) result                                                                          `c:"cuMemFreeHost"`
	MemsetD8          func(p Pointer, value uint8, bytes uint64) result                                                      `c:"cuMemsetD8_v2"`
	MemcpyHtoD        func(to Pointer, from unsafe.Pointer, bytes uint64) result                                             `c:"cuMemcpyHtoD_v2"`
	MemcpyDtoH        func(to unsafe.Pointer, from Pointer, bytes uint64) result                                             `c:"cuMemcpyDtoH_v2"`
	MemcpyAsync       func(to, from Pointer, bytes uint64, s stream) result                                                  `c:"cuMemcpyAsync"`
	ModuleLoad        func(m *module, image *byte, n uint32, options *int32, values *uintptr) result                         `c:"cuModuleLoadDataEx"`
	ModuleUnload      func(m module) result                                                                                  `c:"cuModuleUnload"`
	ModuleGetFunction func(f *function, m module, name string) result                                                        `c:"cuModuleGetFunction"`
	FuncGetAttribute  func(value *int32, attribute int32, f function) result                                                 `c:"cuFuncGetAttribute"`
	FuncLoad          func(f function) result                                                                                `c:"cuFuncLoad,optional"`
	Occupancy         func(blocks *int32, f function, threads int32, shared uint64) result                                   `c:"cuOccupancyMaxActiveBlocksPerMultiprocessor"`
	LaunchKernel      func(f function, gx, gy, gz, bx, by, bz, shared uint32, s stream, params, extra unsafe.Pointer) result `c:"cuLaunchKernel"`
	LaunchKernelEx    func(config *launchConfig, f function, params, extra unsafe.Pointer) result                            `c:"cuLaunchKernelEx"`
	StreamCreate      func(s *stream, flags uint32) result                                                                   `c:"cuStreamCreate"`
	StreamDestroy     func(s stream) result                                                                                  `c:"cuStreamDestroy_v2"`
	StreamSynchronize func(s stream) result                                                                                  `c:"cuStreamSynchronize"`
	StreamQuery       func(s stream) result                                                                                  `c:"cuStreamQuery"`
	StreamWaitEvent   func(s stream, e event, flags uint32) result                                                           `c:"cuStreamWaitEvent"`
	BeginCapture      func(s stream, mode uint32) result                                                                     `c:"cuStreamBeginCapture_v2"`
	EndCapture        func(s stream, g *graph) result                                                                        `c:"cuStreamEndCapture"`
	GraphInstantiate  func(x *exec, g graph, flags uint64) result                                                            `c:"cuGraphInstantiateWithFlags"`
	GraphUpload       func(x exec, s stream) result                                                                          `c:"cuGraphUpload"`
	GraphLaunch       func(x exec, s stream) result                                                                          `c:"cuGraphLaunch"`
	GraphDestroy      func(g graph) result                                                                                   `c:"cuGraphDestroy"`
	GraphExecDestroy  func(x exec) result                                                                                    `c:"cuGraphExecDestroy"`
	EventCreate       func(e *event, flags uint32) result                                                                    `c:"cuEventCreate"`
	EventDestroy      func(e event) result                                                                                   `c:"cuEventDestroy_v2"`
	EventRecord       func(e event, s stream, flags uint32) result                                                           `c:"cuEventRecordWithFlags"`
	EventElapsed      func(ms *float32, from, to event) result                                                               `c:"cuEventElapsedTime"`

	MulticastCreate      func(h *memHandle, prop *multicastProp) result                               `c:"cuMulticastCreate,optional"`
	MulticastAddDevice   func(h memHandle, d device) result                                           `c:"cuMulticastAddDevice,optional"`
	MulticastBindMem     func(h memHandle, at uint64, mem memHandle, from, size, flags uint64) result `c:"cuMulticastBindMem,optional"`
	MulticastUnbind      func(h memHandle, d device, at, size uint64) result                          `c:"cuMulticastUnbind,optional"`
	MulticastGranularity func(size *uint64, prop *multicastProp, option uint32) result                `c:"cuMulticastGetGranularity,optional"`
	MemCreate            func(h *memHandle, size uint64, prop *allocationProp, flags uint64) result   `c:"cuMemCreate"`
	MemRelease           func(h memHandle) result                                                     `c:"cuMemRelease"`
	MemAddressReserve    func(p *Pointer, size, align uint64, at Pointer, flags uint64) result        `c:"cuMemAddressReserve"`
	MemAddressFree       func(p Pointer, size uint64) result                                          `c:"cuMemAddressFree"`
	MemMap               func(p Pointer, size, offset uint64, h memHandle, flags uint64) result       `c:"cuMemMap"`
	MemUnmap             func(p Pointer, size uint64) result                                          `c:"cuMemUnmap"`
	MemSetAccess         func(p Pointer, size uint64, desc *accessDesc, count uint64) result          `c:"cuMemSetAccess"`
}

var cu api

// Load opens the driver and initialises it, once. The error says what is
// missing.
var Load = sync.OnceValue(func() error {
	if err := dynlib.Open(&cu, Library); err != nil {
		return fmt.Errorf("no NVIDIA driver: %w", err)
	}
	return check("cuInit", -1, cu.Init(0))
})

// Version returns the newest version of CUDA that the driver runs, as in 13000
// for 13.0.
func Version() (int, error) {
	if err := Load(); err != nil {
		return 0, err
	}
	var v int32
	err := check("cuDriverGetVersion", -1, cu.DriverGetVersion(&v))
	return int(v), err
}

// Count returns how many GPUs there are.
func Count() (int, error) {
	if err := Load(); err != nil {
		return 0, err
	}
	var n int32
	err := check("cuDeviceGetCount", -1, cu.DeviceGetCount(&n))
	return int(n), err
}
