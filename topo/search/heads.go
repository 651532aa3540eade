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
	heads    []Channel
	nodes, k int
}

// NewHeads connects the heads of a graph, of NVLS or of CollNetDirect, over the
// machines of c. A GPU that heads several channels counts once.
func NewHeads(c *topo.Cluster, g Graph) *Heads {
	h := &Heads{nodes: c.Nodes, k: c.RanksPerNode()}
	for _, ch := range g.Channels {
		if !slices.ContainsFunc(h.heads, func(other Channel) bool { return other.GPUs[0] == ch.GPUs[0] }) {
			h.heads = append(h.heads, ch)
		}
	}
	return h
}

// Nodes returns the number of machines.
func (h *Heads) Nodes() int { return h.nodes }

// RanksPerNode returns the number of ranks on each machine.
func (h *Heads) RanksPerNode() int { return h.k }

// Heads returns how many of the ranks on each machine are heads.
func (h *Heads) Heads() int { return len(h.heads) }

// GPU returns which GPU of each machine is the given head.
func (h *Heads) GPU(head int) int { return h.heads[head].GPUs[0] }

// Of returns which head a rank is, or -1.
func (h *Heads) Of(rank int) int {
	for head, ch := range h.heads {
		if ch.GPUs[0] == rank%h.k {
			return head
		}
	}
	return -1
}

// NET returns the port of a head, or -1 within one machine.
func (h *Heads) NET(head int) int { return h.heads[head].In }

// Twin returns the channel of the other tree that is like the given one within
// machines.
func (h *Heads) Twin(channel int) int { return channel ^ 1 }

// At places a machine in the tree of a channel.
func (h *Heads) At(channel, node int) Position {
	return DoubleBtree(channel%2, h.nodes, node)
}
