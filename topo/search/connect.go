package search

import (
	"math/bits"

	"tutti/topo"
)

// chains is what rings and trees over all machines have in common: the order of
// the GPUs on each machine.
type chains struct {
	graph    Graph
	nodes, k int
	position [][]int // by graph channel: a GPU's place in the order
}

func newChains(c *topo.Cluster, g Graph) chains {
	s := chains{graph: g, nodes: c.Nodes, k: c.RanksPerNode()}
	for _, ch := range g.Channels {
		position := make([]int, s.k)
		for i, gpu := range ch.GPUs {
			position[gpu] = i
		}
		s.position = append(s.position, position)
	}
	return s
}

// Ranks returns the number of ranks.
func (s *chains) Ranks() int { return s.nodes * s.k }

// Channels returns the number of channels: twice the graph's, as every one of
// its channels is used a second time (NCCL 2.28.3, connect.cc, ncclTopoPostset).
func (s *chains) Channels() int { return min(MaxChannels, 2*len(s.graph.Channels)) }

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

// Position is the place of a node in a tree.
type Position struct {
	// Up is the parent, or -1 at the root.
	Up       int
	down     [3]int
	children int
}

// Down returns the children.
func (p *Position) Down() []int { return p.down[:p.children] }

func (p *Position) add(child int) {
	p.down[p.children] = child
	p.children++
}

// Btree places x among the n nodes of the binary tree rooted at 0, in which
// inner nodes and leaves alternate: the lowest set bit of x gives its height
// (NCCL 2.28.3, src/graph/trees.cc, ncclGetBtree).
func Btree(n, x int) Position {
	if x == 0 {
		p := Position{Up: -1}
		if n > 1 {
			p.add(1 << (bits.Len(uint(n-1)) - 1)) // the largest power of two below n
		}
		return p
	}
	bit := x & -x
	p := Position{Up: x&^bit | bit<<1}
	if p.Up >= n {
		p.Up = x &^ bit
	}
	if bit > 1 {
		p.add(x - bit/2)
		for step := bit / 2; step > 0; step /= 2 {
			if x+step < n {
				p.add(x + step)
				break
			}
		}
	}
	return p
}

// DoubleBtree places x in one of the two trees (0 or 1) over n nodes. The
// second is the first mirrored, or shifted by one if n is odd, so that a node
// which is inner in one is a leaf in the other. Each tree carries half of the
// data. Source: Sanders, Speck, Träff, "Two-tree algorithms for full bandwidth
// broadcast, reduction and scan", 2009; NCCL 2.28.3, trees.cc, ncclGetDtree.
func DoubleBtree(tree, n, x int) Position {
	if tree == 0 {
		return Btree(n, x)
	}
	there, back := n-1-x, func(v int) int { return n - 1 - v }
	if n%2 == 1 {
		there, back = (x-1+n)%n, func(v int) int { return (v + 1) % n }
	}
	p := Btree(n, there)
	if p.Up >= 0 {
		p.Up = back(p.Up)
	}
	for i, child := range p.Down() {
		p.down[i] = back(child)
	}
	return p
}

// Trees connects the tree channels of all machines: a chain inside each, and a
// double binary tree over them, tree 0 on the first half of the channels and
// tree 1 on the second.
type Trees struct{ chains }

// NewTrees connects the graph's channels over the machines of c.
func NewTrees(c *topo.Cluster, g Graph) *Trees { return &Trees{newChains(c, g)} }

// At places a rank in the tree of a channel. The chain's next rank is the first
// child, those on other machines follow.
func (t *Trees) At(channel, rank int) Position {
	node, gpu := rank/t.k, rank%t.k
	g := channel % len(t.graph.Channels)
	order := t.graph.Channels[g].GPUs
	i := t.position[g][gpu]
	p := Position{Up: -1}
	if i > 0 {
		p.Up = node*t.k + order[i-1]
	}
	if i+1 < t.k {
		p.add(node*t.k + order[i+1])
	}
	if i == 0 && t.nodes > 1 {
		between := DoubleBtree(channel/len(t.graph.Channels)%2, t.nodes, node)
		if between.Up >= 0 {
			p.Up = between.Up*t.k + order[0]
		}
		for _, child := range between.Down() {
			p.add(child*t.k + order[0])
		}
	}
	return p
}

// NET returns the port that a channel uses between machines.
func (t *Trees) NET(channel int) int {
	return t.graph.Channels[channel%len(t.graph.Channels)].In
}

// Heads connects the NVLS heads of all machines: head h of every machine owns
// the same share of the data, and on each channel the h-th heads form one of
// the two trees of a double binary tree over the machines, tree 0 on even
// channels (NCCL 2.28.3, connect.cc, ncclNvlsTreeConnect).
type Heads struct {
	graph    Graph
	nodes, k int
}

// NewHeads connects the graph's heads over the machines of c.
func NewHeads(c *topo.Cluster, g Graph) *Heads {
	return &Heads{graph: g, nodes: c.Nodes, k: c.RanksPerNode()}
}

// Nodes returns the number of machines.
func (h *Heads) Nodes() int { return h.nodes }

// RanksPerNode returns the number of ranks on each machine.
func (h *Heads) RanksPerNode() int { return h.k }

// Heads returns how many of the ranks on each machine are heads.
func (h *Heads) Heads() int { return len(h.graph.Channels) }

// GPU returns which GPU of each machine is the given head.
func (h *Heads) GPU(head int) int { return h.graph.Channels[head].GPUs[0] }

// NET returns the port of a head, or -1 within one machine.
func (h *Heads) NET(head int) int { return h.graph.Channels[head].In }

// At places a machine in the tree of a channel.
func (h *Heads) At(channel, node int) Position {
	return DoubleBtree(channel%2, h.nodes, node)
}
