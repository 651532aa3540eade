package search

import "tutti/topo"

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

// Of returns which head a rank is, or -1.
func (h *Heads) Of(rank int) int {
	for head, ch := range h.graph.Channels {
		if ch.GPUs[0] == rank%h.k {
			return head
		}
	}
	return -1
}

// NET returns the port of a head, or -1 within one machine.
func (h *Heads) NET(head int) int { return h.graph.Channels[head].In }

// At places a machine in the tree of a channel.
func (h *Heads) At(channel, node int) Position {
	return DoubleBtree(channel%2, h.nodes, node)
}
