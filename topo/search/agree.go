package search

import (
	"cmp"

	"tutti/topo"
)

// Find finds the graphs of a cluster. In a mixed one each machine searches by
// itself, and all take what the weakest allows: the fewest channels, the least
// rate and the worst path (NCCL 2.28.3, src/init.cc, initTransportsRank). NCCL
// lets each machine keep its own order of GPUs; here all have that of the
// weakest.
func Find(c *topo.Cluster, o Options) Graphs {
	if !c.Mixed() {
		return find(c, o)
	}
	var all Graphs
	for i, m := range c.Machines() {
		if g := find(c.AllOf(m), o); i == 0 {
			all = g
		} else {
			all.agree(g)
		}
	}
	return all
}

// agree takes from the graphs of another machine what they allow less of.
func (g *Graphs) agree(other Graphs) {
	g.Ring = agreed(g.Ring, other.Ring)
	g.Tree = agreed(g.Tree, other.Tree)
	g.CollNetChain = agreed(g.CollNetChain, other.CollNetChain)
	g.CollNetDirect = agreed(g.CollNetDirect, other.CollNetDirect)
	g.NVLS = agreed(g.NVLS, other.NVLS)
	if g.NVLSError == nil {
		g.NVLSError = other.NVLSError
	}
}

func agreed(a, b Graph) Graph {
	if cmp.Or(cmp.Compare(len(b.Channels), len(a.Channels)), cmp.Compare(b.BwInter, a.BwInter), cmp.Compare(b.BwIntra, a.BwIntra)) < 0 {
		a, b = b, a
	}
	a.BwIntra, a.BwInter = min(a.BwIntra, b.BwIntra), min(a.BwInter, b.BwInter)
	a.TypeIntra, a.TypeInter = max(a.TypeIntra, b.TypeIntra), max(a.TypeInter, b.TypeInter)
	a.LatencyInter = max(a.LatencyInter, b.LatencyInter)
	return a
}
