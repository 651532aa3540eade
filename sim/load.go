package sim

import (
	"cmp"
	"fmt"
	"slices"

	"tutti/model/units"
)

// Load is what crossed a link of the cluster.
type Load struct {
	// Link is its number in the cluster, and Like how many links, itself
	// included, carried the same at the same instants.
	Link, Like int
	// Bytes are those on the wire, flags included.
	Bytes units.Bytes
	// Busy is the time that the bytes take at the rate that the link reaches.
	Busy units.Time
}

// Loads returns what crossed the links, the busiest first. Links that carried
// nothing are left out.
func (r Result) Loads() []Load {
	loads := r.simulation.loads()
	for i := range r.wires.used {
		if u := &r.wires.used[i]; u.varies != nil {
			loads[i].Busy = u.varies.until(loads[i].Busy)
		}
	}
	loads = slices.DeleteFunc(loads, func(l Load) bool { return l.Bytes == 0 })
	slices.SortFunc(loads, func(a, b Load) int { return cmp.Or(cmp.Compare(b.Busy, a.Busy), cmp.Compare(a.Link, b.Link)) })
	return loads
}

// loads returns what has crossed each of the used links so far, as if none changed
// its rate.
func (x *simulation) loads() []Load {
	loads := make([]Load, len(x.wires.used))
	for i, u := range x.wires.used {
		loads[i] = Load{Link: u.link, Like: int(u.size)}
	}
	for id, route := range x.wires.all {
		n := &x.connections[id]
		for _, c := range route {
			bytes := units.Bytes(n.bytes) * units.Bytes(c.weight)
			if n.from > 1 { // what several writers put in crosses once
				bytes /= units.Bytes(max(1, n.from))
			}
			loads[c.link].Bytes += bytes
			loads[c.link].Busy += x.wires.used[c.link].pace.Of(x.moved(n, bytes))
		}
	}
	return loads
}

// Cause says what a simulated time comes from: the link or the threads that were
// busy longest, and for which share of the time. What is missing to 1 is latency:
// launch, steps, handovers, and waiting for these.
type Cause struct {
	Name  string
	Share float64
}

// Cause returns what held up the simulation most.
func (r Result) Cause() Cause {
	best, name := units.Time(0), "nothing"
	if loads := r.Loads(); len(loads) > 0 {
		best, name = loads[0].Busy, r.wires.cluster.LinkName(loads[0].Link)
	}
	x := r.simulation
	for i := range x.workers {
		if w := &x.workers[i]; w.busy > best {
			best = w.busy
			described := x.schedule.Worker(x.fold.workers.first(i))
			name = fmt.Sprintf("copying by rank %d channel %d %v", described.Rank, described.Channel, described.Role)
		}
	}
	if x.last > 0 && best < r.Time/2 {
		return Cause{"latency", 1 - float64(best)/float64(r.Time)}
	}
	return Cause{name, min(1, float64(best)/float64(r.Time))}
}
