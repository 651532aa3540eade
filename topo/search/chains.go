package search

import "tutti/topo"

// chains is what rings and trees over all machines have in common: the order of
// the GPUs on each machine.
type chains struct {
	topo.Layout
	cluster  *topo.Cluster
	graph    Graph
	position [][][]int // by kind of machine and graph channel: a GPU's place in the order
}

func newChains(c *topo.Cluster, g Graph) chains {
	s := chains{Layout: c.Layout, cluster: c, graph: g, position: make([][][]int, 1+len(g.Others))}
	for kind := range s.position {
		for _, ch := range g.On(kind).Channels {
			position := make([]int, len(ch.GPUs))
			for i, gpu := range ch.GPUs {
				position[gpu] = i
			}
			s.position[kind] = append(s.position[kind], position)
		}
	}
	return s
}

// on returns a graph channel on a machine.
func (s *chains) on(node, g int) *Channel {
	return &s.graph.On(s.cluster.Kind(node)).Channels[g]
}

// place returns where a rank stands on its machine in a graph channel.
func (s *chains) place(node, g, rank int) int {
	return s.position[s.cluster.Kind(node)][g][rank-s.FirstRank(node)]
}

// at returns the rank that stands at a place on a machine in a graph channel.
func (s *chains) at(node, g, place int) int {
	return s.FirstRank(node) + s.on(node, g).GPUs[place]
}

// Channels returns the number of channels: twice the graph's, as every one of
// its channels is used a second time (NCCL 2.28.3, connect.cc, ncclTopoPostset).
func (s *chains) Channels() int { return min(MaxChannels, 2*len(s.graph.Channels)) }
