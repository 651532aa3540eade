package search

import (
	"slices"

	"tutti/topo"
)

// Rails tells by which NET each GPU meets the network when it is not a graph
// that decides: in sends, and where every GPU is on a rail of its own (NCCL
// 2.28.3, src/graph/topo.cc, ncclTopoGetLocalNet).
type Rails struct {
	topo.Layout
	cluster *topo.Cluster
	own     [][][]int // by kind of machine and GPU: its NETs, by channel
}

// NewRails finds the rails of c.
func NewRails(c *topo.Cluster) *Rails {
	r := &Rails{Layout: c.Layout, cluster: c}
	for kind := range c.Machines() {
		s := newSpace(c.AllOf(kind))
		own := make([][]int, len(s.gpus))
		for i, g := range s.gpus {
			own[s.rank[i]] = s.ownNETs(g)
		}
		r.own = append(r.own, own)
	}
	return r
}

// NET returns the port that a channel uses at a rank, as an index among the
// machine's NETs, or -1 if there is none.
func (r *Rails) NET(channel, rank int) int {
	node := r.NodeOf(rank)
	own := r.own[r.cluster.Kind(node)][rank-r.FirstRank(node)]
	if len(own) == 0 {
		return -1
	}
	return own[channel%len(own)]
}

// ownNETs lists the NETs that a GPU uses by itself, by channel until the first
// comes again.
func (s *space) ownNETs(gpu int) []int {
	var list []int
	for channel := range MaxChannels {
		net := slices.Index(s.nets, s.LocalNET(gpu, channel))
		if net < 0 || (len(list) > 0 && net == list[0]) {
			break
		}
		list = append(list, net)
	}
	return list
}
