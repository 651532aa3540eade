package search

import "tutti/topo"

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
