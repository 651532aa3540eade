package tuning

import (
	"tutti/model/profile"
	"tutti/topo"
	"tutti/topo/search"
)

// way is what it takes to get from one rank to the next.
type way struct {
	hop profile.Hop
	// latency is that of the links, in microseconds.
	latency float64
	// perByte is microseconds for each byte on the wire and each channel that is
	// in use: the slowest link's time, shared by all that cross it.
	perByte float64
}

// ways are the ways that the chunks of an algorithm take within a node and
// between nodes.
type ways struct {
	intra, inter way
	// first is intra where, on one node, the chunks of all rings are as far from the
	// first rank.
	first way
	// bothIntra and bothInter are those when chunks travel up and down at a time.
	bothIntra, bothInter way
}

type nvlsWays struct {
	heads       int
	latency     float64 // GPU to switch to GPU
	link        float64 // microseconds for each byte, of a GPU's link with the switch
	inter, both way     // between nodes: up alone, and up and down at a time
	err         error
}

// load counts, link by link, how many channels cross it.
type load struct {
	cluster *topo.Cluster
	profile *profile.Profile
	count   map[int]int
}

func newLoad(c *topo.Cluster, p *profile.Profile) *load {
	return &load{cluster: c, profile: p, count: map[int]int{}}
}

func (l *load) add(route []int) {
	for _, link := range route {
		l.count[link]++
	}
}

// way returns the slowest of the routes, with the links shared by channels.
func (l *load) way(routes [][]int, hop profile.Hop, channels int) way {
	w := way{hop: hop}
	for _, route := range routes {
		for _, link := range route {
			kind, rate := l.cluster.Link(link)
			if kind != topo.LinkNVL && hop == profile.HopNVLink {
				w.hop = profile.HopPCI
			}
			each := float64(l.count[link]) / float64(channels) * 1e6 / (float64(rate) * l.profile.Efficiency[kind])
			w.perByte = max(w.perByte, each)
		}
		w.latency = max(w.latency, l.latency(route))
	}
	return w
}

// latency returns that of the links of a route, in microseconds.
func (l *load) latency(route []int) (sum float64) {
	for _, link := range route {
		kind, _ := l.cluster.Link(link)
		sum += l.profile.Latency[kind].Microseconds()
	}
	return sum
}

// ringWays goes through the hops that leave the ranks of the first three nodes:
// channels are swapped on every other one, and those of the last of an odd number
// of nodes go elsewhere.
func (d *Predictor) ringWays(c *topo.Cluster, r *search.Rings) ways {
	l := newLoad(c, d.profile)
	var intra, inter [][]int
	for ch := range r.Channels() {
		for rank := range min(d.ranks, 3*d.perNode) {
			next := r.At(ch, r.Index(ch, rank)+1)
			out, in := r.NETs(ch, rank)
			route := c.Route(rank, next, out, in)
			l.add(route)
			if out < 0 {
				intra = append(intra, route)
			} else {
				inter = append(inter, route)
			}
		}
	}
	w := ways{intra: l.way(intra, profile.HopNVLink, r.Channels()), inter: l.way(inter, profile.HopNET, r.Channels())}
	if d.nodes == 1 {
		w.first = w.intra
		w.first.perByte = 0
		for place := range d.ranks - 1 {
			alone := newLoad(c, d.profile)
			var routes [][]int
			for ch := range r.Channels() {
				at := r.Index(ch, 0) + place
				routes = append(routes, c.Route(r.At(ch, at), r.At(ch, at+1), -1, -1))
				alone.add(routes[ch])
			}
			w.first.perByte += alone.way(routes, profile.HopNVLink, r.Channels()).perByte / float64(d.ranks-1)
		}
	}
	if len(inter) > 0 { // a chunk goes over all of them in turn
		w.inter.latency = 0
		for _, route := range inter {
			w.inter.latency += l.latency(route) / float64(len(inter))
		}
	}
	return w
}

// treeWays goes through the hops up and down at the ranks of the first nodes.
//
// The first chunk of every channel is at the same place of its chain, so that
// what loads a link at a time are the hops from that place.
func (d *Predictor) treeWays(c *topo.Cluster, t *search.Trees) ways {
	up, both := newLoad(c, d.profile), newLoad(c, d.profile)
	var intra, inter [][]int
	places := map[int][][]int{} // the routes within nodes, by place in the chain
	for ch := range t.Channels() {
		for rank := range min(d.ranks, 4*d.perNode) {
			p := t.At(ch, rank)
			if p.Up < 0 {
				continue
			}
			node := rank / d.perNode
			if p.Up/d.perNode != node {
				out, in := t.NETs(ch, rank, p.Up)
				route := c.Route(rank, p.Up, out, in)
				inter = append(inter, route)
				up.add(route)
				both.add(route)
				both.add(c.Route(p.Up, rank, in, out))
				continue
			}
			place := 0
			for at := p; at.Up >= 0 && at.Up/d.perNode == node; at = t.At(ch, at.Up) {
				place++
			}
			route := c.Route(rank, p.Up, -1, -1)
			intra, places[place] = append(intra, route), append(places[place], route)
			both.add(route)
			both.add(c.Route(p.Up, rank, -1, -1))
		}
	}
	w := ways{
		bothIntra: both.way(intra, profile.HopNVLink, t.Channels()),
		inter:     up.way(inter, profile.HopNET, t.Channels()), bothInter: both.way(inter, profile.HopNET, t.Channels()),
	}
	w.intra = way{hop: w.bothIntra.hop, latency: w.bothIntra.latency}
	for _, routes := range places {
		alone := newLoad(c, d.profile)
		for _, route := range routes {
			alone.add(route)
		}
		w.intra.perByte = max(w.intra.perByte, alone.way(routes, profile.HopNVLink, t.Channels()).perByte)
	}
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
		alone, both := newLoad(c, d.profile), newLoad(c, d.profile)
		var up [][]int
		for tree := range 2 {
			for node := range min(c.Nodes, 4) {
				if p := h.At(tree, node); p.Up >= 0 {
					child, parent := h.Rank(node, 0), h.Rank(p.Up, 0)
					route := c.Route(child, parent, h.NET(0, 0), h.NET(0, 0))
					up = append(up, route)
					alone.add(route)
					both.add(route)
					both.add(c.Route(parent, child, h.NET(0, 0), h.NET(0, 0)))
				}
			}
		}
		w.inter, w.both = alone.way(up, profile.HopNET, 2), both.way(up, profile.HopNET, 2)
	}
	return w
}
