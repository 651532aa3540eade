package search

import (
	"slices"

	"tutti/topo"
)

// Rails tells by which NET each GPU meets the network when it is not a graph
// that decides: in sends, and where every GPU is on a rail of its own (NCCL
// 2.28.3, src/graph/topo.cc, ncclTopoGetLocalNet).
type Rails struct {
	own [][]int // by GPU: its NETs, by channel
}

// NewRails finds the rails of c.
func NewRails(c *topo.Cluster) *Rails {
	s := newSpace(c)
	r := &Rails{own: make([][]int, len(s.gpus))}
	for i, g := range s.gpus {
		r.own[s.rank[i]] = s.ownNETs(g)
	}
	return r
}

// NET returns the port that a channel uses at a rank, as an index among the
// machine's NETs, or -1 if there is none.
func (r *Rails) NET(channel, rank int) int {
	own := r.own[rank%len(r.own)]
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
