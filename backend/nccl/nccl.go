// Package nccl runs collectives through NCCL on the GPUs of package
// cuda/driver, as the peer to compare with. Its library is opened while the
// program runs, so that tutti needs it neither to build nor to start.
package nccl

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"tutti/backend/cuda/driver"
	"tutti/backend/dynlib"
	"tutti/model"
)

// Library is NCCL's shared library. It is searched for as the system's loader
// does: LD_LIBRARY_PATH, then the system's folders.
const Library = "libnccl.so.2"

// result is an ncclResult_t; 0 is success.
type result int32

type api struct {
	GetVersion       func(version *int32) result                                                                        `c:"ncclGetVersion"`
	GetErrorString   func(code result) string                                                                           `c:"ncclGetErrorString"`
	GetLastError     func(comm uintptr) string                                                                          `c:"ncclGetLastError"`
	CommInitAll      func(comms *uintptr, n int32, devices *int32) result                                               `c:"ncclCommInitAll"`
	CommDestroy      func(comm uintptr) result                                                                          `c:"ncclCommDestroy"`
	GroupStart       func() result                                                                                      `c:"ncclGroupStart"`
	GroupEnd         func() result                                                                                      `c:"ncclGroupEnd"`
	AllReduce        func(from, to driver.Pointer, count uint64, datatype, op int32, comm, stream uintptr) result       `c:"ncclAllReduce"`
	AllGather        func(from, to driver.Pointer, count uint64, datatype int32, comm, stream uintptr) result           `c:"ncclAllGather"`
	ReduceScatter    func(from, to driver.Pointer, count uint64, datatype, op int32, comm, stream uintptr) result       `c:"ncclReduceScatter"`
	Broadcast        func(from, to driver.Pointer, count uint64, datatype, root int32, comm, stream uintptr) result     `c:"ncclBroadcast"`
	Reduce           func(from, to driver.Pointer, count uint64, datatype, op, root int32, comm, stream uintptr) result `c:"ncclReduce"`
	Send             func(from driver.Pointer, count uint64, datatype, peer int32, comm, stream uintptr) result         `c:"ncclSend"`
	Recv             func(to driver.Pointer, count uint64, datatype, peer int32, comm, stream uintptr) result           `c:"ncclRecv"`
	MemAlloc         func(p *driver.Pointer, bytes uint64) result                                                       `c:"ncclMemAlloc,optional"`
	MemFree          func(p driver.Pointer) result                                                                      `c:"ncclMemFree,optional"`
	WindowRegister   func(comm uintptr, p driver.Pointer, bytes uint64, window *uintptr, flags int32) result            `c:"ncclCommWindowRegister,optional"`
	WindowDeregister func(comm uintptr, window uintptr) result                                                          `c:"ncclCommWindowDeregister,optional"`
}

var lib api

// Load opens NCCL, once. The error says what is missing.
//
// Unless the user has said otherwise, it sets NCCL_SET_STACK_SIZE to 1, which NCCL
// recommends against hangs by CUDA's memory reconfiguration: a kernel that needs more
// local memory than those before it waits until the GPUs that can reach it are idle,
// which they are not while the ranks launched before it wait for its own. One process
// drives all ranks here, and package cuda lets all GPUs reach one another.
var Load = sync.OnceValue(func() error {
	const stack = "NCCL_SET_STACK_SIZE"
	if _, said := os.LookupEnv(stack); !said {
		if err := os.Setenv(stack, "1"); err != nil {
			return err
		}
	}
	if err := dynlib.Open(&lib, Library, "libnccl.so"); err != nil {
		return fmt.Errorf("no NCCL: %w (LD_LIBRARY_PATH can name its folder)", err)
	}
	return nil
})

// Version returns NCCL's version, as in "2.28.9".
func Version() (string, error) {
	if err := Load(); err != nil {
		return "", err
	}
	var v int32
	if err := check("ncclGetVersion", 0, lib.GetVersion(&v)); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d.%d.%d", v/10000, v/100%100, v%100), nil
}

// Error is a call that NCCL refused.
type Error struct {
	Call string
	Code int
	Text string
	// Detail is NCCL's account of its last error, if any.
	Detail string
}

func (e *Error) Error() string {
	text := fmt.Sprintf("%s: %s (%d)", e.Call, e.Text, e.Code)
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text + ": NCCL_DEBUG=INFO tells more"
}

func check(call string, comm uintptr, r result) error {
	if r == 0 {
		return nil
	}
	return &Error{Call: call, Code: int(r), Text: lib.GetErrorString(r), Detail: lib.GetLastError(comm)}
}

// Comm is a communicator of GPUs of this process, a rank each.
type Comm struct {
	gpus  []*driver.GPU
	comms []uintptr
}

// New joins GPUs to a communicator. NCCL reads its NCCL_… variables now.
func New(gpus []*driver.GPU) (*Comm, error) {
	if err := Load(); err != nil {
		return nil, err
	}
	c := &Comm{gpus: gpus, comms: make([]uintptr, len(gpus))}
	devices := make([]int32, len(gpus))
	for i, g := range gpus {
		devices[i] = int32(g.Index)
	}
	err := gpus[0].Do(func() error {
		return check("ncclCommInitAll", 0, lib.CommInitAll(&c.comms[0], int32(len(gpus)), &devices[0]))
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Close frees the communicator. No call may be under way.
func (c *Comm) Close() error {
	return c.group(func(rank int) error {
		return check("ncclCommDestroy", 0, lib.CommDestroy(c.comms[rank]))
	})
}

// group calls f for every rank inside one NCCL group, from one thread.
func (c *Comm) group(f func(rank int) error) error {
	return c.gpus[0].Do(func() error {
		if err := check("ncclGroupStart", 0, lib.GroupStart()); err != nil {
			return err
		}
		var first error
		for rank := range c.comms {
			if first = f(rank); first != nil {
				break
			}
		}
		if err := check("ncclGroupEnd", c.comms[0], lib.GroupEnd()); first == nil {
			first = err
		}
		return first
	})
}

// Buffers are memory of the same size on every rank.
type Buffers struct {
	comm     *Comm
	Pointers []driver.Pointer
	windows  []uintptr
}

var errNoWindows = fmt.Errorf("%s has no symmetric windows: want NCCL 2.27 or later", Library)

const windowSymmetric = 1 // NCCL_WIN_COLL_SYMMETRIC

// Alloc takes memory from NCCL and, if symmetric, registers it as a window on
// all ranks, which lets NCCL use its symmetric kernels.
func (c *Comm) Alloc(bytes int64, symmetric bool) (_ *Buffers, err error) {
	if lib.MemAlloc == nil || lib.WindowRegister == nil {
		return nil, errNoWindows
	}
	b := &Buffers{comm: c, Pointers: make([]driver.Pointer, len(c.gpus)), windows: make([]uintptr, len(c.gpus))}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.Free())
		}
	}()
	for i, g := range c.gpus {
		err := g.Do(func() error { return check("ncclMemAlloc", 0, lib.MemAlloc(&b.Pointers[i], uint64(bytes))) })
		if err != nil {
			return nil, fmt.Errorf("allocating %d bytes on GPU %d: %w", bytes, g.Index, err)
		}
	}
	if !symmetric {
		return b, nil
	}
	return b, c.group(func(rank int) error {
		r := lib.WindowRegister(c.comms[rank], b.Pointers[rank], uint64(bytes), &b.windows[rank], windowSymmetric)
		return check("ncclCommWindowRegister", c.comms[rank], r)
	})
}

// Free gives the memory back.
func (b *Buffers) Free() error {
	var errs []error
	for i, g := range b.comm.gpus {
		errs = append(errs, g.Do(func() error {
			if b.windows[i] != 0 {
				if err := check("ncclCommWindowDeregister", 0, lib.WindowDeregister(b.comm.comms[i], b.windows[i])); err != nil {
					return err
				}
			}
			if b.Pointers[i] == 0 {
				return nil
			}
			return check("ncclMemFree", 0, lib.MemFree(b.Pointers[i]))
		}))
	}
	return errors.Join(errs...)
}

// datatypes and redops are NCCL's numbers (nccl.h).
var (
	datatypes = map[model.Datatype]int32{
		model.Int8: 0, model.Uint8: 1, model.Int32: 2, model.Uint32: 3, model.Int64: 4, model.Uint64: 5,
		model.Float16: 6, model.Float32: 7, model.Float64: 8, model.BFloat16: 9,
	}
	redops = map[model.Redop]int32{model.Sum: 0, model.Prod: 1, model.Max: 2, model.Min: 3, model.Avg: 4}
)

// Call is a collective of all ranks. Count is that of nccl.h: the elements that
// a rank sends, or receives of a ReduceScatter; of an AllToAll, to each peer.
type Call struct {
	Collective    model.Collective
	Input, Output []driver.Pointer
	Count         int64
	Datatype      model.Datatype
	Redop         model.Redop
	Root          int
}

// Queue queues a call on a stream of each rank, and returns before it is done.
func (c *Comm) Queue(call Call, streams []*driver.Stream) error {
	d, op, n := datatypes[call.Datatype], redops[call.Redop], len(c.comms)
	count, root := uint64(call.Count), int32(call.Root)
	return c.group(func(rank int) error {
		from, to, comm, stream := call.Input[rank], call.Output[rank], c.comms[rank], streams[rank].Handle()
		var r result
		switch call.Collective {
		case model.AllReduce:
			r = lib.AllReduce(from, to, count, d, op, comm, stream)
		case model.AllGather:
			r = lib.AllGather(from, to, count, d, comm, stream)
		case model.ReduceScatter:
			r = lib.ReduceScatter(from, to, count, d, op, comm, stream)
		case model.Broadcast:
			r = lib.Broadcast(from, to, count, d, root, comm, stream)
		case model.Reduce:
			r = lib.Reduce(from, to, count, d, op, root, comm, stream)
		case model.AllToAll:
			bytes := driver.Pointer(count) * driver.Pointer(call.Datatype.Size())
			for peer := range n {
				at := driver.Pointer(peer) * bytes
				if r = lib.Send(from+at, count, d, int32(peer), comm, stream); r != 0 {
					break
				}
				if r = lib.Recv(to+at, count, d, int32(peer), comm, stream); r != 0 {
					break
				}
			}
		case model.SendRecv: // to the next rank, from the one before, as nccl-tests
			if r = lib.Send(from, count, d, int32((rank+1)%n), comm, stream); r == 0 {
				r = lib.Recv(to, count, d, int32((rank+n-1)%n), comm, stream)
			}
		default:
			return fmt.Errorf("NCCL has no %v", call.Collective)
		}
		return check("nccl "+call.Collective.String(), comm, r)
	})
}
