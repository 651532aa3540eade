package sim

import "sort"

// blocks are entities that are numbered machine by machine, as many on each as it
// has ranks for.
type blocks struct {
	most  int   // on a machine
	even  bool  // all have as many
	first []int // by machine, and in all
}

// newBlocks returns those that begin at the given numbers; first(nodes) is how many
// there are in all.
func newBlocks(nodes int, first func(node int) int) blocks {
	b := blocks{even: true, first: make([]int, nodes+1)}
	for node := range nodes {
		b.first[node+1] = first(node + 1)
		b.most = max(b.most, b.size(node))
		b.even = b.even && b.size(node) == b.size(0)
	}
	return b
}

// size returns how many entities a machine has.
func (b *blocks) size(node int) int { return b.first[node+1] - b.first[node] }

// at returns the machine of an entity, and which of the machine's it is.
func (b *blocks) at(entity int) (node, local int) {
	if b.even {
		return entity / b.most, entity % b.most
	}
	node = sort.SearchInts(b.first, entity+1) - 1
	return node, entity - b.first[node]
}
