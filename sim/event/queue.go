// Package event holds the simulator's queue of future events.
package event

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"tutti/model/units"
)

// Event is something that happens to an entity at an instant.
type Event struct {
	At units.Time
	// ID names the entity; what it means is the owner's business.
	ID int32
}

// Queue gives events back in the order of their instants, and those of one
// instant in the order they were pushed. It is a radix heap (Ahuja, Mehlhorn,
// Orlin and Tarjan, "Faster algorithms for the shortest path problem", 1990):
// each event waits in the bucket of the highest bit in which its instant
// differs from the last one popped, and moves down at most 63 times.
//
// It is monotone: an event must not lie before the last one popped, which
// causality grants. Push and Pop allocate only while buckets grow. The zero
// Queue is empty and starts at instant 0.
type Queue struct {
	// Soon, unless nil, is shown most events some time before they are popped, a few
	// dozen at a time.
	Soon func([]Event)

	shown   units.Time // what was pushed up to here has been shown to Soon
	last    units.Time // the instant of the last event popped
	current int        // in buckets[0]: the next event to pop
	filled  uint64     // the buckets above 0 that are not empty, one bit each
	size    int
	buckets [64][]Event
}

// most is how many events are shown at a time.
const most = 128

// Len returns the number of events in the queue.
func (q *Queue) Len() int { return q.size }

// Current tells whether another event is left at the instant of the last one
// popped.
func (q *Queue) Current() bool { return q.current < len(q.buckets[0]) }

// Push adds an event. It panics if at lies before the last event popped.
func (q *Queue) Push(at units.Time, id int32) {
	if at < q.last {
		panic("event: pushed into the past")
	}
	b := bits.Len64(uint64(at ^ q.last))
	q.buckets[b] = append(q.buckets[b], Event{at, id})
	q.filled |= 1 << b &^ 1
	q.size++
}

// Next returns the instant of the first event, or the last instant that there is
// if the queue is empty.
func (q *Queue) Next() units.Time {
	switch {
	case q.Current():
		return q.last
	case q.filled == 0:
		return math.MaxInt64
	}
	return q.earliest(bits.TrailingZeros64(q.filled))
}

// Pop removes and returns the first event. It panics if there is none.
func (q *Queue) Pop() Event {
	e, ok := q.PopUntil(math.MaxInt64)
	if !ok {
		panic("event: queue is empty")
	}
	return e
}

// PopUntil removes and returns the first event, if there is one up to an instant.
func (q *Queue) PopUntil(at units.Time) (e Event, ok bool) {
	if q.Current() && q.last > at || !q.Current() && !q.refill(at) {
		return Event{}, false
	}
	e = q.buckets[0][q.current]
	q.current++
	q.size--
	return e, true
}

// Events appends all events to a list, in the order in which they would be
// popped, and returns it.
func (q *Queue) Events(to []Event) []Event {
	from := len(to)
	to = append(to, q.buckets[0][q.current:]...)
	for _, bucket := range q.buckets[1:] {
		to = append(to, bucket...)
	}
	slices.SortStableFunc(to[from:], func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	return to
}

// Delay has all events, and the last one popped, happen later.
func (q *Queue) Delay(by units.Time) {
	events := q.Events(nil)
	for i := range q.buckets {
		q.buckets[i] = q.buckets[i][:0]
	}
	q.current, q.filled, q.size = 0, 0, 0
	q.last += by
	for _, e := range events {
		q.Push(e.At+by, e.ID)
	}
}

// refill moves on to the earliest instant, unless that is after the given one: the
// lowest bucket's events are dealt out again, in order, by how they differ from it.
func (q *Queue) refill(until units.Time) bool {
	if q.filled == 0 {
		return false
	}
	b := bits.TrailingZeros64(q.filled)
	first := q.earliest(b)
	if first > until {
		return false
	}
	q.last = first
	q.buckets[0], q.current = q.buckets[0][:0], 0
	bucket := q.buckets[b]
	if q.Soon != nil && first > q.shown && len(bucket) <= most {
		q.shown = first | (1<<b - 1)
		q.Soon(bucket)
	}
	for _, e := range bucket {
		to := bits.Len64(uint64(e.At ^ q.last))
		q.buckets[to] = append(q.buckets[to], e)
		q.filled |= 1 << to &^ 1
	}
	q.buckets[b] = bucket[:0]
	q.filled &^= 1 << b
	return true
}

// earliest returns the first instant in a bucket.
func (q *Queue) earliest(bucket int) units.Time {
	first := q.buckets[bucket][0].At
	for _, e := range q.buckets[bucket] {
		first = min(first, e.At)
	}
	return first
}
