package cuda

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"tutti/backend/cuda/driver"
)

// Repeats says how often a measurement runs its work.
type Repeats struct {
	// Calls are in one graph, back to back; Replays is how often it is launched.
	Calls, Replays int
	// Eager queues calls as they are, without a graph.
	Eager bool
}

// Measure runs calls of work back to back, as one CUDA graph for each stream,
// and returns the time of one call in each replay, sorted: the slowest rank's.
// The first replay warms up and is left out, as is the first call of each, which
// brings the ranks together. When the context ends, what is queued is aborted or,
// where abort is nil, waited for.
func Measure(ctx context.Context, streams []*driver.Stream, r Repeats, work, abort func() error) (times []time.Duration, err error) {
	m := measurement{ctx: ctx, streams: streams, repeats: r, work: work, abort: abort}
	defer func() { err = errors.Join(err, m.close()) }()
	if err := m.open(); err != nil {
		return nil, err
	}
	for replay := range r.Replays + 1 {
		t, err := m.replay()
		if err != nil {
			return nil, err
		}
		if replay > 0 {
			times = append(times, t/time.Duration(r.Calls))
		}
	}
	slices.Sort(times)
	return times, nil
}

// Median returns the middle of sorted times.
func Median(times []time.Duration) time.Duration { return times[len(times)/2] }

type measurement struct {
	ctx        context.Context
	streams    []*driver.Stream
	repeats    Repeats
	work       func() error
	abort      func() error
	begin, end []*driver.Event // by stream
	graphs     []*driver.Graph // by stream, unless calls are queued as they are
}

func (m *measurement) open() error {
	for _, s := range m.streams {
		for _, list := range []*[]*driver.Event{&m.begin, &m.end} {
			e, err := s.GPU.NewEvent(true)
			if err != nil {
				return err
			}
			*list = append(*list, e)
		}
	}
	if m.repeats.Eager {
		return nil
	}
	q := &queue{}
	for _, s := range m.streams {
		q.do(s.Capture)
	}
	m.queue(q, (*driver.Stream).Mark)
	for _, s := range m.streams { // what was begun must be ended, also after an error
		g, err := s.EndCapture()
		if err == nil {
			m.graphs = append(m.graphs, g)
		}
		q.do(func() error { return err })
	}
	return q.err
}

// queue queues all calls, with the events around them.
func (m *measurement) queue(q *queue, mark func(*driver.Stream, *driver.Event) error) {
	for call := range m.repeats.Calls + 1 {
		q.do(m.work)
		if call == 0 {
			for i, s := range m.streams {
				q.do(func() error { return mark(s, m.begin[i]) })
			}
		}
	}
	for i, s := range m.streams {
		q.do(func() error { return mark(s, m.end[i]) })
	}
}

// replay runs all calls and returns the slowest rank's time.
func (m *measurement) replay() (time.Duration, error) {
	if m.repeats.Eager {
		q := &queue{}
		m.queue(q, (*driver.Stream).Record)
		if q.err != nil {
			return 0, q.err
		}
	}
	var group sync.WaitGroup
	errs := make([]error, len(m.graphs))
	for i, g := range m.graphs {
		group.Go(func() { errs[i] = m.streams[i].Replay(g) })
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		return 0, err
	}
	if err := await(m.ctx, m.streams, m.abort); err != nil {
		return 0, err
	}
	var slowest time.Duration
	for i := range m.streams {
		t, err := m.end[i].Since(m.begin[i])
		if err != nil {
			return 0, err
		}
		slowest = max(slowest, t)
	}
	return slowest, nil
}

func (m *measurement) close() error {
	var errs []error
	for _, g := range m.graphs {
		errs = append(errs, g.Destroy())
	}
	for _, list := range [][]*driver.Event{m.begin, m.end} {
		for _, e := range list {
			errs = append(errs, e.Destroy())
		}
	}
	return errors.Join(errs...)
}
