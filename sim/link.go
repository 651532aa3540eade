package sim

import "tutti/model/units"

// link is shared evenly by the flows on it: with n of them each is served at
// 1/n of the rate. Its clock counts the service that one flow gets, so that a
// flow is done when the clock has moved on by what the flow takes alone, and
// flows need no attention while others come and go (processor sharing in
// virtual time). A link that serves its flows in turn counts as one that a single
// flow is on, which ends when all before it have been served.
type link struct {
	pace  units.Pace
	clock units.Time // service given to each flow
	asOf  units.Time // instant that clock and rest belong to
	due   units.Time // instant of the earliest event that is to come, or never
	rest  int32      // real time, below load, that is not on the clock yet
	load  int32      // flows on the link, each as often as it counts
	// The link's part of the simulation's flows: a ring, by end.
	first, room, head, count int32
	failed                   bool // carries nothing
	touched                  bool // in this instant: the event is still to be set
	inTurn                   bool // serves flows one after another, not at once
}

// never is later than any event.
const never = units.Time(1<<63 - 1)

// flow is one item on one link.
type flow struct {
	end units.Time // on the link's clock
	// owner is the worker that waits for the flow or, as ^connection, the
	// connection whose item it is.
	owner int32
	// weight is how many flows this one stands for, all of them alike.
	weight int32
}

// advance brings the clock up to now.
func (l *link) advance(now units.Time) {
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

// add puts a flow on the link. Flows come nearly in the order of their ends. A
// connection has one item on its links at a time, so that there is room.
func (l *link) add(flows []flow, now units.Time, size units.Bytes, owner, weight int32) {
	l.advance(now)
	l.rest = 0
	own := flows[l.first : l.first+l.room]
	end := l.clock + l.pace.Of(size)
	at := l.wrap(l.head + l.count)
	if l.inTurn {
		if l.count > 0 {
			end += own[l.wrap(at+l.room-1)].end - l.clock
		}
		l.load, weight = 1, 0
	}
	for range l.count {
		before := l.wrap(at + l.room - 1)
		if own[before].end <= end {
			break
		}
		own[at] = own[before]
		at = before
	}
	own[at] = flow{end, owner, weight}
	l.count++
	l.load += weight
}

// take takes an owner's flow off the link, if it has one there, and returns what
// it still needs on the link to itself.
func (l *link) take(flows []flow, now units.Time, owner int32) (left units.Time, ok bool) {
	l.advance(now)
	own := flows[l.first : l.first+l.room]
	begin := l.clock // of the flow's service
	for i := range l.count {
		f := own[l.wrap(l.head+i)]
		if f.owner != owner {
			if l.inTurn {
				begin = max(begin, f.end)
			}
			continue
		}
		left = max(0, f.end-begin)
		for ; i < l.count-1; i++ {
			next := own[l.wrap(l.head+i+1)]
			if l.inTurn { // those behind it move up
				next.end -= left
			}
			own[l.wrap(l.head+i)] = next
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

// wrap counts a place of the ring, below twice its size, round.
func (l *link) wrap(at int32) int32 {
	if at >= l.room {
		at -= l.room
	}
	return at
}

// next returns the instant at which the first flow ends, if no other comes.
func (l *link) next(flows []flow) units.Time {
	if l.count == 0 || l.failed {
		return never
	}
	return l.asOf + (flows[l.first+l.head].end-l.clock)*units.Time(l.load) - units.Time(l.rest)
}

// done removes a flow that has ended and returns its owner; ok is false if none
// has.
func (l *link) done(flows []flow) (owner int32, ok bool) {
	if l.count == 0 {
		return 0, false
	}
	f := &flows[l.first+l.head]
	if f.end > l.clock {
		return 0, false
	}
	l.head = l.wrap(l.head + 1)
	l.count--
	l.load -= f.weight
	if l.inTurn && l.count == 0 {
		l.load = 0
	}
	l.rest = 0
	return f.owner, true
}
