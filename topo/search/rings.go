package search

import "tutti/topo"

// Rings connects the ring channels of all machines: each comes from the machine
// before and goes on to the one after, and every second machine swaps its
// channels in pairs where rings cross NICs. The second half of the channels has
// the same rings as the first (NCCL 2.28.3, connect.cc, connectRings and
// ncclTopoPostset).
type Rings struct{ chains }

// NewRings connects the graph's channels over the machines of c.
func NewRings(c *topo.Cluster, g Graph) *Rings { return &Rings{newChains(c, g)} }

// Channels returns the number of channels: twice the graph's, but for opposed
// rings, which have no duplicates.
func (r *Rings) Channels() int {
	if r.graph.Opposed {
		return len(r.graph.Channels)
	}
	return r.chains.Channels()
}

// follows returns the graph channel that a channel follows on a machine.
func (r *Rings) follows(node, channel int) int {
	n := len(r.graph.Channels)
	g := channel % n
	if r.graph.CrossNic == 2 && n%2 == 0 && node%2 == 1 {
		g ^= 1
	}
	return g
}

// backwards tells whether a channel passes the machines from the last to the first.
func (r *Rings) backwards(channel int) bool { return r.graph.Opposed && channel%2 == 1 }

// before returns how many ranks of a channel's ring stand before those of a machine.
func (r *Rings) before(channel, node int) int {
	if r.backwards(channel) {
		return r.Ranks() - r.FirstRank(node+1)
	}
	return r.FirstRank(node)
}

// Index returns the place of a rank in a channel's ring, counted from the first
// rank of the order of the first machine, or of the last one where the channel
// passes the machines backwards.
func (r *Rings) Index(channel, rank int) int {
	node := r.NodeOf(rank)
	return r.before(channel, node) + r.place(node, r.follows(node, channel), rank)
}

// At returns the rank at a place of a channel's ring; the place wraps round.
func (r *Rings) At(channel, index int) int {
	n := r.Ranks()
	index = ((index % n) + n) % n
	node := r.NodeOf(index)
	if r.backwards(channel) {
		node = r.NodeOf(n - 1 - index)
	}
	return r.at(node, r.follows(node, channel), index-r.before(channel, node))
}

// NETs returns the ports that a channel uses from the given rank to the next:
// out of the rank's machine and into the next rank's; -1, -1 inside a machine.
func (r *Rings) NETs(channel, rank int) (out, in int) {
	node := r.NodeOf(rank)
	next := r.NodeOf(r.At(channel, r.Index(channel, rank)+1))
	if next == node {
		return -1, -1
	}
	return r.on(node, r.follows(node, channel)).Out, r.on(next, r.follows(next, channel)).In
}
