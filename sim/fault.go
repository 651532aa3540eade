package sim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"tutti/model/units"
	"tutti/topo"
)

// Fault is a link that carries less than it should, from an instant on.
//
// Under adaptive routing the cables between two groups of switches are one link,
// and a fault of some of them leaves it the rate of the others: traffic goes over
// the rest. Under ECMP a flow keeps to its cable, as long as that carries something:
// if a cable between switches carries nothing, either way, its flows go over the
// others, from that instant on. Nothing leads around a port, or a link in a machine.
type Fault struct {
	// Link is a part of the names that [topo.Cluster.CableNames] gives, or of
	// [topo.Cluster.LinkName]'s of a whole trunk: all that have it are meant. It
	// begins and ends where a number does: "leaf 2" is not a part of "leaf 24".
	Link string
	// Rate is the share of its rate that a cable has left, 0 to 1: none at 0. Of
	// several faults of a cable the last one counts.
	Rate float64
	// At is when it begins, counted from the first step.
	At units.Time
}

// FaultError tells of a fault that is on no link in use.
type FaultError struct{ Link, Reason string }

func (e *FaultError) Error() string { return fmt.Sprintf("fault on %q: %s", e.Link, e.Reason) }

// change sets the rate of a link at an instant, or sends connections another way.
type change struct {
	at    units.Time
	used  int32 // in wires
	rate  float64
	turns []turn
}

// fault finds what faults do to which links: it slows those that are slow from
// the start, and returns later changes, and failures, in the order of time. It
// fails with a [*FaultError].
func (w *wires) fault(faults []Fault) ([]change, error) {
	if len(faults) == 0 {
		return nil, nil
	}
	faults = slices.Clone(faults)
	slices.SortStableFunc(faults, func(a, b Fault) int { return cmp.Compare(a.At, b.At) })
	found := make([]bool, len(faults))
	var changes []change
	for i := range w.used {
		u := &w.used[i]
		whole, cables := w.cluster.LinkName(u.link), w.cluster.CableNames(u.link)
		left := slices.Repeat([]float64{1}, len(cables))
		for k, f := range faults {
			hit := false
			for c, cable := range cables {
				if names(whole, f.Link) || names(cable, f.Link) {
					left[c], hit = f.Rate, true
				}
			}
			if !hit {
				continue
			}
			found[k] = true
			rate := 0.
			for _, r := range left {
				rate += r / float64(len(left))
			}
			changes = append(changes, change{at: f.At, used: int32(i), rate: rate})
		}
	}
	for k, f := range faults {
		if !found[k] && !w.between(f) {
			if len(w.used) == 0 {
				return nil, &FaultError{f.Link, "no link is in use: want two ranks at least"}
			}
			return nil, &FaultError{f.Link, fmt.Sprintf("no link in use has that in its name, as %q has", w.cluster.LinkName(w.used[0].link))}
		}
	}
	slices.SortStableFunc(changes, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	for _, c := range changes {
		if c.at > 0 || c.rate == 0 {
			w.used[c.used].varies = &spell{rate: 1}
		}
	}
	return slices.DeleteFunc(changes, func(c change) bool {
		u := &w.used[c.used]
		if u.varies != nil {
			return false
		}
		u.pace = u.pace.Slower(c.rate)
		return true
	}), nil
}

// names tells whether a name has a part that does not begin or end within a
// number.
func names(name, part string) bool {
	digit := func(s string, at int) bool { return at >= 0 && at < len(s) && s[at] >= '0' && s[at] <= '9' }
	for from := 0; part != ""; {
		at := strings.Index(name[from:], part)
		if at < 0 {
			return false
		}
		first, end := from+at, from+at+len(part)
		if !(digit(name, first-1) && digit(name, first)) && !(digit(name, end-1) && digit(name, end)) {
			return true
		}
		from = first + 1
	}
	return false
}

// await sets the events of changes. Their numbers follow those of connections.
func (x *simulation) await(changes []change) {
	x.changes = changes
	varies := map[int32]bool{}
	for i, c := range changes {
		x.queue.Push(c.at, int32(len(x.connections)+i))
		if c.turns == nil {
			varies[x.wires.merged[c.used]] = true
		}
	}
	for i := range x.connections {
		n := &x.connections[i]
		n.alone = n.alone && !varies[x.routes[n.firstLink].link]
	}
}

// spell is a time during which a link keeps its rate, and what was before.
type spell struct {
	rate        float64
	since       units.Time
	busy, alone units.Time // before: the time that it was busy, and what that takes at its whole rate
}

// end begins the next spell: alone is what all bytes so far take at the whole rate.
func (s *spell) end(alone, now units.Time, wanted bool, rate float64) {
	if s.rate == 0 && wanted {
		s.busy += now - s.since
	}
	*s = spell{rate: rate, since: now, busy: s.until(alone), alone: alone}
}

// until returns how long the link has been busy, by the bytes so far.
func (s *spell) until(alone units.Time) units.Time {
	if s.rate == 0 {
		return s.busy
	}
	return s.busy + units.Time(float64(alone-s.alone)/s.rate)
}

// change gives a link another rate. What its flows still need takes as much
// longer as the link is slower.
func (x *simulation) change(c change) {
	if c.turns != nil {
		for _, t := range c.turns {
			x.turn(t)
		}
		return
	}
	id := x.wires.merged[c.used]
	l := &x.links[id]
	l.advance(x.flows, x.now)
	l.rest = 0
	x.wires.used[c.used].varies.end(x.loads()[c.used].Busy, x.now, l.count > 0, c.rate)
	if l.failed = c.rate == 0; l.failed {
		return
	}
	before := l.pace
	l.pace = x.wires.used[c.used].pace.Slower(c.rate)
	for i := range l.count {
		f := l.flow(x.flows, i)
		f.at = l.clock + l.pace.Rescale(f.at-l.clock, before)
	}
	x.touch(l, id)
}

// stranded says who waits for a link that has failed, or nil.
func (x *simulation) stranded() error {
	for i := range x.links {
		l := &x.links[i]
		if l.failed {
			l.advance(x.flows, never)
		}
		if !l.failed || l.count == 0 {
			continue
		}
		owner := l.flow(x.flows, 0).owner
		if owner < 0 {
			owner = x.ends[x.connections[^owner].firstEnd]
		}
		w := x.schedule.Worker(x.fold.workers.first(int(owner)))
		failed := x.wires.used[slices.Index(x.wires.merged, int32(i))].link
		c := x.wires.cluster
		remedy := "no other cable leads there"
		if kind, _ := c.Link(failed); kind == topo.LinkNET && !c.BetweenSwitches(failed) {
			remedy = "nothing leads around a port, and NCCL ends such a job with a network error once its retries are over (NCCL_IB_TIMEOUT, NCCL_IB_RETRY_CNT)"
		} else if kind != topo.LinkNET {
			remedy = "nothing leads around it, and NCCL would wait for ever"
		}
		return fmt.Errorf("%q has failed, and rank %d channel %d waits for it, so that after %v %d of %d workers cannot go on: %s: want a rate that is left, a later fault that ends it, or a machine without it from the start",
			c.LinkName(failed), w.Rank, w.Channel, x.last, len(x.workers)-x.finished, len(x.workers), remedy)
	}
	return nil
}
