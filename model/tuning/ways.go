package tuning

import (
	"maps"
	"slices"

	"tutti/model/profile"
	"tutti/topo"
	"tutti/topo/search"
)

// way is what it takes to get from one rank to the next.
type way struct {
	hop profile.Hop
	// latency is that of the links, in microseconds, and farthest that of the longest
	// of the routes, where a chunk goes over all of them in turn.
	latency, farthest float64
	// shared is microseconds for each byte that every channel puts on the wire: the
	// slowest link's time, shared by those that cross it: all, those that do at a time
	// at the most, and those that do beside the first chunk. It goes by how many
	// channels are in use, from one on.
	shared [3][]float64
}

// By whom the links of a way are shared.
const (
	byAll = iota
	byMost
	byFirst
)

// perByte is what shared has for a number of channels, the last of which may be one in
// part. Those that are not known come in the same proportion.
func (w *way) perByte(channels float64, by int) float64 {
	shared := w.shared[by]
	n := int(channels)
	switch known := len(shared); {
	case known == 0:
		return 0
	case n >= known:
		return shared[known-1] * channels / float64(known)
	default:
		return shared[n-1] + float64((channels-float64(n))*(shared[n]-shared[n-1]))
	}
}

// times returns a way that, in the end, so many times as much is on.
func (w way) times(n float64) way {
	all := slices.Clone(w.shared[byAll])
	for i := range all {
		all[i] *= n
	}
	w.shared[byAll] = all
	return w
}

// ways are the ways that the chunks of an algorithm take within a node and
// between nodes.
type ways struct {
	intra, inter way
	// first is intra where the chunks of all rings are as far from the first rank.
	first way
	// out and in tell, by channel, whether its ring goes from the first rank to another
	// node, and comes to it from another.
	out, in []bool
}

type nvlsWays struct {
	heads       int
	latency     float64 // GPU to switch to GPU
	link        float64 // microseconds for each byte, of a GPU's link with the switch
	inter, both way     // between nodes: up alone, and up and down at a time
	err         error
}

// load counts, link by link, how many channels cross it, and finds the slowest of
// the links on the routes of a way.
type load struct {
	cluster *topo.Cluster
	profile *profile.Profile
	count   map[int]int
	on      map[int]bool // the way
	slowest float64
	way     way
}

func newLoad(c *topo.Cluster, p *profile.Profile, hop profile.Hop) *load {
	return &load{cluster: c, profile: p, count: map[int]int{}, on: map[int]bool{}, way: way{hop: hop}}
}

// add adds a route to the way.
func (l *load) add(route []int) {
	for _, link := range route {
		l.on[link] = true
		if kind, _ := l.cluster.Link(link); kind != topo.LinkNVL && l.way.hop == profile.HopNVLink {
			l.way.hop = profile.HopPCI
		}
	}
	l.way.latency = max(l.way.latency, l.latency(route))
	l.beside(route)
}

// beside adds a route that shares links with the way.
func (l *load) beside(route []int) {
	for _, link := range route {
		l.count[link]++
		if l.on[link] {
			kind, rate := l.cluster.Link(link)
			l.slowest = max(l.slowest, float64(l.count[link])*1e6/(float64(rate)*l.profile.Efficiency[kind]))
		}
	}
}

// channel ends the routes of a channel.
func (l *load) channel() {
	for by := range l.way.shared {
		l.way.shared[by] = append(l.way.shared[by], l.slowest)
	}
}

// latency returns that of the links of a route, in microseconds.
func (l *load) latency(route []int) (sum float64) {
	for _, link := range route {
		kind, _ := l.cluster.Link(link)
		sum += l.profile.Latency[kind].Microseconds()
	}
	return sum
}

// places are the loads of a way's places, which have data at different times.
type places map[int]*load

// at returns the load of a place.
func (p places) at(place int, l *load) *load {
	if p[place] == nil {
		p[place] = newLoad(l.cluster, l.profile, l.way.hop)
		for range l.way.shared[byAll] { // none of the channels before
			p[place].channel()
		}
	}
	return p[place]
}

// channel ends the routes of a channel.
func (p places) channel() {
	for _, l := range p {
		l.channel()
	}
}

// apart returns a way whose places have data at different times.
func (p places) apart(w way) way {
	for by := byMost; by <= byFirst; by++ {
		w.shared[by] = make([]float64, len(w.shared[byAll]))
	}
	for _, place := range slices.Sorted(maps.Keys(p)) {
		for i, one := range p[place].way.shared[byAll] {
			w.shared[byMost][i] = max(w.shared[byMost][i], one)
			w.shared[byFirst][i] += one / float64(len(p))
		}
	}
	return w
}

// ringWays goes through the hops that leave the ranks of the first four nodes, for
// channels are swapped on every other one, and of the last two, as those of an odd
// number of nodes go elsewhere.
func (d *Predictor) ringWays(c *topo.Cluster, r *search.Rings) ways {
	intra, inter := newLoad(c, d.profile, profile.HopNVLink), newLoad(c, d.profile, profile.HopNET)
	first, between := places{}, 0.
	for ch := range r.Channels() {
		for node := range d.nodes {
			stands := 1. // how many nodes it stands for
			switch {
			case d.nodes <= 6 || node >= d.nodes-2:
			case node >= 4:
				continue
			default:
				stands = float64(d.nodes-2) / 4
			}
			for rank := node * d.perNode; rank < (node+1)*d.perNode; rank++ {
				at := r.Index(ch, rank)
				out, in := r.NETs(ch, rank)
				route := c.Route(rank, r.At(ch, at+1), out, in)
				if out < 0 {
					intra.add(route)
					inter.beside(route)
				} else {
					inter.add(route)
					intra.beside(route)
					between += float64(stands * inter.latency(route))
				}
				if place := (at - r.Index(ch, 0) + d.ranks) % d.ranks; out < 0 && place < d.ranks-1 {
					first.at(place, intra).add(route)
				}
			}
		}
		first.channel()
		intra.channel()
		inter.channel()
	}
	w := ways{intra: intra.way, inter: inter.way, first: first.apart(intra.way)}
	for ch := range r.Channels() {
		node := func(place int) int { return r.At(ch, r.Index(ch, 0)+place) / d.perNode }
		w.out, w.in = append(w.out, node(1) > 0), append(w.in, node(-1) > 0)
	}
	w.inter.farthest = w.inter.latency
	if d.nodes > 1 { // a chunk goes over all of them in turn
		w.inter.latency = between / float64(d.nodes*r.Channels())
	}
	return w
}

// treeWays goes through the hops up and down at the ranks of the first nodes.
//
// The first chunk of every channel is at the same place of its chain, so that
// what loads a link at a time are the hops from that place: between nodes, those as
// high above the leaves. The chunks behind it are at all heights.
func (d *Predictor) treeWays(c *topo.Cluster, t *search.Trees) ways {
	load := func(hop profile.Hop) *load { return newLoad(c, d.profile, hop) }
	up, both, bothInter, first, heights := load(profile.HopNET), load(profile.HopNVLink), load(profile.HopNET), places{}, places{}
	for ch := range t.Channels() {
		height := map[int]int{}
		for rank := range min(d.ranks, 4*d.perNode) {
			for at, up := rank, t.At(ch, rank).Up; up >= 0; at, up = up, t.At(ch, up).Up {
				height[up] = max(height[up], height[at]+1)
			}
		}
		for rank := range min(d.ranks, 4*d.perNode) {
			p := t.At(ch, rank)
			if p.Up < 0 {
				continue
			}
			node := rank / d.perNode
			if p.Up/d.perNode != node {
				out, in := t.NETs(ch, rank, p.Up)
				route, back := c.Route(rank, p.Up, out, in), c.Route(p.Up, rank, in, out)
				up.add(route)
				heights.at(height[rank], up).add(route)
				bothInter.add(route)
				bothInter.beside(back)
				both.beside(route)
				both.beside(back)
				continue
			}
			place := 0
			for at := p; at.Up >= 0 && at.Up/d.perNode == node; at = t.At(ch, at.Up) {
				place++
			}
			route, back := c.Route(rank, p.Up, -1, -1), c.Route(p.Up, rank, -1, -1)
			both.add(route)
			both.beside(back)
			bothInter.beside(route)
			bothInter.beside(back)
			first.at(place, both).add(route)
		}
		first.channel()
		heights.channel()
		up.channel()
		both.channel()
		bothInter.channel()
	}
	w := ways{intra: first.apart(both.way), inter: heights.apart(up.way)}
	w.inter.shared[byMost] = up.way.shared[byAll]
	w.inter.shared[byAll] = bothInter.way.shared[byAll]
	return w
}

func (d *Predictor) nvlsWays(c *topo.Cluster, h *search.Heads) nvlsWays {
	w := nvlsWays{heads: h.Heads()}
	for _, link := range append(c.ToSwitch(0), c.FromSwitch(0)...) {
		kind, rate := c.Link(link)
		w.latency += d.profile.Latency[kind].Microseconds()
		w.link = max(w.link, 1e6/(float64(rate)*d.profile.Efficiency[kind]))
	}
	if c.Nodes > 1 {
		alone, both := newLoad(c, d.profile, profile.HopNET), newLoad(c, d.profile, profile.HopNET)
		for tree := range 2 {
			for node := range min(c.Nodes, 4) {
				if p := h.At(tree, node); p.Up >= 0 {
					child, parent := h.Rank(node, 0), h.Rank(p.Up, 0)
					route := c.Route(child, parent, h.NET(0, 0), h.NET(0, 0))
					alone.add(route)
					both.add(route)
					both.beside(c.Route(parent, child, h.NET(0, 0), h.NET(0, 0)))
				}
			}
			alone.channel()
			both.channel()
		}
		w.inter, w.both = alone.way, both.way
	}
	return w
}
