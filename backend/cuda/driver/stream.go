package driver

import (
	"context"
	"errors"
	"runtime"
	"time"
	"unsafe"
)

// Stream is a queue of work on one GPU.
type Stream struct {
	GPU    *GPU
	handle stream
}

const streamNonBlocking = 1 // runs beside the legacy default stream

// NewStream makes a stream.
func (g *GPU) NewStream() (*Stream, error) {
	s := &Stream{GPU: g}
	err := g.Do(func() error { return g.check("cuStreamCreate", cu.StreamCreate(&s.handle, streamNonBlocking)) })
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Stream) do(call string, f func() result) error {
	return s.GPU.Do(func() error { return s.GPU.check(call, f()) })
}

// Handle returns the CUstream, which other libraries of the process take.
func (s *Stream) Handle() uintptr { return uintptr(s.handle) }

// Destroy frees the stream once its work is done.
func (s *Stream) Destroy() error {
	return s.do("cuStreamDestroy", func() result { return cu.StreamDestroy(s.handle) })
}

// Sync waits until all work in the stream is done.
func (s *Stream) Sync() error {
	return s.do("cuStreamSynchronize", func() result { return cu.StreamSynchronize(s.handle) })
}

const errorNotReady = 600

// SyncUntil is Sync that returns the context's cause when it ends first. Meanwhile
// other work can be sent to the GPU.
func (s *Stream) SyncUntil(ctx context.Context) error {
	if ctx.Done() == nil {
		return s.Sync()
	}
	for pause := 10 * time.Microsecond; ; pause = min(2*pause, time.Millisecond) {
		var r result
		err := s.do("cuStreamQuery", func() result {
			if r = cu.StreamQuery(s.handle); r == errorNotReady {
				return 0
			}
			return r
		})
		if err != nil || r == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

// Launch queues a kernel whose only parameter is the struct that args points to.
func (s *Stream) Launch(k *Kernel, blocks, threads int, args unsafe.Pointer) error {
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(args)
	params := []unsafe.Pointer{args}
	return s.do("cuLaunchKernel "+k.name, func() result {
		return cu.LaunchKernel(k.handle, uint32(blocks), 1, 1, uint32(threads), 1, 1, 0, s.handle, unsafe.Pointer(&params[0]), nil)
	})
}

// launchConfig and launchAttribute are CUlaunchConfig and CUlaunchAttribute.
type (
	launchConfig struct {
		grid, block [3]uint32
		_           uint32 // shared memory
		stream      stream
		attributes  *launchAttribute
		count       uint32
	}
	launchAttribute struct {
		id    uint32
		_     uint32
		value [64]byte
	}
)

const attributeOverlap = 6 // CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION

// LaunchOverlapped is Launch of a kernel that waits for the stream's earlier work
// by itself (griddepcontrol.wait), so that it can be made ready meanwhile.
func (s *Stream) LaunchOverlapped(k *Kernel, blocks, threads int, args unsafe.Pointer) error {
	var pin runtime.Pinner
	defer pin.Unpin()
	attribute := &launchAttribute{id: attributeOverlap}
	attribute.value[0] = 1
	pin.Pin(args)
	pin.Pin(attribute)
	params := []unsafe.Pointer{args}
	config := &launchConfig{
		grid: [3]uint32{uint32(blocks), 1, 1}, block: [3]uint32{uint32(threads), 1, 1},
		stream: s.handle, attributes: attribute, count: 1,
	}
	return s.do("cuLaunchKernelEx "+k.name, func() result {
		return cu.LaunchKernelEx(config, k.handle, unsafe.Pointer(&params[0]), nil)
	})
}

// Copy queues a copy between any two GPUs, by the copy engine of the stream's.
func (s *Stream) Copy(to, from Pointer, bytes int64) error {
	return s.do("cuMemcpyAsync", func() result { return cu.MemcpyAsync(to, from, uint64(bytes), s.handle) })
}

// Wait lets later work in the stream wait for the event, which may be of another
// GPU.
func (s *Stream) Wait(e *Event) error {
	return s.do("cuStreamWaitEvent", func() result { return cu.StreamWaitEvent(s.handle, e.handle, 0) })
}

// Event marks a point in a stream.
type Event struct {
	gpu    *GPU
	handle event
}

const eventNoTiming = 2

// NewEvent makes an event, for timing or, lighter, for order alone.
func (g *GPU) NewEvent(timing bool) (*Event, error) {
	e := &Event{gpu: g}
	var flags uint32 = eventNoTiming
	if timing {
		flags = 0
	}
	err := g.Do(func() error { return g.check("cuEventCreate", cu.EventCreate(&e.handle, flags)) })
	if err != nil {
		return nil, err
	}
	return e, nil
}

// Destroy frees the event.
func (e *Event) Destroy() error {
	return e.gpu.Do(func() error { return e.gpu.check("cuEventDestroy", cu.EventDestroy(e.handle)) })
}

// Record puts the event at the end of the stream.
func (s *Stream) Record(e *Event) error {
	return s.do("cuEventRecord", func() result { return cu.EventRecord(e.handle, s.handle, 0) })
}

const recordExternal = 1

// Mark records the event each time that a graph, captured here, is launched, so
// that times inside the graph can be read.
func (s *Stream) Mark(e *Event) error {
	return s.do("cuEventRecordWithFlags", func() result { return cu.EventRecord(e.handle, s.handle, recordExternal) })
}

// Since returns the time from one event to another of the same GPU; both must
// have happened.
func (e *Event) Since(from *Event) (time.Duration, error) {
	var ms float32
	err := e.gpu.Do(func() error { return e.gpu.check("cuEventElapsedTime", cu.EventElapsed(&ms, from.handle, e.handle)) })
	return time.Duration(float64(ms) * float64(time.Millisecond)), err
}

// Graph is work that was captured once and can be launched again and again.
type Graph struct {
	gpu  *GPU
	exec exec
}

const captureRelaxed = 2 // any thread may go on with other work meanwhile

// Capture begins to gather the work queued in the stream, and in streams that
// wait for its events, instead of running it.
func (s *Stream) Capture() error {
	return s.do("cuStreamBeginCapture", func() result { return cu.BeginCapture(s.handle, captureRelaxed) })
}

// EndCapture makes a graph of the work since Capture.
func (s *Stream) EndCapture() (*Graph, error) {
	x := &Graph{gpu: s.GPU}
	err := s.GPU.Do(func() error {
		var g graph
		if err := s.GPU.check("cuStreamEndCapture", cu.EndCapture(s.handle, &g)); err != nil {
			return err
		}
		err := s.GPU.check("cuGraphInstantiate", cu.GraphInstantiate(&x.exec, g, 0))
		if err := errors.Join(err, s.GPU.check("cuGraphDestroy", cu.GraphDestroy(g))); err != nil {
			return err
		}
		return s.GPU.check("cuGraphUpload", cu.GraphUpload(x.exec, s.handle))
	})
	if err != nil {
		return nil, err
	}
	return x, nil
}

// Replay queues a graph.
func (s *Stream) Replay(g *Graph) error {
	return s.do("cuGraphLaunch", func() result { return cu.GraphLaunch(g.exec, s.handle) })
}

// Destroy frees the graph; it must not be running.
func (g *Graph) Destroy() error {
	return g.gpu.Do(func() error { return g.gpu.check("cuGraphExecDestroy", cu.GraphExecDestroy(g.exec)) })
}
