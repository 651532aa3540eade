package backend

import (
	"context"
	"errors"

	"tutti/model/schedule"
	"tutti/model/units"
)

// Backend carries out collectives on real data.
type Backend interface {
	// Name is the source that result rows name: host, cuda, nccl.
	Name() string
	// Prepare gives every rank of a schedule its memory and makes all ready to
	// run. It fails for what the backend cannot run, or has no memory for; the
	// schedule must be one that [schedule.Verify] passes. [ErrUnsupported] says that
	// the backend has no way to run such a call at all.
	Prepare(s schedule.Schedule) (Execution, error)
}

// ErrUnsupported says that a backend lacks a protocol, datatype or operation: what
// is asked of it may be right, and another backend may have it.
var ErrUnsupported = errors.New("not supported")

// Execution is a schedule with memory. Write and Read may be called for several
// ranks at once, but not while it runs.
type Execution interface {
	// Write copies data into a rank's buffer, from the given byte on; Read copies
	// out of it. Both fail for bytes that the buffer does not have.
	Write(rank int, side Side, at units.Bytes, data []byte) error
	Read(rank int, side Side, at units.Bytes, into []byte) error
	// Run carries out the collective so many times, one after the other, and
	// returns the time that one took on average. When the context ends it gives
	// up, and what the buffers hold is void.
	Run(ctx context.Context, times int) (units.Time, error)
	// Close frees the memory.
	Close() error
}

// Repeater is an [Execution] that can fill a buffer with a pattern, over and over,
// sooner than by Write.
type Repeater interface {
	Repeat(rank int, side Side, pattern []byte) error
}

// Side names one of a rank's two buffers.
type Side int

// The buffers. Those of an in-place call overlap as [Overlap] says.
const (
	Input Side = iota
	Output
)

// Of returns the elements of a rank's buffer.
func (s Side) Of(t schedule.Task, rank int) schedule.Buffer {
	if s == Input {
		return t.Input(rank)
	}
	return t.Output(rank)
}

// Overlap returns at which element of one memory a rank's two buffers begin when
// the call is in place: so that an element that both hold has one place. It
// returns false where the two have a memory each: out of place, and where they
// have no element in common.
func Overlap(t schedule.Task, rank int) (input, output int64, ok bool) {
	in, out := t.Input(rank), t.Output(rank)
	if !t.InPlace || in.Blocks != 1 || out.Blocks != 1 {
		return 0, 0, false
	}
	first := max(in.First, out.First)
	a, inputHas := in.At(first)
	b, outputHas := out.At(first)
	return max(0, b-a), max(0, a-b), inputHas > 0 && outputHas > 0
}
