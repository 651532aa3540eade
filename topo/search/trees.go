package search

import "tutti/topo"

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
