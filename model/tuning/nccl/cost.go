package nccl

import (
	"math/bits"

	"tutti/model"
	"tutti/topo"
	"tutti/topo/search"
)

// Cost is the prediction for one algorithm and protocol: a call of b bytes
// takes Latency + b/Bandwidth.
type Cost struct {
	Latency float32 // microseconds
	// Bandwidth is algorithm bandwidth in GB/s; 0 means that the combination is
	// not to be had.
	Bandwidth float32
}

// Model holds the costs of a communicator.
type Model struct {
	comm         Communicator
	costs        [len(collectives)][algorithms][protocols]Cost
	threads      [algorithms][protocols]int // at the most
	channels     int                        // of rings and trees
	nvlsChannels int
}

// New computes the costs of a communicator. It fails for settings that NCCL does
// not understand. A single rank has no costs, as NCCL makes no table for it.
func New(c Communicator, s Settings) (*Model, error) {
	enabled, err := s.enabled(&c)
	if err != nil {
		return nil, err
	}
	c.share()
	m := &Model{comm: c, threads: maxThreads(&c), channels: c.channels(s.CollNet), nvlsChannels: c.nvlsChannels()}
	if c.Ranks == 1 {
		return m, nil
	}
	for f, collective := range collectives {
		for a := range algorithms {
			for p := range protocols {
				e := entry{&c, s, collective, a, model.Protocol(p)}
				if !e.defined() {
					continue
				}
				cost := Cost{Latency: e.latency()}
				if enabled[f][a][p] {
					cost.Bandwidth = e.bandwidth()
				}
				m.costs[f][a][p] = cost
			}
		}
	}
	return m, nil
}

// Cost returns the cost of an algorithm over a protocol, zero where NCCL has
// none.
func (m *Model) Cost(c model.Collective, a Algorithm, p model.Protocol) Cost {
	f, ok := index(c)
	if !ok {
		return Cost{}
	}
	return m.costs[f][a][p]
}

// entry is a place of the table.
type entry struct {
	*Communicator
	Settings
	collective model.Collective
	algorithm  Algorithm
	protocol   model.Protocol
}

// gathers tells whether the collective is AllGather or ReduceScatter.
func (e *entry) gathers() bool {
	return e.collective == model.AllGather || e.collective == model.ReduceScatter
}

// defined tells whether NCCL fills this place of the table, be it disabled.
func (e *entry) defined() bool {
	switch e.algorithm {
	case Ring:
		return true
	case PAT:
		return e.gathers() && e.protocol == model.Simple && e.pat(e.Communicator)
	case NVLS:
		return (e.gathers() || e.collective == model.AllReduce) && e.protocol == model.Simple && e.Communicator.NVLS.Channels > 1
	case NVLSTree:
		return e.collective == model.AllReduce && e.protocol == model.Simple && e.Communicator.NVLS.Channels > 1
	case CollNetDirect:
		return e.gathers() || e.collective == model.AllReduce
	default:
		return e.collective == model.AllReduce
	}
}

// steps returns how many steps a ring makes.
func (e *entry) steps() int {
	switch {
	case e.collective == model.AllReduce:
		return 2 * (e.Ranks - 1)
	case e.gathers():
		return e.Ranks - 1
	default:
		return e.Ranks
	}
}

// column returns which of a table's three columns applies: one node, two, more.
func (e *entry) column() int { return min(e.Nodes, 3) - 1 }

// llMax returns the limit of LL: by the GPU on one node, by the CPU across nodes.
func (e *entry) llMax() float64 {
	switch {
	case e.Nodes == 1:
		return generationOf(e.MinSM).ll[0]
	case e.AMD || e.Mixed:
		return ampere.ll[e.column()]
	default:
		return volta.ll[e.column()]
	}
}

// bandwidth returns algorithm bandwidth in GB/s. The conversions are where NCCL
// stores a float.
func (e *entry) bandwidth() float32 {
	g, limits, col := e.graph(e.algorithm), generationOf(e.MinSM), e.column()
	channels := float64(g.Channels)
	bw := g.BwIntra
	if e.Nodes > 2 && e.algorithm != CollNetDirect && e.algorithm != CollNetChain {
		bw = g.BwInter
	}
	if e.algorithm == NVLS || e.algorithm == NVLSTree {
		bw = e.nvlsBandwidth(g, limits)
	}
	bus := float32(g.Channels) * bw
	switch e.algorithm {
	case Ring:
		switch e.protocol {
		case model.LL:
			bus = float32(min(e.llMax(), float64(bus)*.5))
		case model.LL128:
			bus = float32(min(float64(bus)*.92, channels*limits.ringLL128[col]))
		}
		return bus * float32(float64(e.Ranks)/float64(e.steps()))
	case Tree:
		bus = float32(min(float64(bus)*.92, channels*limits.tree[col]))
		switch e.protocol {
		case model.LL:
			bus = float32(min(float64(bus)/3.8, e.llMax()))
		case model.LL128:
			share := 120.0 / 128
			if e.Nodes == 1 {
				share = 7.0 / 9
			}
			bus = float32(min(float64(bus)*share, channels*limits.treeLL128[col]))
		}
		if g.Pattern == search.TreePattern {
			bus = float32(float64(bus) * .85)
		}
		return bus * .5
	case PAT:
		return float32(float64(bus) * .75)
	case CollNetChain:
		if e.protocol != model.Simple {
			return 0
		}
		return bus * .5
	case CollNetDirect:
		return e.collNetDirect(g, bus)
	default: // NVLS, NVLSTree
		if e.gathers() {
			if e.Nodes > 1 && !e.offloads() {
				return 0
			}
			return bus
		}
		return bus * float32(float64(e.Ranks)/float64(e.steps()))
	}
}

// nvlsBandwidth returns what each NVLS channel carries.
func (e *entry) nvlsBandwidth(g *Graph, limits *generation) float32 {
	intra := g.BwIntra * limits.efficiency * float32(g.Channels-1) / float32(g.Channels)
	if perNode := float32(e.PerNode()); e.collective == model.AllReduce {
		intra *= 2
	} else {
		intra *= (perNode - 1) / perNode
	}
	inter := g.BwInter
	if e.algorithm == NVLS {
		return min(intra, inter)
	}
	if e.Nodes <= 2 {
		inter *= 2
	}
	return min(intra, inter, float32(limits.nvls[e.column()]))
}

// collNetDirect returns the algorithm bandwidth of CollNetDirect, which wants a
// NIC beside each GPU.
func (e *entry) collNetDirect(g *Graph, bus float32) float32 {
	perNode := float32(e.PerNode())
	switch {
	case e.protocol != model.Simple || g.Channels == 0:
		return 0
	case e.gathers():
		if e.Nodes > 1 && !e.offloads() {
			return 0
		}
		return perNode * min(g.BwIntra, float32(float64(g.BwInter)*.9))
	}
	share := perNode / float32(g.Channels)
	share -= (share - 1) / 2
	bus /= share
	if e.MinSM >= 90 {
		bus = float32(float64(bus) * .85)
	}
	return bus * .5
}

// offloads tells whether the network gathers and scatters: the CollNet plugin
// must, and every GPU must be a head.
func (e *entry) offloads() bool {
	return e.Settings.CollNet && e.GatherOffload && e.PerNode() <= e.Communicator.CollNet.Heads
}

// latency returns microseconds. The conversions are where NCCL stores a float.
func (e *entry) latency() float32 {
	a, p, g := e.algorithm, e.protocol, e.graph(e.algorithm)
	base := baseLatency[a][p]
	intra, inter := e.hop(e.intra(), a), hopLatency[hopNET][a][p]
	if e.PerNode() == 1 { // nothing hides the network
		inter = hopLatency[hopNET][Tree][p]
	}
	inter += g.LatencyInter
	if p == model.Simple { // for the flush, too
		inter += g.LatencyInter
	}
	hops, levels := e.PerNode()-1, float32(bits.Len(uint(e.Nodes))-1)
	switch a {
	case Ring:
		return base + e.ringLatency(intra, inter)
	case Tree:
		return base + float32(2*float32(float32(float32(hops)*intra)+float32(levels*inter)))
	case CollNetDirect:
		arity := float64(hops) * .4 // served one after the other
		return float32(float64(base) + float64(2*(float64(float32(min(1, hops))*intra)+arity)) + float64(inter))
	case CollNetChain:
		return base + float32(float32(2*hops)*intra+inter)
	case NVLS:
		if e.Nodes > 1 {
			intra += inter
		}
		return intra
	case NVLSTree:
		return base + float32(intra+float32(2*levels*inter))
	default: // PAT
		linear := float64(e.Ranks) * 2.8
		return float32(float64(base) + float64(levels)*(float64(inter)/3.5) + linear)
	}
}

// ringLatency returns what a ring's steps take. On one node all are alike;
// between nodes the network proxy's overhead counts in every step.
func (e *entry) ringLatency(intra, inter float32) float32 {
	if e.collective == model.Broadcast || e.collective == model.Reduce {
		way := hopNET
		if e.Nodes == 1 {
			way = e.intra()
		}
		switch {
		case e.Ring.SameChannels:
			return e.hop(way, Ring)
		case e.protocol == model.Simple: // chunks wait for each other
			return float32(e.steps()) * e.hop(way, Tree)
		default:
			return float32(e.steps()) * e.hop(way, Ring)
		}
	}
	across := 0
	if e.Nodes > 1 {
		across = e.Nodes - 1
		if e.collective == model.AllReduce {
			across *= 2
		}
		overhead := e.overhead(e.Communicator)
		if e.protocol == model.Simple {
			overhead *= 3
		}
		intra = max(intra, overhead)
	}
	return float32(float32(e.steps()-across)*intra) + float32(float32(across)*inter)
}

// intra returns the kind of hop inside a node.
func (e *entry) intra() hop {
	if e.graph(e.algorithm).TypeIntra == topo.PathNVL {
		return hopNVLink
	}
	return hopPCI
}

// hop returns the latency of a hop for the protocol. Power systems favour trees.
func (e *entry) hop(h hop, a Algorithm) float32 {
	if e.Power && h == hopPCI && a == Tree && e.protocol == model.Simple {
		a = Ring
	}
	return hopLatency[h][a][e.protocol]
}

// maxThreads returns the threads of a block, at the most.
func maxThreads(c *Communicator) (threads [algorithms][protocols]int) {
	const slow = 12 // GB/s of PCI Gen3, up to which half a block will do
	for _, a := range []Algorithm{Tree, Ring} {
		threads[a] = [protocols]int{512, 640, 512}
	}
	if float32(c.Ring.Channels)*c.Ring.BwIntra <= slow {
		threads[Ring][model.Simple] = 256
	}
	for _, a := range []Algorithm{CollNetDirect, CollNetChain, NVLS, NVLSTree} {
		threads[a][model.Simple] = 640
	}
	return threads
}
