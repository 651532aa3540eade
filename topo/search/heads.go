package search

import (
	"slices"

	"tutti/topo"
)

// Heads connects the NVLS heads of all machines: head h of every machine owns
// the same share of the data, and on each channel the h-th heads form one of
// the two trees of a double binary tree over the machines, tree 0 on even
// channels (NCCL 2.28.3, connect.cc, ncclNvlsTreeConnect).
type Heads struct {
	topo.Layout
	cluster *topo.Cluster
	heads   [][]Channel // by kind of machine
}

// NewHeads connects the heads of a graph, of NVLS or of CollNetDirect, over the
// machines of c. A GPU that heads several channels counts once; all machines have
// as many heads as the one with the fewest.
func NewHeads(c *topo.Cluster, g Graph) *Heads {
	h := &Heads{Layout: c.Layout, cluster: c, heads: make([][]Channel, 1+len(g.Others))}
	least := MaxChannels
	for kind := range h.heads {
		for _, ch := range g.On(kind).Channels {
			if !slices.ContainsFunc(h.heads[kind], func(other Channel) bool { return other.GPUs[0] == ch.GPUs[0] }) {
				h.heads[kind] = append(h.heads[kind], ch)
			}
		}
		least = min(least, len(h.heads[kind]))
	}
	for kind := range h.heads {
		h.heads[kind] = h.heads[kind][:least]
	}
	return h
}

// on returns the heads of a machine.
func (h *Heads) on(node int) []Channel { return h.heads[h.cluster.Kind(node)] }

// Heads returns how many of the ranks on each machine are heads.
func (h *Heads) Heads() int { return len(h.heads[0]) }

// Rank returns the rank that is a head of a machine.
func (h *Heads) Rank(node, head int) int { return h.FirstRank(node) + h.on(node)[head].GPUs[0] }

// Of returns which head a rank is, or -1.
func (h *Heads) Of(rank int) int {
	node := h.NodeOf(rank)
	return slices.IndexFunc(h.on(node), func(ch Channel) bool { return h.FirstRank(node)+ch.GPUs[0] == rank })
}

// NET returns the port of a head of a machine, or -1 within one machine.
func (h *Heads) NET(node, head int) int { return h.on(node)[head].In }

// Twin returns the channel of the other tree that is like the given one within
// machines.
func (h *Heads) Twin(channel int) int { return channel ^ 1 }

// At places a machine in the tree of a channel.
func (h *Heads) At(channel, node int) Position {
	return DoubleBtree(channel%2, h.Nodes, node)
}
