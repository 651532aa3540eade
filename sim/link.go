package sim

import "tutti/model/units"

// link is shared evenly by the flows on it: with n of them each is served at
// 1/n of the rate. Its clock counts the service that one flow gets, so that a
// flow is done when the clock has moved on by what the flow takes alone, and
// flows need no attention while others come and go (processor sharing in
// virtual time). A link that serves its flows in turn counts as one that a single
// flow is on, which ends when all before it have been served.
//
// Flows are announced to a link before they come, as far as that is known. They
// need no events to come: a link is brought up to date when it is looked at, and
// foresees when the next flow ends.
type link struct {
	pace  units.Pace
	clock units.Time // service given to each flow
	asOf  units.Time // instant that clock and rest belong to
	rest  int32      // real time, below load, that is not on the clock yet
	load  int32      // flows on the link, each as often as it counts
	// The link's part of the simulation's flows: a ring of those on the link, by end,
	// and then of those to come, by when they do.
	first, room, head int32
	count, coming     int32
	failed            bool    // carries nothing
	touched           bool    // in this instant: the event is still to be set
	inTurn            bool    // serves flows one after another, not at once
	_                 [8]byte // fills the line
}

// alarm is a link's next event. Alarms stand apart, as many ring too early: flows that
// have come since have put off the first end.
type alarm struct {
	set units.Time // instant of the earliest event that is to come, or never
	due units.Time // instant at which the first flow ends, as far as is known, or never
}

// never is later than any event.
const never = units.Time(1<<63 - 1)

// flow is one item on one link.
type flow struct {
	// at is when it ends, on the link's clock, or when it comes.
	at   units.Time
	size units.Bytes
	// owner is the worker that waits for the flow or, as ^connection, the
	// connection whose item it is.
	owner int32
	// weight is how many flows this one stands for, all of them alike.
	weight int32
}

// flow returns the i-th flow of the ring: from count on they are still to come.
func (l *link) flow(flows []flow, i int32) *flow {
	if i += l.head; i >= l.room {
		i -= l.room
	}
	return &flows[l.first+i]
}

// announce has a flow come to the link at an instant. A connection has one item on
// its links at a time, so that there is room.
func (l *link) announce(flows []flow, f flow) {
	l.insert(flows, l.count, l.count+l.coming, f)
	l.coming++
}

// insert puts a flow among those from a place up to another, behind which there is
// room, in order: mostly it is the last.
func (l *link) insert(flows []flow, from, to int32, f flow) {
	at := l.flow(flows, to)
	for ; to > from; to-- {
		before := l.flow(flows, to-1)
		if before.at <= f.at {
			break
		}
		*at = *before
		at = before
	}
	*at = f
}

// advance brings the link up to now, if no flow ends before.
func (l *link) advance(flows []flow, now units.Time) {
	for l.coming > 0 {
		f := *l.flow(flows, l.count)
		if f.at > now {
			break
		}
		l.serve(f.at)
		l.add(flows, f)
	}
	l.serve(now)
}

// serve goes on to an instant up to which no flow comes or goes.
func (l *link) serve(now units.Time) {
	if l.failed {
		l.asOf = now
		return
	}
	switch passed := now - l.asOf + units.Time(l.rest); l.load {
	case 0:
	case 1:
		l.clock += passed
		l.rest = 0
	default:
		n := units.Time(l.load)
		served := passed / n
		l.clock += served
		l.rest = int32(passed - served*n)
	}
	l.asOf = now
}

// add puts the first flow that is to come on the link.
func (l *link) add(flows []flow, f flow) {
	if f.at = l.clock + l.pace.Of(f.size); l.inTurn {
		if l.count > 0 {
			f.at += l.flow(flows, l.count-1).at - l.clock
		}
		l.load, f.weight = 1, 0
	}
	l.insert(flows, 0, l.count, f)
	l.count++
	l.coming--
	l.load += f.weight
	l.rest = 0
}

// next returns the instant at which the first flow ends, if no other is announced.
func (l *link) next(flows []flow) units.Time {
	if l.failed || l.count+l.coming == 0 {
		return never
	}
	at, clock, load, end := l.asOf-units.Time(l.rest), l.clock, units.Time(l.load), never
	if l.count > 0 {
		end = l.flow(flows, 0).at
	}
	for i := range l.coming {
		f := l.flow(flows, l.count+i)
		if end < never && (l.inTurn || f.at >= at+(end-clock)*load) {
			break
		}
		if load > 0 {
			clock += (f.at - at) / load
		}
		at, end = f.at, min(end, clock+l.pace.Of(f.size))
		if load += units.Time(f.weight); l.inTurn {
			load = 1
		}
	}
	return at + (end-clock)*load
}

// done takes a flow that has ended off the link, which is up to date, and returns
// its owner; ok is false if there is none.
func (l *link) done(flows []flow) (owner int32, ok bool) {
	if l.count == 0 {
		return 0, false
	}
	f := l.flow(flows, 0)
	if f.at > l.clock {
		return 0, false
	}
	if l.head++; l.head == l.room {
		l.head = 0
	}
	l.count--
	l.load -= f.weight
	if l.inTurn && l.count == 0 {
		l.load = 0
	}
	l.rest = 0
	return f.owner, true
}

// take takes an owner's flow off the link, if it has one there, and returns what
// it still needs on the link to itself.
func (l *link) take(flows []flow, owner int32) (left units.Time, ok bool) {
	begin := l.clock // of the flow's service
	for i := range l.count {
		f := *l.flow(flows, i)
		if f.owner != owner {
			if l.inTurn {
				begin = max(begin, f.at)
			}
			continue
		}
		left = max(0, f.at-begin)
		for ; i < l.count+l.coming-1; i++ {
			next := *l.flow(flows, i+1)
			if l.inTurn && i < l.count-1 { // those behind it move up
				next.at -= left
			}
			*l.flow(flows, i) = next
		}
		l.count--
		l.load -= f.weight
		if l.inTurn && l.count == 0 {
			l.load = 0
		}
		l.rest = 0
		return left, true
	}
	return 0, false
}
