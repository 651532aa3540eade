package search

import "tutti/topo"

// Rings connects the ring channels of all machines. The second half of the
// channels has the same rings as the first.
type Rings struct{ chains }

// NewRings connects the graph's channels over the machines of c.
func NewRings(c *topo.Cluster, g Graph) *Rings { return &Rings{newChains(c, g)} }

// on returns the graph channel that a channel follows on a machine.
func (r *Rings) on(node, channel int) int {
	g := channel % len(r.graph.Channels)
	if r.graph.CrossNic && node%2 == 1 {
		g ^= 1
	}
	return g
}

// Index returns the place of a rank in a channel's ring, counted from the first
// rank of the first machine's order.
func (r *Rings) Index(channel, rank int) int {
	node, gpu := rank/r.k, rank%r.k
	return node*r.k + r.position[r.on(node, channel)][gpu]
}

// At returns the rank at a place of a channel's ring; the place wraps round.
func (r *Rings) At(channel, index int) int {
	n := r.Ranks()
	index = ((index % n) + n) % n
	node := index / r.k
	return node*r.k + r.graph.Channels[r.on(node, channel)].GPUs[index%r.k]
}

// NETs returns the ports that a channel uses from the given rank to the next:
// out of the rank's machine and into the next rank's; -1, -1 inside a machine.
func (r *Rings) NETs(channel, rank int) (out, in int) {
	node := rank / r.k
	next := r.At(channel, r.Index(channel, rank)+1) / r.k
	if next == node {
		return -1, -1
	}
	return r.graph.Channels[r.on(node, channel)].Out, r.graph.Channels[r.on(next, channel)].In
}
