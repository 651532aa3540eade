package cuda

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tutti/backend"
	"tutti/backend/cuda/driver"
	"tutti/model/units"
)

// Work is a call on GPUs with its memory, ready to be queued: the executions of
// packages cuda and nccl.
type Work struct {
	Buffers
	// Kernel is the hot kernel that carries out the call, if one does, and Blocks are
	// those that it is launched with on each rank.
	Kernel string
	Blocks int
	// Streams has one of each rank.
	Streams []*driver.Stream
	// Queue queues the call, once, on all streams.
	Queue func() error
	// Check says what went wrong in calls that have ended, and makes all ready for
	// the next.
	Check func() error
	// Abort makes calls that are under way end at once; nil where they cannot be.
	Abort func() error
	// Absent is a rank that takes no part, plus 1, and 0 for none: so that tests can
	// see that the others notice.
	Absent int
}

// mostCalls are in a graph; more calls are replays of it.
const mostCalls = 50

// Run implements [backend.Execution]. Several calls are replayed as a CUDA graph
// and timed on the GPUs: the time is the median of the replays' on the slowest
// rank, and what the buffers hold is that of many calls. One call is run as it is, and
// its time is the host's, from before it is queued until it is done.
func (w *Work) Run(ctx context.Context, times int) (units.Time, error) {
	if err := context.Cause(ctx); err != nil {
		return 0, fmt.Errorf("given up: %w", err)
	}
	if times > 1 {
		r := Repeats{Calls: min(times, mostCalls), Replays: 11}
		switch {
		case w.Call.Bytes() > units.GiB:
			r.Replays = 3
		case w.Call.Bytes() > 64*units.MiB:
			r.Replays = 5
		}
		r.Replays = max(r.Replays, times/mostCalls)
		all, err := Measure(ctx, w.Streams, r, w.Queue, w.Abort)
		if err := errors.Join(err, w.Check()); err != nil {
			return 0, err
		}
		return units.FromMicroseconds(float64(Median(all)) / 1e3), nil
	}
	begun := time.Now()
	if err := w.Queue(); err != nil {
		return 0, err
	}
	err := w.Settle(ctx)
	return units.FromMicroseconds(float64(time.Since(begun)) / 1e3), err
}

// Settle waits for what was queued and says what went wrong.
func (w *Work) Settle(ctx context.Context) error {
	return errors.Join(await(ctx, w.Streams, w.Abort), w.Check())
}

// WorkOf returns what an execution of this package queues.
func WorkOf(e backend.Execution) *Work {
	if x, ok := e.(*execution); ok {
		return &x.Work
	}
	w, _ := e.(*Work)
	return w
}

// await waits for the streams. When the context ends, it aborts their work or, where
// that cannot be, waits on.
func await(ctx context.Context, streams []*driver.Stream, abort func() error) error {
	for _, s := range streams {
		err := s.SyncUntil(ctx)
		if cause := context.Cause(ctx); err != nil && cause != nil {
			err = fmt.Errorf("given up: %w", cause)
			if abort != nil {
				err = errors.Join(err, abort())
			}
			for _, s := range streams {
				err = errors.Join(err, s.Sync())
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}
