package search

import "tutti/topo"

// Trees connects the tree channels of all machines: a chain inside each, and a
// double binary tree over them, tree 0 on the first half of the channels and
// tree 1 on the second (NCCL 2.28.3, connect.cc, connectTrees).
type Trees struct{ chains }

// NewTrees connects the graph's channels over the machines of c.
func NewTrees(c *topo.Cluster, g Graph) *Trees { return &Trees{newChains(c, g)} }

// joints returns the places in a machine's chain at which its parent, its first
// and its second child join.
func (t *Trees) joints(node int) (parent, first, second int) {
	next := min(1, t.RanksOn(node)-1)
	switch t.graph.On(t.cluster.Kind(node)).Pattern {
	case BalancedTree:
		return 0, next, 0
	case SplitTree:
		return 0, next, next
	default:
		return 0, 0, 0
	}
}

// At places a rank in the tree of a channel. The chain's next rank is the first
// child, those on other machines follow.
func (t *Trees) At(channel, rank int) Position {
	node := t.NodeOf(rank)
	g := channel % len(t.graph.Channels)
	i := t.place(node, g, rank)
	p := Position{Up: -1}
	if i > 0 {
		p.Up = t.at(node, g, i-1)
	}
	if i+1 < t.RanksOn(node) {
		p.add(t.at(node, g, i+1))
	}
	parent, first, second := t.joints(node)
	if t.Nodes == 1 || i > max(parent, first, second) {
		return p
	}
	between := DoubleBtree(channel/len(t.graph.Channels)%2, t.Nodes, node)
	if i == parent && between.Up >= 0 {
		_, joint, other := t.joints(between.Up)
		if between.Second {
			joint = other
		}
		p.Up = t.at(between.Up, g, joint)
	}
	down1, down2 := between.halves()
	if i == first && down1 >= 0 {
		p.add(t.top(down1, g))
	}
	if i == second && down2 >= 0 {
		p.add(t.top(down2, g))
	}
	return p
}

// top returns the rank of a machine at which its parent joins.
func (t *Trees) top(node, g int) int {
	parent, _, _ := t.joints(node)
	return t.at(node, g, parent)
}

// Twin returns the channel of the other tree that is like the given one within
// machines.
func (t *Trees) Twin(channel int) int {
	n := len(t.graph.Channels)
	return channel + n - 2*n*(channel/n%2)
}

// NETs returns the ports that a channel uses from one rank to another: out of the
// one's machine and into the other's; -1, -1 inside a machine.
func (t *Trees) NETs(channel, from, to int) (out, in int) {
	a, b := t.NodeOf(from), t.NodeOf(to)
	if a == b {
		return -1, -1
	}
	g := channel % len(t.graph.Channels)
	return t.on(a, g).In, t.on(b, g).In
}

// NET returns the port that a channel uses at a rank.
func (t *Trees) NET(channel, rank int) int {
	return t.on(t.NodeOf(rank), channel%len(t.graph.Channels)).In
}
