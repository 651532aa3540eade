package topo

import "slices"

// Layout tells which ranks are on which machine: they count the GPUs of the first
// one, then those of the second, and so on.
type Layout struct {
	// Nodes is the number of machines.
	Nodes int

	most  int     // ranks on a machine
	first []int   // by node, and in all; nil where all have as many
	node  []int32 // by rank, likewise
}

// newLayout lays out machines with so many ranks each.
func newLayout(ranks []int) Layout {
	l := Layout{Nodes: len(ranks), most: slices.Max(ranks)}
	if slices.Min(ranks) == l.most {
		return l
	}
	l.first = []int{0}
	for node, n := range ranks {
		l.first = append(l.first, l.first[node]+n)
		l.node = append(l.node, slices.Repeat([]int32{int32(node)}, n)...)
	}
	return l
}

// evenLayout lays out nodes machines of as many ranks each.
func evenLayout(nodes, ranks int) Layout { return Layout{Nodes: nodes, most: ranks} }

// Ranks returns the number of ranks.
func (l *Layout) Ranks() int { return l.FirstRank(l.Nodes) }

// RanksPerNode returns the number of ranks on each machine, the most where they
// differ.
func (l *Layout) RanksPerNode() int { return l.most }

// Even tells whether all machines have as many ranks.
func (l *Layout) Even() bool { return l.first == nil }

// FirstRank returns the first rank of a machine; of the one after the last, the
// number of ranks.
func (l *Layout) FirstRank(node int) int {
	if l.first == nil {
		return node * l.most
	}
	return l.first[node]
}

// RanksOn returns the number of ranks on a machine.
func (l *Layout) RanksOn(node int) int { return l.FirstRank(node+1) - l.FirstRank(node) }

// NodeOf returns the machine that a rank is on.
func (l *Layout) NodeOf(rank int) int {
	if l.first == nil {
		return rank / l.most
	}
	return int(l.node[rank])
}

// Local returns which of its machine's ranks one is.
func (l *Layout) Local(rank int) int { return rank - l.FirstRank(l.NodeOf(rank)) }
