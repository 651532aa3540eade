package search

import "tutti/topo"

// Find finds the graphs of a cluster. In a mixed one each kind of machine searches
// by itself, and all take what the weakest allows: the fewest channels, the least
// rate and the worst paths. Each keeps its own order of GPUs, its own ports and its
// own pattern of trees (NCCL 2.28.3, src/init.cc, initTransportsRank).
func Find(c *topo.Cluster, o Options) Graphs {
	if !c.Mixed() {
		return find(c, o)
	}
	each := make([]Graphs, len(c.Machines()))
	for i := range each {
		each[i] = find(c.AllOf(i), o)
	}
	return agreed(each)
}

// Of returns the graphs of one of the kinds of machines that a cluster has, as all
// have agreed on them.
func (g Graphs) Of(kind int) Graphs {
	for _, graph := range g.all() {
		*graph = *graph.On(kind)
		graph.Others = nil
	}
	return g
}

// all lists the graphs.
func (g *Graphs) all() []*Graph {
	return []*Graph{&g.Ring, &g.Tree, &g.CollNetChain, &g.CollNetDirect, &g.NVLS}
}

// agreed returns what several kinds of machines have agreed on.
func agreed(each []Graphs) Graphs {
	a := each[0]
	for _, other := range each[1:] {
		if a.NVLSError == nil {
			a.NVLSError = other.NVLSError
		}
	}
	for i, g := range a.all() {
		worst, n := *g, len(g.Channels)
		for k := range each[1:] {
			b := *each[k+1].all()[i]
			g.Others = append(g.Others, b)
			n = min(n, len(b.Channels))
			worst.BwIntra, worst.BwInter = min(worst.BwIntra, b.BwIntra), min(worst.BwInter, b.BwInter)
			worst.TypeIntra, worst.TypeInter = max(worst.TypeIntra, b.TypeIntra), max(worst.TypeInter, b.TypeInter)
			worst.LatencyInter = max(worst.LatencyInter, b.LatencyInter)
			worst.CrossNic = max(worst.CrossNic, b.CrossNic)
			worst.SameChannels = worst.SameChannels && b.SameChannels
		}
		if g == &a.NVLS && a.NVLSError != nil {
			n = 0
		}
		*g = g.first(n)
		for k := range each {
			o := g.On(k)
			o.BwIntra, o.BwInter, o.TypeIntra, o.TypeInter = worst.BwIntra, worst.BwInter, worst.TypeIntra, worst.TypeInter
			o.LatencyInter, o.CrossNic, o.SameChannels = worst.LatencyInter, worst.CrossNic, worst.SameChannels
		}
	}
	return a
}
