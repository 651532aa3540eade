package sim

import (
	"math"
	"slices"

	"tutti/model/profile"
	"tutti/model/schedule"
	"tutti/model/splitmix"
	"tutti/model/units"
	"tutti/topo"
)

// wires lays the connections of a schedule over the links of a cluster, as far
// as a fold has them.
type wires struct {
	cluster *topo.Cluster
	profile *profile.Profile
	fold    *fold
	guess   *halves // or nil: the fold's split, if it is a guess
	used    []usedLink
	index   map[int]int32 // of a class of links, in used
	slowest []units.Pace  // by connection, of all links on its way
	routes  [][]crossing  // by connection, over used, without those that never hold anything up
	all     [][]crossing  // with them
	merged  []int32       // by used link: the simulation's that it is a part of
	shared  bool          // there are halves, and a link above the leaves holds up some
	outages []outage
	detours []detour
}

// usedLink is a link of the cluster that some connection crosses.
type usedLink struct {
	pace   units.Pace
	link   int   // of the cluster, the first that it stands for
	size   int32 // links that it stands for
	copies int32 // of them, those whose users are told: one machine's, if there are halves
	place  int32 // its class
	users  userSet
	varies *spell // unless nil, its rate changes: it is neither left out nor made one with others
	inTurn bool   // serves items one after another
}

// userSet stands for a set of connections: how many, and the sum of a
// random-looking number for each.
type userSet struct{ count, sum uint64 }

func newWires(c *topo.Cluster, p *profile.Profile, f *fold, connections int, faults []Fault) *wires {
	guess, _ := f.split.(*halves)
	return &wires{
		cluster: c, profile: p, fold: f, guess: guess, index: map[int]int32{}, slowest: make([]units.Pace, connections),
		routes: make([][]crossing, connections), outages: newOutages(c, faults),
	}
}

// lay finds the links of a connection of the schedule, the first of a class, and
// returns the kind of way that they make, their latency, and how long switches
// on it wait for whole packets of items of the given size.
func (w *wires) lay(class int32, c schedule.Connection, s workers, item units.Bytes) (hop profile.Hop, latency, stored units.Time) {
	route := routeDuring(w.outages[0], w.cluster, s, c)
	way := route // from one writer to one reader
	switch {
	case c.Kind == schedule.Aggregation:
		way = append(w.cluster.ToRoot(s.Worker(c.From[0]).Rank, c.OutNET), w.cluster.FromRoot(s.Worker(c.To[0]).Rank, c.InNET)...)
	case c.Kind != schedule.PointToPoint:
		way = append(w.cluster.ToSwitch(s.Worker(c.From[0]).Rank), w.cluster.FromSwitch(s.Worker(c.To[0]).Rank)...)
	}
	hop = profile.HopNVLink
	for _, link := range way {
		kind, _ := w.cluster.Link(link)
		stored += w.cluster.Stored(link, item)
		if stated := w.cluster.Latency(link); stated > 0 {
			latency += stated
		} else {
			latency += w.profile.Latency[kind]
		}
		if kind != topo.LinkNVL {
			hop = profile.HopPCI
		}
	}
	if c.OutNET >= 0 {
		hop = profile.HopNET
	}
	crossed := w.crossings(class, route)
	for at, r := range crossed {
		crossed[at].weight = r.weight * int32(w.fold.split.copies(class)) / w.used[r.link].copies
		users := &w.used[r.link].users
		users.count += uint64(crossed[at].weight)
		users.sum += splitmix.Mix(uint64(class)<<32 | uint64(crossed[at].weight))
	}
	w.routes[class] = crossed
	return hop, latency, stored
}

// crossings returns which links a connection of a class crosses on a route, and how
// often, as far as the class is simulated with them.
func (w *wires) crossings(class int32, route []int) []crossing {
	crossed := make([]crossing, 0, len(route))
	for _, link := range route {
		w.slowest[class] = max(w.slowest[class], w.pace(link))
		if !w.fold.split.hasLink(int(class), link) {
			continue
		}
		i := w.use(link)
		if at := slices.IndexFunc(crossed, func(r crossing) bool { return r.link == i }); at >= 0 {
			crossed[at].weight++
		} else {
			crossed = append(crossed, crossing{i, 1})
		}
	}
	return crossed
}

// workers tells of a schedule's workers at least their ranks and channels.
type workers interface {
	Worker(w int) schedule.Worker
}

// seats is that of all workers, kept: schedules may have to list all connections of
// a worker to describe it.
type seats struct{ ranks, channels []int32 }

// Worker has no more than its rank and channel.
func (s seats) Worker(w int) schedule.Worker {
	return schedule.Worker{Rank: int(s.ranks[w]), Channel: int(s.channels[w])}
}

// remembered keeps the same of workers that were asked for lately.
type remembered struct {
	workers
	lately []seat // by the number's last digits
}

type seat struct {
	of, rank, channel int // of is the worker's number, from 1
}

func newRemembered(s workers) remembered { return remembered{s, make([]seat, 1<<12)} }

// Worker has no more than its rank and channel.
func (r remembered) Worker(w int) schedule.Worker {
	seat := &r.lately[w%len(r.lately)]
	if seat.of != w+1 {
		described := r.workers.Worker(w)
		seat.of, seat.rank, seat.channel = w+1, described.Rank, described.Channel
	}
	return schedule.Worker{Rank: seat.rank, Channel: seat.channel}
}

// routeOf returns all links that a connection crosses.
func routeOf(c *topo.Cluster, s workers, n schedule.Connection) (route []int) {
	if n.Kind == schedule.PointToPoint {
		from := s.Worker(n.From[0])
		return c.RouteFlow(from.Rank, s.Worker(n.To[0]).Rank, n.OutNET, n.InNET, flowOf(c, from))
	}
	up, down := func(rank int) []int { return c.ToSwitch(rank) }, func(rank int) []int { return c.FromSwitch(rank) }
	if n.Kind == schedule.Aggregation { // each link carries it once, however many are below
		up, down = func(rank int) []int { return c.ToRoot(rank, n.OutNET) }, func(rank int) []int { return c.FromRoot(rank, n.InNET) }
	}
	for _, w := range n.From {
		route = append(route, up(s.Worker(w).Rank)...)
	}
	for _, w := range n.To {
		route = append(route, down(s.Worker(w).Rank)...)
	}
	if n.Kind == schedule.Aggregation {
		slices.Sort(route)
		route = slices.Compact(route)
	}
	return route
}

// flowOf returns the number of the flow that a worker sends over the network,
// among those between the same two ports: each channel has queue pairs of its
// own, which ECMP tells apart.
func flowOf(c *topo.Cluster, from schedule.Worker) int {
	if c.Fabric.Routing == topo.Adaptive {
		return 0
	}
	return from.Channel
}

// use returns the place of a link of the cluster in used.
func (w *wires) use(link int) int32 {
	class, size, copies, at := link, int32(1), int32(1), int32(0)
	if links := &w.fold.links; links.place != nil {
		place, local := w.cluster.Place(link)
		class, at = w.class(link), links.place[place]
		size = int32(links.size(int32(class)))
		if copies = size; w.guess != nil {
			copies = links.locals.count[links.local[local]]
		}
	}
	i, known := w.index[class]
	if !known {
		i = int32(len(w.used))
		w.index[class] = i
		w.used = append(w.used, usedLink{pace: w.pace(link), link: link, size: size, copies: copies, place: at, inTurn: w.inTurn(link)})
	}
	return i
}

// class returns the number of a link's class.
func (w *wires) class(link int) int {
	if w.fold.links.place == nil {
		return link
	}
	return int(w.fold.links.at(w.cluster.Place(link)))
}

// pace returns what a link takes a byte.
func (w *wires) pace(link int) units.Pace {
	kind, rate := w.cluster.Link(link)
	return (rate * units.Rate(w.profile.Efficiency[kind])).Pace()
}

// keep keeps the whole routes, to tell later what crossed which link.
func (w *wires) keep() {
	w.all = make([][]crossing, len(w.routes))
	for id, route := range w.routes {
		w.all[id] = slices.Clone(route)
	}
	h := w.guess
	if h == nil {
		return
	}
	for _, t := range h.trunks {
		link, id := w.use(t.link), h.base[h.class[t.node]]+t.local
		w.all[id] = append(w.all[id], crossing{link, 1})
		users := &w.used[link].users
		users.count++
		users.sum += splitmix.Mix(uint64(t.node)<<32 | uint64(id))
	}
}

// leastStreams is how many buffers a step that moves items over links reads and
// writes at the least ([profile.Streams]): one at its own end, and the item.
const leastStreams = 2

// drop takes links off the routes that never hold anything up: all their items take
// longer elsewhere than any of them can be on the link, even when all share it all
// the time. Elsewhere is the step that moves the item, or the slowest link on its
// way, as a connection has one item on its links at a time.
//
// Let the smallest item take c elsewhere, and f on a link to itself; m connections
// cross the link. Sharing makes that m*f, to which comes what the link rounds
// away: below m picoseconds whenever an item comes or goes, and in the time of
// one item no more than 2(m-1)(1+2) of the smallest do. Larger items take longer
// in proportion. The slowest link of a way stays, as its own f is no less than c.
func (w *wires) drop(x *simulation) {
	movements := w.movements(x)
	least := slices.Repeat([]int64{math.MaxInt64}, len(w.used)) // elements of an item
	for id, route := range w.all {
		for _, r := range route {
			least[r.link] = min(least[r.link], movements[id].elements)
		}
	}
	spare := slices.Repeat([]units.Time{never}, len(w.used)) // c - m*f - rounding
	for i, u := range w.used {
		if u.varies != nil || u.inTurn { // where an item waits for larger ones
			spare[i] = -1
		}
	}
	call := &x.calls[0]
	for id, route := range w.all {
		n := &x.connections[id]
		for _, r := range route {
			u := &w.used[r.link]
			size := call.size(least[r.link])
			onLinks := x.moved(n, call.task.Protocol.Wire(size))
			m, f := units.Time(u.users.count), u.pace.Of(onLinks+1)
			c := max(movements[id].pace.Of(size)*leastStreams/profile.Streams-1, w.slowest[id].Of(onLinks))
			spare[r.link] = min(spare[r.link], c-m*(f+1)-6*m*(m-1))
		}
	}
	for id, route := range w.routes {
		w.routes[id] = slices.DeleteFunc(route, func(r crossing) bool { return spare[r.link] >= 0 })
	}
	if h := w.guess; h != nil {
		for i, u := range w.used {
			w.shared = w.shared || int(u.place) >= len(h.nodes) && spare[i] < 0
		}
	}
}

// inTurn tells whether a link serves items one after another.
func (w *wires) inTurn(link int) bool {
	kind, _ := w.cluster.Link(link)
	return kind != topo.LinkNVL && w.cluster.Fabric.Sharing == topo.FIFO
}

// movement is what is known of the steps that move a connection's items: the fewest
// elements that one has, and what the quickest worker takes for a byte, or 0 if the
// network moves them.
type movement struct {
	elements int64
	pace     units.Pace
}

// movements returns those of all connections.
func (w *wires) movements(x *simulation) []movement {
	list := make([]movement, len(w.routes))
	for id := range list {
		n := &x.connections[id]
		ids := x.ends[n.firstEnd : n.firstEnd+n.from]
		if n.mover == theReaders || n.half && ids[0] == none {
			ids = x.ends[n.firstEnd+n.from : n.firstEnd+n.from+n.to]
		}
		m := movement{math.MaxInt64, math.MaxUint64}
		for _, id := range ids {
			m.elements = min(m.elements, x.least(id))
			m.pace = min(m.pace, x.paces[id])
		}
		if n.remote {
			m.pace = 0
		}
		list[id] = m
	}
	return list
}

// merge makes one of all links that are always crossed together, the slowest,
// as the others never hold anything up. It returns the links that are left and
// each connection's part of the routes.
func (w *wires) merge(place func(connection int, first, count int32)) (links []link, routes []crossing) {
	type set struct {
		userSet
		inTurn bool
	}
	merged := map[set]int32{}
	w.merged = make([]int32, len(w.used))
	for i, u := range w.used {
		to, known := merged[set{u.users, u.inTurn}]
		if !known || u.varies != nil {
			to = int32(len(links))
			if u.varies == nil {
				merged[set{u.users, u.inTurn}] = to
			}
			links = append(links, link{inTurn: u.inTurn})
		}
		links[to].pace = max(links[to].pace, u.pace)
		w.merged[i] = to
	}
	for id, route := range w.routes {
		first := int32(len(routes))
		for _, r := range route {
			if over := (crossing{w.merged[r.link], r.weight}); !slices.Contains(routes[first:], over) {
				routes = append(routes, over)
			}
		}
		place(id, first, int32(len(routes))-first)
	}
	return links, routes
}
