package sim

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"tutti/model/schedule"
	"tutti/model/units"
	"tutti/topo"
)

// outage is which cables between switches carry nothing from an instant on, until
// the next. Only ECMP has flows look for another way; adaptive routing has the
// cables of a group as one link.
type outage struct {
	at   units.Time
	down map[int]bool // by either link of a cable
}

func (o outage) failed(link int) bool { return o.down[link] }

// newOutages returns those that faults make, at least one, from the start.
func newOutages(c *topo.Cluster, faults []Fault) []outage {
	list := []outage{{}}
	if c.Fabric.Routing != topo.ECMP || !slices.ContainsFunc(faults, func(f Fault) bool { return f.Rate == 0 }) {
		return list
	}
	faults = slices.Clone(faults)
	slices.SortStableFunc(faults, func(a, b Fault) int { return cmp.Compare(a.At, b.At) })
	rates := map[int]float64{} // of links that have had a fault
	for i, f := range faults {
		for _, link := range trunks(c) {
			if names(c.LinkName(link), f.Link) {
				rates[link] = f.Rate
			}
		}
		if i+1 < len(faults) && faults[i+1].At == f.At {
			continue
		}
		now := outage{f.At, map[int]bool{}}
		for link, rate := range rates {
			if rate == 0 {
				now.down[link], now.down[c.Opposite(link)] = true, true
			}
		}
		if last := &list[len(list)-1]; last.at == now.at {
			*last = now
		} else if !maps.Equal(last.down, now.down) {
			list = append(list, now)
		}
	}
	return list
}

// routeDuring is [routeOf] around cables that carry nothing, if there is a way.
func routeDuring(o outage, c *topo.Cluster, s workers, n schedule.Connection) []int {
	if len(o.down) > 0 && n.Kind == schedule.PointToPoint {
		from, to := s.Worker(n.From[0]), s.Worker(n.To[0])
		if route := c.RouteAround(from.Rank, to.Rank, n.OutNET, n.InNET, flowOf(c, from), o.failed); route != nil {
			return route
		}
	}
	return routeOf(c, s, n)
}

// trunks lists the links between switches.
func trunks(c *topo.Cluster) (list []int) {
	for _, t := range c.Tiers()[min(1, len(c.Tiers())):] {
		for i := range t.Links {
			list = append(list, t.First+i)
		}
	}
	return list
}

// between tells whether a fault is on a cable between switches, be it in use or
// not: flows may have left it.
func (w *wires) between(f Fault) bool {
	return w.cluster.Fabric.Routing == topo.ECMP && slices.ContainsFunc(trunks(w.cluster), func(link int) bool { return names(w.cluster.LinkName(link), f.Link) })
}

// detour is the way that a connection takes from an instant on.
type detour struct {
	at         units.Time
	connection int32
	route      []crossing // over used links
}

// detour finds the detours after the start, in the order of time.
func (w *wires) detour(s schedule.Schedule, at workers) {
	if len(w.outages) < 2 {
		return
	}
	for id := range w.routes {
		n := s.Connection(id)
		if len(n.From) == 0 || n.Kind != schedule.PointToPoint || n.OutNET < 0 {
			continue
		}
		last := routeDuring(w.outages[0], w.cluster, at, n)
		for _, o := range w.outages[1:] {
			route := routeDuring(o, w.cluster, at, n)
			if slices.Equal(route, last) {
				continue
			}
			w.detours = append(w.detours, detour{o.at, int32(id), w.crossings(int32(id), route)})
			for _, link := range slices.Concat(last, route) { // what is not always crossed together is not made one
				if w.cluster.BetweenSwitches(link) {
					w.used[w.use(link)].varies = &spell{rate: 1}
				}
			}
			last = route
		}
	}
	slices.SortStableFunc(w.detours, func(a, b detour) int { return cmp.Compare(a.at, b.at) })
}

// turn has a connection take another part of the routes.
type turn struct {
	connection   int32
	first, links int32
	route        []crossing // over used links
}

// turns appends the detours to the routes, and returns when they begin.
func (x *simulation) turns() (changes []change) {
	for _, d := range x.wires.detours {
		t := turn{connection: d.connection, first: int32(len(x.routes)), route: d.route}
		for _, r := range d.route {
			if over := (crossing{x.wires.merged[r.link], r.weight}); !slices.Contains(x.routes[t.first:], over) {
				x.routes = append(x.routes, over)
			}
		}
		t.links = int32(len(x.routes)) - t.first
		if last := len(changes) - 1; last < 0 || changes[last].at != d.at {
			changes = append(changes, change{at: d.at})
		}
		at := &changes[len(changes)-1]
		at.turns = append(at.turns, t)
	}
	return changes
}

// stretch is what a connection has sent along a route that it has left.
type stretch struct {
	until units.Time
	route []crossing // over used links
	bytes int64
}

// turn sends a connection another way. What is left of an item under way comes
// along.
func (x *simulation) turn(t turn) {
	id := t.connection
	n := &x.connections[id]
	sent := n.bytes
	for item := n.put; item < n.staged; item++ {
		sent -= x.slots[n.firstSlot+item%n.slots].last
	}
	if x.stretches == nil {
		x.stretches = map[int32][]stretch{}
	}
	for _, s := range x.stretches[id] {
		sent -= s.bytes
	}
	x.stretches[id] = append(x.stretches[id], stretch{x.now, x.wires.all[id], sent})
	x.wires.all[id] = t.route

	old, now := x.routes[n.firstLink:n.firstLink+n.links], x.routes[t.first:t.first+t.links]
	n.firstLink, n.links = t.first, t.links
	if n.flows == 0 {
		return
	}
	size := x.moved(n, units.Bytes(x.slots[n.firstSlot+n.put%n.slots].last))
	left := 0. // of the item
	for _, r := range old {
		if slices.Contains(now, r) {
			continue
		}
		l := &x.links[r.link]
		l.advance(x.flows, x.now)
		if rest, ok := l.take(x.flows, ^id); ok {
			left = max(left, float64(rest)/float64(l.pace.Of(size)))
			n.flows--
			x.touch(l, r.link)
		}
	}
	for _, r := range now {
		if left == 0 || slices.Contains(old, r) {
			continue
		}
		l := &x.links[r.link]
		l.announce(x.flows, flow{x.now, max(1, units.Bytes(math.Ceil(left*float64(size)))), ^id, r.weight})
		n.flows++
		x.touch(l, r.link)
	}
	if n.flows == 0 {
		x.arrive(id)
	}
}

// Route returns the links of the cluster that a connection's items cross at an
// instant. It is for simulations of every worker.
func (r Result) Route(connection int, at units.Time) (links []int) {
	route := r.wires.all[connection]
	for _, s := range r.simulation.stretches[int32(connection)] {
		if at < s.until {
			route = s.route
			break
		}
	}
	for _, c := range route {
		links = append(links, r.wires.used[c.link].link)
	}
	return links
}
