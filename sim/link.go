package sim

import "tutti/model/units"

// link is shared evenly by the flows on it: with n of them each is served at
// 1/n of the rate. Its clock counts the service that one flow gets, so that a
// flow is done when the clock has moved on by what the flow takes alone, and
// flows need no attention while others come and go (processor sharing in
// virtual time).
type link struct {
	pace  units.Pace
	clock units.Time // service given to each flow
	rest  units.Time // real time, below the number of flows, that is not on the clock yet
	asOf  units.Time // instant that clock and rest belong to
	due   units.Time // instant of the event that is to come, if any flow is here
	flows []flow     // by end, from head on
	head  int
}

// flow is one item on one link.
type flow struct {
	end units.Time // on the link's clock
	// owner is the worker that waits for the flow or, as ^connection, the
	// connection whose item it is.
	owner int32
}

// busy returns the number of flows on the link.
func (l *link) busy() int { return len(l.flows) - l.head }

// advance brings the clock up to now.
func (l *link) advance(now units.Time) {
	if n := units.Time(l.busy()); n > 0 {
		passed := now - l.asOf + l.rest
		l.clock += passed / n
		l.rest = passed % n
	}
	l.asOf = now
}

// add puts a flow on the link. Flows come nearly in the order of their ends.
func (l *link) add(now units.Time, size units.Bytes, owner int32) {
	l.advance(now)
	l.rest = 0
	if l.head > 0 && len(l.flows) == cap(l.flows) { // move up instead of growing
		l.flows = l.flows[:copy(l.flows, l.flows[l.head:])]
		l.head = 0
	}
	f := flow{l.clock + l.pace.Of(size), owner}
	l.flows = append(l.flows, f)
	i := len(l.flows) - 1
	for ; i > l.head && l.flows[i-1].end > f.end; i-- {
		l.flows[i] = l.flows[i-1]
	}
	l.flows[i] = f
}

// next returns the instant at which the first flow ends, if no other comes.
func (l *link) next() units.Time {
	return l.asOf + (l.flows[l.head].end-l.clock)*units.Time(l.busy()) - l.rest
}

// done removes a flow that has ended and returns its owner; ok is false if none
// has.
func (l *link) done() (owner int32, ok bool) {
	if l.busy() == 0 || l.flows[l.head].end > l.clock {
		return 0, false
	}
	owner = l.flows[l.head].owner
	l.head++
	l.rest = 0
	return owner, true
}
