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
	loads := slices.DeleteFunc(r.used(), func(l Load) bool { return l.Bytes == 0 })
	slices.SortFunc(loads, func(a, b Load) int { return cmp.Or(cmp.Compare(b.Busy, a.Busy), cmp.Compare(a.Link, b.Link)) })
	return loads
}

// EachLoad goes through all links of the cluster in the order of their numbers,
// also those that carried nothing: each stands for itself.
func (r Result) EachLoad(yield func(Load) bool) {
	loads := r.used()
	for link := range r.wires.cluster.Links() {
		if !r.wires.cluster.Has(link) {
			continue
		}
		load := Load{Link: link, Like: 1}
		if i, used := r.wires.index[r.wires.class(link)]; used {
			load.Bytes, load.Busy = loads[i].Bytes, loads[i].Busy
		}
		if !yield(load) {
			return
		}
	}
}

// used returns what crossed each of the links that some connection has.
func (r Result) used() []Load {
	loads := r.simulation.loads()
	for i := range loads {
		if u := &r.wires.used[i]; u.varies != nil {
			loads[i].Busy = u.varies.until(loads[i].Busy)
		}
	}
	return loads
}

// loads returns what has crossed each of the used links so far, as if none changed
// its rate.
func (x *simulation) loads() []Load {
	loads, used := make([]Load, len(x.wires.used)), x.wires.used
	switched := make([]units.Bytes, len(used)) // of the bytes, multicast or added up by the switch
	for i, u := range used {
		loads[i] = Load{Link: u.link, Like: int(u.size)}
	}
	add := func(n *connection, route []crossing, sent int64) {
		for _, c := range route {
			bytes := units.Bytes(sent) * units.Bytes(c.weight)
			if n.from > 1 { // what several writers put in crosses once
				bytes /= units.Bytes(max(1, n.from))
			}
			loads[c.link].Bytes += bytes
			if x.switched(n) {
				switched[c.link] += bytes
			}
		}
	}
	for id, route := range x.wires.all {
		n := &x.connections[id]
		sent := n.bytes
		for _, s := range x.stretches[int32(id)] {
			add(n, s.route, s.bytes)
			sent -= s.bytes
		}
		add(n, route, sent)
	}
	for i := range loads { // rounded once, however many connections there are
		plain := loads[i].Bytes - switched[i]
		loads[i].Busy = used[i].pace.Of(plain) + used[i].pace.Of(units.Bytes(float64(switched[i])/x.multimem))
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
