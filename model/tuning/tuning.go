// Package tuning predicts in a formula what a collective costs, the way NCCL
// 2.28.3 does before it chooses (src/graph/tuning.cc, src/enqueue.cc): a
// latency and a bandwidth for each algorithm and protocol, from the searched
// graphs and tables of constants. It decides which protocol an algorithm runs
// over and on how many channels, where the user leaves that open.
//
// AllReduce by ring, tree, NVLS and NVLS tree are covered so far.
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

// Model holds the costs of AllReduce on one cluster.
type Model struct {
	costs    map[model.Algorithm]map[model.Protocol]Cost
	ranks    int
	nodes    int
	channels int // of rings and trees
	nvls     int // of NVLS
	sm       int
}

// New computes the costs for a cluster with the given graphs.
func New(c *topo.Cluster, g search.Graphs) *Model {
	n, nodes, k := float64(c.Ranks()), float64(c.Nodes), float64(c.RanksPerNode())
	m := &Model{
		ranks: c.Ranks(), nodes: c.Nodes, sm: c.Machine.SM(),
		channels: min(search.NewRings(c, g.Ring).Channels(), search.NewTrees(c, g.Tree).Channels()),
		nvls:     nvlsChannels(c),
	}
	column := min(c.Nodes, 3) - 1
	gen := profile.GenerationOf(m.sm)
	llMax := gen.LL[column]
	if c.Nodes > 1 { // across nodes the CPU decides
		llMax = profile.Volta.LL[column]
		if c.Machine.AMD() {
			llMax = profile.Ampere.LL[column]
		}
	}
	total := func(g search.Graph) float64 {
		bw := g.BwIntra
		if c.Nodes > 2 {
			bw = g.BwInter
		}
		return float64(len(g.Channels)) * float64(bw/units.GBps)
	}
	ringChannels, treeChannels := float64(len(g.Ring.Channels)), float64(len(g.Tree.Channels))
	ring := total(g.Ring)
	tree := min(.92*total(g.Tree), treeChannels*gen.TreeSimple[column])
	single := 120.0 / 128
	if c.Nodes == 1 {
		single = 7.0 / 9
	}
	pattern := 1.0
	if g.Tree.Pattern == search.TreePattern {
		pattern = .85
	}
	ratio := n / (2 * (n - 1)) // bus to algorithm bandwidth
	m.costs = map[model.Algorithm]map[model.Protocol]Cost{
		model.Ring: {
			model.LL:     {ringLatency(c, g.Ring, model.LL), min(llMax, .5*ring) * ratio},
			model.LL128:  {ringLatency(c, g.Ring, model.LL128), min(.92*ring, ringChannels*gen.RingLL128[column]) * ratio},
			model.Simple: {ringLatency(c, g.Ring, model.Simple), ring * ratio},
		},
		model.Tree: {
			model.LL:     {treeLatency(c, g.Tree, model.LL), min(tree/3.8, llMax) * pattern / 2},
			model.LL128:  {treeLatency(c, g.Tree, model.LL128), min(tree*single, treeChannels*gen.TreeLL128[column]) * pattern / 2},
			model.Simple: {treeLatency(c, g.Tree, model.Simple), tree * pattern / 2},
		},
	}
	for _, graph := range []search.Graph{g.Ring, g.Tree} {
		if graph.TypeIntra > topo.PathNVB || graph.TypeInter > ll128Inter(m.sm) || m.sm < 70 {
			m.disable(model.Ring, model.LL128)
			m.disable(model.Tree, model.LL128)
		}
	}
	if heads := float64(len(g.NVLS.Channels)); heads >= 2 {
		intra, inter := float64(g.NVLS.BwIntra/units.GBps), float64(g.NVLS.BwInter/units.GBps)
		intra *= gen.NVLS * (heads - 1) / heads * 2
		hop := profile.NCCLHop[profile.HopNVLink][model.NVLS][model.Simple]
		if c.Nodes == 1 {
			m.costs[model.NVLS] = map[model.Protocol]Cost{model.Simple: {hop, min(intra, inter) * heads * ratio}}
		} else {
			if c.Nodes == 2 {
				inter *= 2
			}
			net := profile.NCCLHop[profile.HopNET][model.NVLSTree][model.Simple]
			m.costs[model.NVLSTree] = map[model.Protocol]Cost{model.Simple: {
				hop + 2*math.Log2(nodes)*net,
				min(intra, inter, gen.NVLSTree[column]) * heads * ratio,
			}}
		}
	}
	if k*nodes == 1 { // a copy: nothing to choose
		m.costs = map[model.Algorithm]map[model.Protocol]Cost{model.Ring: {model.Simple: {profile.NCCLBase[model.Ring][model.Simple], 1}}}
	}
	return m
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
	return profile.NCCLBase[model.Ring][p] + float64(steps-across)*intra + float64(across)*inter
}

func treeLatency(c *topo.Cluster, g search.Graph, p model.Protocol) float64 {
	levels := math.Floor(math.Log2(float64(c.Nodes)))
	inter := profile.NCCLHop[profile.HopNET][model.Tree][p]
	return profile.NCCLBase[model.Tree][p] + 2*(float64(c.RanksPerNode()-1)*hop(g, model.Tree, p)+levels*inter)
}

// nvlsChannels is the number of blocks that NVLS runs on (NCCL 2.28.3,
// src/transport/nvls.cc).
func nvlsChannels(c *topo.Cluster) int {
	switch {
	case c.Machine.SM() < 100:
		return 16
	case c.Nodes == 1:
		return 24
	default:
		return 32
	}
}

// Cost returns the cost of an algorithm over a protocol.
func (m *Model) Cost(a model.Algorithm, p model.Protocol) Cost { return m.costs[a][p] }

// Available tells whether an algorithm can run on the cluster.
func (m *Model) Available(a model.Algorithm) bool { return len(m.costs[a]) > 0 }

// treeCorrection is what the bandwidth of trees is multiplied by, from 64 bytes
// on by powers of two (NCCL 2.28.3, tuning.cc, treeCorrectionFactor).
var treeCorrection = [...][23]float64{
	model.LL:     {1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1},
	model.LL128:  {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1},
	model.Simple: {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9},
}

// Time predicts a call of the given size in microseconds; +Inf where the
// combination is not to be had.
func (m *Model) Time(a model.Algorithm, p model.Protocol, size units.Bytes) float64 {
	c := m.costs[a][p]
	if c.Bandwidth == 0 {
		return math.Inf(1)
	}
	if i := int(math.Floor(math.Log2(float64(size) / 64))); a == model.Tree && i >= 0 && i < len(treeCorrection[p]) {
		c.Bandwidth *= treeCorrection[p][i]
	}
	if a == model.Ring && p == model.Simple && m.nodes > 1 && int(size)/(m.channels*m.ranks) >= 64 {
		if m.sm >= 80 {
			c.Latency *= 1.4
		} else {
			c.Latency *= 1.9
		}
	}
	return c.Latency + float64(size)/(1000*c.Bandwidth)
}

// Protocol returns the protocol over which the algorithm is predicted to be
// fastest at the given size.
func (m *Model) Protocol(a model.Algorithm, size units.Bytes) model.Protocol {
	best, least := model.Simple, math.Inf(1)
	for _, p := range model.Protocols() {
		if t := m.Time(a, p, size); t < least {
			best, least = p, t
		}
	}
	return best
}

// Algorithm returns the algorithm that is predicted to be fastest at the given
// size, over the protocol that suits it best.
func (m *Model) Algorithm(size units.Bytes) model.Algorithm {
	best, least := model.Ring, math.Inf(1)
	for _, a := range model.Algorithms() {
		if t := m.Time(a, m.Protocol(a, size), size); t < least {
			best, least = a, t
		}
	}
	return best
}

// MaxChannels returns how many channels an algorithm uses at the most.
func (m *Model) MaxChannels(a model.Algorithm) int {
	if a == model.NVLS || a == model.NVLSTree {
		return m.nvls
	}
	return m.channels
}

// Channels returns how many channels a call of the given size uses: rings and
// trees take fewer when a channel's threads would have too little to do (NCCL
// 2.28.3, enqueue.cc, the thread thresholds).
func (m *Model) Channels(a model.Algorithm, p model.Protocol, size units.Bytes) int {
	channels := m.MaxChannels(a)
	if a == model.NVLS || a == model.NVLSTree {
		return channels
	}
	threads, perThread := 512, 8
	switch p {
	case model.LL:
		if a == model.Ring {
			perThread *= m.ranks
		}
	case model.LL128:
		threads = 640
	case model.Simple:
		perThread = 64
	}
	for channels > 1 && int(size) < channels*threads*perThread {
		channels--
	}
	return channels
}
