package sim

import (
	"math"
	"slices"

	"tutti/model/units"
	"tutti/sim/event"
)

// steady finds that a simulation repeats itself, and skips what does. If all
// that decides what happens next is as it was before, but for all instants being
// later by the same time and workers being some steps further in the same runs,
// then what happened in between happens again and again, until the first worker
// comes to the end of its run.
//
// A state is kept, and compared with those that follow, whenever a certain worker
// has gone round its slots; it is replaced after 1, 2, 4, 8 and so on of these
// (Brent, "An improved Monte Carlo factorization algorithm", 1980).
type steady struct {
	worker, until  int32 // and the end of its run
	compared, most int   // with the state that is kept; until another is
	then           simulation
	start          units.Time // that instants count from then
	events         []event.Event
}

func newSteady(x *simulation) *steady {
	s := &steady{}
	for i := range x.workers {
		if x.workers[i].steps > x.workers[s.worker].steps {
			s.worker = int32(i)
		}
	}
	return s
}

// look compares the state with the one that is kept, and skips what repeats. The
// worker is between two steps.
func (s *steady) look(x *simulation) {
	w := &x.workers[s.worker]
	switch {
	case w.state == finished || int(w.ports) == len(x.ports) || x.ports[w.ports].slot > 0: // a lone rank has no ports
	case s.compared == s.most || w.until != s.until:
		if s.most, s.compared = max(1, 2*s.most), 0; w.until != s.until {
			s.most, s.until = 1, w.until
		}
		s.keep(x, w.ready)
	default:
		s.compared++
		if by := w.ready - s.start; by > 0 && s.repeats(x, by) {
			s.skip(x)
			s.most, s.compared = 0, 0
		}
	}
}

// keep keeps the state.
func (s *steady) keep(x *simulation, start units.Time) {
	t := &s.then
	t.workers = append(t.workers[:0], x.workers...)
	t.ports = append(t.ports[:0], x.ports...)
	t.connections = append(t.connections[:0], x.connections...)
	t.slots = append(t.slots[:0], x.slots...)
	t.links = append(t.links[:0], x.links...)
	t.alarms = append(t.alarms[:0], x.alarms...)
	t.flows = append(t.flows[:0], x.flows...)
	t.able, t.touched = append(t.able[:0], x.able...), append(t.touched[:0], x.touched...)
	t.now, t.last, t.events = x.now, x.last, x.events
	s.events = x.queue.Events(s.events[:0])
	s.start = start
}

// repeats tells whether the state is the one that is kept, later by some time.
func (s *steady) repeats(x *simulation, by units.Time) bool {
	t := &s.then
	later := func(a, b units.Time) bool { return b-a == by || a == b && (a <= 0 || a == never) }
	for i := range x.workers {
		a, b := &t.workers[i], &x.workers[i]
		if a.state != b.state || a.operation != b.operation || a.first != b.first || a.until != b.until || a.period != b.period ||
			a.flows != b.flows || a.tried != b.tried || a.state == waiting && a.blocked != b.blocked ||
			!later(a.ready, b.ready) && (a.ready != b.ready || a.next != b.next) {
			return false
		}
	}
	for i := range x.ports {
		if t.ports[i].slot != x.ports[i].slot {
			return false
		}
	}
	for i := range x.connections {
		a, b := &t.connections[i], &x.connections[i]
		if b.remote && a.staged-a.put != b.staged-b.put || a.put-a.taken != b.put-b.taken || a.flows != b.flows {
			return false
		}
		slots := x.slots[b.firstSlot : b.firstSlot+b.slots]
		for j, c := range t.slots[a.firstSlot : a.firstSlot+a.slots] {
			switch d := slots[j]; {
			case c == d && a.put == b.put && a.taken == b.taken && a.staged == b.staged:
			case !later(c.ready, d.ready) || !later(c.free, d.free) || c.left != d.left || c.reader != d.reader:
				return false
			case b.remote && c.last != d.last || !b.remote && !later(units.Time(c.last), units.Time(d.last)):
				return false
			}
		}
	}
	for i := range x.links {
		a, b := &t.links[i], &x.links[i]
		if a.count != b.count || a.coming != b.coming || a.rest != b.rest || a.load != b.load || a.touched != b.touched ||
			!later(t.alarms[i].set, x.alarms[i].set) || !later(t.alarms[i].due, x.alarms[i].due) ||
			!later(a.asOf, b.asOf) && (a.count > 0 || a.room == 1 && a.asOf != b.asOf) {
			return false
		}
		for j := range b.count + b.coming {
			f, g := a.flow(t.flows, j), b.flow(x.flows, j)
			if f.owner != g.owner || f.weight != g.weight || j < b.count && f.at-a.clock != g.at-b.clock || j >= b.count && (f.size != g.size || !later(f.at, g.at)) {
				return false
			}
		}
	}
	if !slices.Equal(t.able, x.able) || !slices.Equal(t.touched, x.touched) || x.queue.Len() != len(s.events) || !later(t.now, x.now) {
		return false
	}
	return slices.EqualFunc(s.events, x.queue.Events(nil), func(a, b event.Event) bool { return a.ID == b.ID && b.At-a.At == by })
}

// skip goes on by as many of the periods that end now as all runs last.
func (s *steady) skip(x *simulation) {
	t, times := &s.then, int32(math.MaxInt32)
	for i := range x.workers {
		if w := &x.workers[i]; w.next > t.workers[i].next {
			times = min(times, (w.until-1-w.next)/(w.next-t.workers[i].next))
		}
	}
	delay := func(then units.Time, now *units.Time) { *now += (*now - then) * units.Time(times) }
	further := func(then int32, now *int32) { *now += (*now - then) * times }
	for i := range x.workers {
		a, b := &t.workers[i], &x.workers[i]
		delay(a.ready, &b.ready)
		delay(a.busy, &b.busy)
		further(a.next, &b.next)
	}
	for i := range x.ports {
		further(t.ports[i].items, &x.ports[i].items)
	}
	for i := range x.connections {
		a, b := &t.connections[i], &x.connections[i]
		further(a.staged, &b.staged)
		further(a.put, &b.put)
		further(a.taken, &b.taken)
		b.bytes += (b.bytes - a.bytes) * int64(times)
	}
	for i := range x.slots {
		a, b := &t.slots[i], &x.slots[i]
		delay(a.ready, &b.ready)
		delay(a.free, &b.free)
		b.last += (b.last - a.last) * int64(times)
	}
	for i := range x.links {
		a, b := &t.links[i], &x.links[i]
		delay(a.asOf, &b.asOf)
		delay(t.alarms[i].set, &x.alarms[i].set)
		delay(t.alarms[i].due, &x.alarms[i].due)
		for j := b.count; j < b.count+b.coming; j++ {
			delay(a.flow(t.flows, j).at, &b.flow(x.flows, j).at)
		}
	}
	if by := (x.now - t.now) * units.Time(times); by > 0 {
		x.now += by
		x.queue.Delay(by)
	}
	delay(t.last, &x.last)
	x.events += (x.events - t.events) * int64(times)
}
