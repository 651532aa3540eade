package sim

import (
	"tutti/model/units"
)

// Machines that nothing in the schedule makes alike may still do the same at the
// same instants: in a double tree each is at another place, yet most of them are
// held up by what is near. So classes are guessed, the coarsest first: machines
// that look the same from within. One machine of each class is simulated, and
// takes what its neighbours do from those that stand for their classes
// (halves.go). Then every machine of the cluster is gone through: if each of its
// neighbours did, to the picosecond, what the machine that stands for it saw,
// then all machines keep all rules, and what was simulated is what happens, as
// there is only one way to keep them. If not, what was simulated is right up to
// the first instant at which somebody's neighbour did otherwise. Classes are
// divided by what their members' neighbours did until then, and simulated anew.

// trace is what the machine at the other end can tell of a half.
type trace struct {
	items   []units.Time // instants at which items begin or are done on the links of this end
	credits []units.Time // instants at which slots become free
}

func (t *trace) add(kind messageKind, at units.Time) {
	if kind == frees {
		t.credits = append(t.credits, at)
	} else {
		t.items = append(t.items, at)
	}
}

// parting returns the first instant at which two traces differ, or never.
func (t *trace) parting(u *trace) units.Time {
	return min(parting(t.items, u.items), parting(t.credits, u.credits))
}

func parting(a, b []units.Time) units.Time {
	for i := range max(len(a), len(b)) {
		switch {
		case i >= len(a):
			return b[i]
		case i >= len(b):
			return a[i]
		case a[i] != b[i]:
			return min(a[i], b[i])
		}
	}
	return never
}

// until returns a digest of a trace up to an instant.
func (t *trace) until(at units.Time) digest {
	d := digest(0)
	for _, list := range [...][]units.Time{t.items, t.credits} {
		for _, x := range list {
			if x > at {
				break
			}
			d = d.add(uint64(x))
		}
		d = d.add(0)
	}
	return d
}

// Guessing is worth it where leastSure classes of machines or more are alike for
// sure, and guessed ones are leastGain times fewer: a few are simulated sooner as
// they are, where what repeats itself is skipped.
const (
	leastSure = 64
	leastGain = 4
)

// guess looks for classes of machines that do the same, and returns the
// simulation of them, which has run; or nil if there are too many.
func (y *symmetry) guess(within [3][]int32, sure int, o Options) *simulation {
	worth := func(classes int) bool { return sure >= leastSure && classes*leastGain <= sure || o.anyGuess }
	if !worth(len(y.shapes)) || o.anyShards {
		return nil
	}
	h := newHalves(y, within)
	class, horizon := y.shape, units.Microsecond
	for {
		if h.divide(class); !worth(len(h.nodes)) {
			return nil
		}
		x, err := newSimulation(y.schedule, y.cluster, y.profile, h.fold(), o)
		if err != nil || x.wires.shared {
			return nil
		}
		x.beginAll()
		for at := never; at == never; horizon *= 2 {
			if !x.proceed(horizon) {
				horizon = never
			}
			switch at = h.parting(x, horizon); {
			case at < never:
				class, horizon = h.refined(x, at), at
			case horizon == never:
				return x
			}
		}
	}
}

// parting returns the first instant, up to a horizon, at which a machine's
// neighbour did otherwise than what was simulated, or never.
func (h *halves) parting(x *simulation, horizon units.Time) units.Time {
	first := never
	type pair struct{ seen, done int32 }
	known := map[pair]bool{}
	h.each(func(_ int, seen, done int32) {
		if p := (pair{seen, done}); seen != done && !known[p] {
			known[p] = true
			first = min(first, x.traces[seen].parting(&x.traces[done]))
		}
	})
	if first > horizon {
		return never
	}
	return first
}

// refined divides the classes by what their members' neighbours did up to an
// instant.
func (h *halves) refined(x *simulation, at units.Time) []int32 {
	done := make([]digest, len(x.traces))
	for i := range x.traces {
		done[i] = x.traces[i].until(at)
	}
	d := make([]digest, len(h.class))
	for node, c := range h.class {
		d[node] = digest(c)
	}
	h.each(func(node int, _, by int32) { d[node] = d[node].add(uint64(done[by])) })
	return numbered(d)
}
