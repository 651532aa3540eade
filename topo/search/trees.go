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
func (t *Trees) joints() (parent, first, second int) {
	next := min(1, t.k-1)
	switch t.graph.Pattern {
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
	parent, first, second := t.joints()
	if t.nodes == 1 || i > max(parent, first, second) {
		return p
	}
	between := DoubleBtree(channel/len(t.graph.Channels)%2, t.nodes, node)
	if i == parent && between.Up >= 0 {
		joint := first
		if between.Second {
			joint = second
		}
		p.Up = between.Up*t.k + order[joint]
	}
	down1, down2 := between.halves()
	if i == first && down1 >= 0 {
		p.add(down1*t.k + order[parent])
	}
	if i == second && down2 >= 0 {
		p.add(down2*t.k + order[parent])
	}
	return p
}

// Twin returns the channel of the other tree that is like the given one within
// machines.
func (t *Trees) Twin(channel int) int {
	n := len(t.graph.Channels)
	return channel + n - 2*n*(channel/n%2)
}

// NET returns the port that a channel uses between machines.
func (t *Trees) NET(channel int) int {
	return t.graph.Channels[channel%len(t.graph.Channels)].In
}
