package search

import (
	"math/bits"

	"tutti/topo"
)

// Rails tells by which NET each GPU meets the network when it is not a graph
// that decides: in sends, and where every GPU is on a rail of its own (NCCL
// 2.28.3, src/graph/topo.cc, ncclTopoGetLocalNet).
type Rails struct {
	c     *topo.Cluster
	local [][]int // by GPU: the nearest NETs
	share []int   // by GPU: how many of these it may have for itself
}

// NewRails finds the rails of c.
func NewRails(c *topo.Cluster) *Rails {
	m, r := c.Machine, &Rails{c: c}
	for _, gpu := range m.GPUs {
		local := nearest(m, gpu, m.NETs)
		r.local = append(r.local, local)
		share := 0
		if len(local) > 0 {
			neighbours := len(nearest(m, m.NETs[local[0]], m.GPUs))
			share = (len(local) + neighbours - 1) / neighbours
		}
		r.share = append(r.share, share)
	}
	return r
}

// nearest returns which of the nodes in to have the highest rate from one and,
// among these, the best path.
func nearest(m *topo.System, from int, to []int) (found []int) {
	var best topo.Path
	for i, node := range to {
		p := m.Path(from, node)
		switch {
		case len(found) == 0, p.Rate > best.Rate, p.Rate == best.Rate && p.Type < best.Type:
			best, found = p, []int{i}
		case p.Rate == best.Rate && p.Type == best.Type:
			found = append(found, i)
		}
	}
	return found
}

// NET returns the port that a channel uses at a rank, as an index among the
// machine's NETs, or -1 if there is none.
func (r *Rails) NET(channel, rank int) int {
	gpu := rank % r.c.RanksPerNode()
	local := r.local[gpu]
	n := len(local)
	if n == 0 {
		return -1
	}
	at := gpu
	if log := bits.Len(uint(n)) - 1; n == 1<<log { // neighbours begin far apart
		at = int(bits.Reverse32(uint32(gpu)) >> (32 - log))
	}
	return local[(at+channel%r.share[gpu])%n]
}
