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

// on returns the graph channel that a channel follows on a machine.
func (r *Rings) on(node, channel int) int {
	n := len(r.graph.Channels)
	g := channel % n
	if r.graph.CrossNic == 2 && n%2 == 0 && node%2 == 1 {
		g ^= 1
	}
	return g
}

// turn maps the place of a machine in a channel's ring to the machine, and back.
func (r *Rings) turn(channel, node int) int {
	if r.graph.Opposed && channel%2 == 1 {
		return r.nodes - 1 - node
	}
	return node
}

// Index returns the place of a rank in a channel's ring, counted from the first
// rank of the order of the first machine, or of the last one where the channel
// passes the machines backwards.
func (r *Rings) Index(channel, rank int) int {
	node, gpu := rank/r.k, rank%r.k
	return r.turn(channel, node)*r.k + r.position[r.on(node, channel)][gpu]
}

// At returns the rank at a place of a channel's ring; the place wraps round.
func (r *Rings) At(channel, index int) int {
	n := r.Ranks()
	index = ((index % n) + n) % n
	node := r.turn(channel, index/r.k)
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
