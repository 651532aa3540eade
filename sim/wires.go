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

// lay finds the links of a connection whose ends run on the given ranks, and
// returns the kind of way that they make and their latency.
func (w *wires) lay(id int, c schedule.Connection, from, to []int) (profile.Hop, units.Time) {
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

// merge makes one of all links that are always crossed together, the slowest,
// as the others never hold anything up. It returns the links that are left and
// each connection's part of the routes.
func (w *wires) merge(place func(connection int, first, count int32)) (links []link, routes []int32) {
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
			if !slices.Contains(routes[first:], as[i]) {
				routes = append(routes, as[i])
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
