package tuning

import (
	"math"

	"tutti/model"
	"tutti/model/profile"
	"tutti/model/units"
	"tutti/topo"
	"tutti/topo/search"
)

// Cost is NCCL's prediction for one algorithm and protocol: a call of b bytes
// takes Latency + b/Bandwidth.
type Cost struct {
	Latency float64 // microseconds
	// Bandwidth is algorithm bandwidth in GB/s; 0 means that the combination is
	// not to be had.
	Bandwidth float64
}

// New computes the costs for a cluster with the given graphs.
func New(c *topo.Cluster, g search.Graphs) *Model {
	m := &Model{
		ranks: c.Ranks(), nodes: c.Nodes, sm: c.Machine.SM(), nvls: nvlsChannels(c),
		channels: min(search.NewRings(c, g.Ring).Channels(), search.NewTrees(c, g.Tree).Channels()),
	}
	if m.ranks == 1 { // a copy: nothing to choose
		m.costs = map[model.Algorithm]map[model.Protocol]Cost{model.Ring: {model.Simple: {profile.NCCLBase[model.Ring][model.Simple], 1}}}
		return m
	}
	b := newBandwidths(c)
	m.costs = map[model.Algorithm]map[model.Protocol]Cost{model.Ring: {}, model.Tree: {}}
	for _, p := range model.Protocols() {
		m.costs[model.Ring][p] = Cost{ringLatency(c, g.Ring, p), b.ring(g.Ring, p)}
		m.costs[model.Tree][p] = Cost{treeLatency(c, g.Tree, p), b.tree(g.Tree, p)}
	}
	for _, graph := range []search.Graph{g.Ring, g.Tree} {
		if graph.TypeIntra > topo.PathNVB || graph.TypeInter > ll128Inter(m.sm) || m.sm < 70 {
			m.disable(model.Ring, model.LL128)
			m.disable(model.Tree, model.LL128)
		}
	}
	if len(g.NVLS.Channels) < 2 {
		return m
	}
	hop := profile.NCCLHop[profile.HopNVLink][model.NVLS][model.Simple]
	if c.Nodes == 1 {
		m.costs[model.NVLS] = map[model.Protocol]Cost{model.Simple: {hop, b.nvls(g.NVLS)}}
	} else {
		hop += float64(2 * math.Log2(float64(c.Nodes)) * profile.NCCLHop[profile.HopNET][model.NVLSTree][model.Simple])
		m.costs[model.NVLSTree] = map[model.Protocol]Cost{model.Simple: {hop, b.nvls(g.NVLS)}}
	}
	return m
}

// bandwidths computes algorithm bandwidths in GB/s.
type bandwidths struct {
	gen    profile.Generation
	column int // of the generation's limits: one node, two, more
	nodes  int
	llMax  float64
	ratio  float64 // algorithm bandwidth over bus bandwidth
}

func newBandwidths(c *topo.Cluster) bandwidths {
	b := bandwidths{gen: profile.GenerationOf(c.Machine.SM()), column: min(c.Nodes, 3) - 1, nodes: c.Nodes}
	b.llMax = b.gen.LL[b.column]
	if c.Nodes > 1 { // across nodes the CPU decides
		b.llMax = profile.Volta.LL[b.column]
		if c.Machine.AMD() {
			b.llMax = profile.Ampere.LL[b.column]
		}
	}
	n := float64(c.Ranks())
	b.ratio = n / (2 * (n - 1))
	return b
}

// total returns what all channels of a graph have together.
func (b bandwidths) total(g search.Graph) float64 {
	bw := g.BwIntra
	if b.nodes > 2 {
		bw = g.BwInter
	}
	return float64(len(g.Channels)) * float64(bw/units.GBps)
}

func (b bandwidths) ring(g search.Graph, p model.Protocol) float64 {
	bus := b.total(g)
	switch p {
	case model.LL:
		bus = min(b.llMax, .5*bus)
	case model.LL128:
		bus = min(.92*bus, float64(len(g.Channels))*b.gen.RingLL128[b.column])
	}
	return bus * b.ratio
}

func (b bandwidths) tree(g search.Graph, p model.Protocol) float64 {
	channels := float64(len(g.Channels))
	bus := min(.92*b.total(g), channels*b.gen.TreeSimple[b.column])
	switch p {
	case model.LL:
		bus = min(bus/3.8, b.llMax)
	case model.LL128:
		share := 120.0 / 128
		if b.nodes == 1 {
			share = 7.0 / 9
		}
		bus = min(bus*share, channels*b.gen.TreeLL128[b.column])
	}
	if g.Pattern == search.TreePattern {
		bus *= .85
	}
	return bus / 2
}

func (b bandwidths) nvls(g search.Graph) float64 {
	heads := float64(len(g.Channels))
	intra := float64(g.BwIntra/units.GBps) * b.gen.NVLS * (heads - 1) / heads * 2
	inter, limit := float64(g.BwInter/units.GBps), math.Inf(1)
	if b.nodes > 1 {
		limit = b.gen.NVLSTree[b.column]
	}
	if b.nodes == 2 {
		inter *= 2
	}
	return min(intra, inter, limit) * heads * b.ratio
}

func (m *Model) disable(a model.Algorithm, p model.Protocol) {
	c := m.costs[a][p]
	c.Bandwidth = 0
	m.costs[a][p] = c
}

// ll128Inter is the worst path to the network that LL128 is trusted on.
func ll128Inter(sm int) topo.PathType {
	if sm >= 90 {
		return topo.PathPXN
	}
	return topo.PathPXB
}

// hop returns NCCL's cost of a hop inside a machine for the graph's paths.
func hop(g search.Graph, a model.Algorithm, p model.Protocol) float64 {
	if g.TypeIntra == topo.PathNVL {
		return profile.NCCLHop[profile.HopNVLink][a][p]
	}
	return profile.NCCLHop[profile.HopPCI][a][p]
}

func ringLatency(c *topo.Cluster, g search.Graph, p model.Protocol) float64 {
	steps, across := 2*(c.Ranks()-1), 0
	intra := hop(g, model.Ring, p)
	inter := profile.NCCLHop[profile.HopNET][model.Ring][p]
	if c.RanksPerNode() == 1 {
		inter = profile.NCCLHop[profile.HopNET][model.Tree][p]
	}
	if c.Nodes > 1 {
		across = 2 * (c.Nodes - 1)
		overhead := 1.0 // of the network proxy, for every step (getNetOverhead)
		if c.Machine.AMD() {
			overhead = 2
		}
		if p == model.Simple {
			overhead *= 3
		}
		intra = max(intra, overhead)
	}
	// The conversions keep compilers from fusing products into the sums.
	return profile.NCCLBase[model.Ring][p] + float64(float64(steps-across)*intra) + float64(float64(across)*inter)
}

func treeLatency(c *topo.Cluster, g search.Graph, p model.Protocol) float64 {
	levels := math.Floor(math.Log2(float64(c.Nodes)))
	inter := profile.NCCLHop[profile.HopNET][model.Tree][p]
	way := float64(float64(c.RanksPerNode()-1)*hop(g, model.Tree, p)) + float64(levels*inter)
	return profile.NCCLBase[model.Tree][p] + float64(2*way)
}
