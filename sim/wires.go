package sim

import (
	"slices"

	"tutti/model/profile"
	"tutti/model/schedule"
	"tutti/model/units"
	"tutti/topo"
)

// wires lays the connections of a schedule over the links of a cluster.
type wires struct {
	cluster *topo.Cluster
	profile *profile.Profile
	used    []usedLink
	index   map[int]int32 // of a link of the cluster, in used
	routes  [][]int32     // by connection
}

// usedLink is a link of the cluster that some connection crosses.
type usedLink struct {
	pace  units.Pace
	users userSet
}

// userSet stands for a set of connections: how many, and the sum of a
// random-looking number for each.
type userSet struct{ count, sum uint64 }

func newWires(c *topo.Cluster, p *profile.Profile, connections int) *wires {
	return &wires{cluster: c, profile: p, index: map[int]int32{}, routes: make([][]int32, connections)}
}

// lay finds the links of a connection of the schedule, and returns the kind of
// way that they make and their latency.
func (w *wires) lay(id int, c schedule.Connection, s schedule.Schedule) (profile.Hop, units.Time) {
	from, to := ranksOf(s, c.From), ranksOf(s, c.To)
	var route, way []int // all links; those from one writer to one reader
	if c.Kind == schedule.PointToPoint {
		route = w.cluster.Route(from[0], to[0], c.OutNET, c.InNET)
		way = route
	} else {
		for _, rank := range from {
			route = append(route, w.cluster.ToSwitch(rank)...)
		}
		for _, rank := range to {
			route = append(route, w.cluster.FromSwitch(rank)...)
		}
		way = append(w.cluster.ToSwitch(from[0]), w.cluster.FromSwitch(to[0])...)
	}
	hop, latency := profile.HopNVLink, units.Time(0)
	for _, link := range way {
		kind, _ := w.cluster.Link(link)
		latency += w.profile.Latency[kind]
		if kind != topo.LinkNVL {
			hop = profile.HopPCI
		}
	}
	if c.OutNET >= 0 {
		hop = profile.HopNET
	}
	for _, link := range route {
		i := w.use(link)
		w.used[i].users.count++
		w.used[i].users.sum += scramble(uint64(id))
		w.routes[id] = append(w.routes[id], i)
	}
	return hop, latency
}

// ranksOf returns the ranks that workers run on.
func ranksOf(s schedule.Schedule, workers []int) []int {
	ranks := make([]int, len(workers))
	for i, w := range workers {
		ranks[i] = s.Worker(w).Rank
	}
	return ranks
}

// use returns the place of a link of the cluster in used.
func (w *wires) use(link int) int32 {
	i, known := w.index[link]
	if !known {
		i = int32(len(w.used))
		w.index[link] = i
		kind, rate := w.cluster.Link(link)
		w.used = append(w.used, usedLink{pace: (rate * units.Rate(w.profile.Efficiency[kind])).Pace()})
	}
	return i
}

// drop takes links off the routes that never hold anything up: all their items
// are moved in steps that take longer than any of them can be on the link, even
// when all share it all the time.
//
// For each element, let a step take c, and an item take f of a link to itself;
// m connections cross the link. Sharing makes that m*f, to which comes what
// [link.add] and [link.done] round away: below m for each of the items that come
// and go meanwhile, and these are no more than 2(m-1)(1/c + 2) of each
// picosecond.
func (w *wires) drop(x *simulation) {
	slowest := make([]units.Time, len(w.used)) // c - m*f - rounding
	for i := range slowest {
		slowest[i] = never
	}
	element := x.task.Datatype.Size()
	for id, route := range w.routes {
		n := &x.connections[id]
		wire := x.task.Protocol.Wire(element)
		if n.kind != uint8(schedule.PointToPoint) {
			wire = units.Bytes(float64(wire)/x.multimem) + 1
		}
		movers := x.ends[n.firstEnd : n.firstEnd+n.from]
		if n.kind == uint8(schedule.Reduction) {
			movers = x.ends[n.firstEnd+n.from : n.firstEnd+n.from+n.to]
		}
		c := never
		for _, id := range movers {
			c = min(c, x.paces[id].Of(element)-1)
		}
		if n.remote {
			c = 0 // it moves by itself
		}
		for _, i := range route {
			m, f := units.Time(w.used[i].users.count), w.used[i].pace.Of(wire)
			slowest[i] = min(slowest[i], c-m*f-6*m*(m-1))
		}
	}
	for id, route := range w.routes {
		w.routes[id] = slices.DeleteFunc(route, func(i int32) bool { return slowest[i] >= 0 })
	}
}

// merge makes one of all links that are always crossed together, the slowest,
// as the others never hold anything up. It returns the links that are left and
// each connection's part of the routes.
func (w *wires) merge(place func(connection int, first, count int32)) (links []link, routes []crossing) {
	merged := map[userSet]int32{}
	as := make([]int32, len(w.used))
	for i, u := range w.used {
		to, known := merged[u.users]
		if !known {
			to = int32(len(links))
			merged[u.users] = to
			links = append(links, link{})
		}
		links[to].pace = max(links[to].pace, u.pace)
		as[i] = to
	}
	for id, route := range w.routes {
		first := int32(len(routes))
		for _, i := range route {
			if over := (crossing{as[i], 1}); !slices.Contains(routes[first:], over) {
				routes = append(routes, over)
			}
		}
		place(id, first, int32(len(routes))-first)
	}
	return links, routes
}

// scramble spreads a number over 64 bits (Steele, Lea and Flood, "Fast
// splittable pseudorandom number generators", 2014: the finaliser of SplitMix64).
func scramble(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
