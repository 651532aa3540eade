// Package nccl is the cost model by which NCCL 2.28.3 chooses: for every
// collective, algorithm and protocol a latency and a bandwidth, from the
// searched graphs and tables of constants (src/graph/tuning.cc); and from these
// the time by size, the algorithm and protocol that win, and how many channels
// and threads they are launched on (src/enqueue.cc).
//
// All of it is computed in the float32 and float64 of the original, so that
// every figure that NCCL logs comes out to the digit.
package nccl

import (
	"slices"
	"strings"

	"tutti/model"
	"tutti/model/units"
	"tutti/topo"
	"tutti/topo/search"
)

// Algorithm is one that NCCL tells apart in its tables, in its order.
type Algorithm int

// NCCL's algorithms. CollNetDirect and CollNetChain reduce in the network's
// switches; PAT is for one GPU on each node.
const (
	Tree Algorithm = iota
	Ring
	CollNetDirect
	CollNetChain
	NVLS
	NVLSTree
	PAT
	algorithms
)

var algorithmNames = [algorithms]string{"Tree", "Ring", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT"}

// String returns NCCL's name, as in its log and in NCCL_ALGO.
func (a Algorithm) String() string { return algorithmNames[a] }

// Algorithms lists NCCL's algorithms, in order.
func Algorithms() []Algorithm { return indexes[Algorithm](int(algorithms)) }

// Of returns NCCL's equal of an algorithm; ok is false if NCCL has none.
func Of(a model.Algorithm) (same Algorithm, ok bool) {
	for _, own := range Algorithms() {
		if strings.EqualFold(own.String(), a.String()) {
			return own, true
		}
	}
	return 0, false
}

// Model returns the algorithm that has a schedule of the same name; ok is false
// if none has.
func (a Algorithm) Model() (same model.Algorithm, ok bool) {
	same, err := model.ParseAlgorithm(a.String())
	return same, err == nil
}

// protocols counts the protocols, whose names in NCCL are these.
const protocols = int(model.Simple) + 1

var protocolNames = [protocols]string{model.LL: "LL", model.LL128: "LL128", model.Simple: "Simple"}

// ProtocolName returns NCCL's name of a protocol, as in "LL128".
func ProtocolName(p model.Protocol) string { return protocolNames[p] }

// collectives are NCCL's functions, in its order.
var collectives = [...]model.Collective{model.Broadcast, model.Reduce, model.AllGather, model.ReduceScatter, model.AllReduce}

var functionNames = [len(collectives)]string{"Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce"}

// Functions lists the collectives that NCCL has tables for, in its order.
func Functions() []model.Collective { return collectives[:] }

// index returns the number of a collective; ok is false where NCCL has no table.
func index(c model.Collective) (i int, ok bool) {
	i = slices.Index(collectives[:], c)
	return i, i >= 0
}

func indexes[T ~int](n int) []T {
	list := make([]T, n)
	for i := range list {
		list[i] = T(i)
	}
	return list
}

// Graph is what the model takes from a searched graph.
type Graph struct {
	Pattern search.Pattern
	// Channels is the number that the search found; 0 where there is no graph.
	Channels int
	// BwIntra and BwInter are GB/s for each channel.
	BwIntra, BwInter     float32
	TypeIntra, TypeInter topo.PathType
	SameChannels         bool
	// Heads is how many GPUs stand first on some channel.
	Heads int
	// LatencyInter is that of the NETs, in microseconds.
	LatencyInter float32
}

// Communicator is what the model is computed from.
type Communicator struct {
	Ranks, Nodes int
	// MinSM and MaxSM are the lowest and highest compute capability, times ten.
	MinSM, MaxSM int
	// AMD says that the CPUs are AMD's x86 ones, Mixed that vendors differ, and
	// Power that they are IBM's.
	AMD, Mixed, Power bool
	NVSwitch          bool
	Ring, Tree        Graph
	// CollNet and CollNetChain are the graphs of the two CollNet algorithms.
	CollNet, CollNetChain Graph
	NVLS                  Graph
	// GatherOffload says that the CollNet plugin has AllGather and ReduceScatter.
	GatherOffload bool
}

// PerNode returns the number of ranks on each node.
func (c *Communicator) PerNode() int { return c.Ranks / c.Nodes }

// graph returns the graph that an algorithm runs on.
func (c *Communicator) graph(a Algorithm) *Graph {
	switch a {
	case Ring:
		return &c.Ring
	case CollNetDirect:
		return &c.CollNet
	case CollNetChain:
		return &c.CollNetChain
	case NVLS, NVLSTree:
		return &c.NVLS
	default:
		return &c.Tree
	}
}

// share makes ring and tree have as many channels as the smaller of them, as
// they run on the same ones (src/init.cc).
func (c *Communicator) share() {
	n := min(c.Ring.Channels, c.Tree.Channels)
	c.Ring.Channels, c.Tree.Channels = n, n
}

// channels returns how many channels a communicator has (src/graph/connect.cc,
// ncclTopoPostset): twice those of the graph, and more where CollNet or fast
// rings between nodes leave room.
func (c *Communicator) channels(collNet bool) int {
	n := min(search.MaxChannels, 2*c.Ring.Channels)
	if g := c.CollNetChain; collNet && g.BwIntra > g.BwInter && c.Ranks > c.Nodes {
		n = min(search.MaxChannels, n+n/2)
	}
	if c.MinSM >= 90 && c.Nodes > 1 && c.Ring.BwIntra > 45 && n < 16 {
		n *= 2
	}
	return n
}

// nvlsChannels returns how many channels NVLS has (src/transport/nvls.cc).
func (c *Communicator) nvlsChannels() int {
	switch {
	case c.NVLS.Channels == 0:
		return 0
	case c.MinSM < 100:
		return 16
	case c.Nodes == 1:
		return 24
	default:
		return 32
	}
}

// Describe returns the communicator of a cluster with the given graphs.
func Describe(c *topo.Cluster, g search.Graphs) Communicator {
	m := c.Machine
	d := Communicator{
		Ranks: c.Ranks(), Nodes: c.Nodes, MinSM: m.SM(), MaxSM: m.SM(), AMD: m.AMD(), NVSwitch: true,
		Ring: describe(g.Ring), Tree: describe(g.Tree), NVLS: describe(g.NVLS),
		CollNet: describe(g.CollNetDirect), CollNetChain: describe(g.CollNetChain),
	}
	for _, each := range c.Machines() {
		d.NVSwitch = d.NVSwitch && each.NVS >= 0
		for _, gpu := range each.GPUs {
			d.MaxSM = max(d.MaxSM, each.Nodes[gpu].SM)
		}
		for _, cpu := range each.CPUs {
			d.Mixed = d.Mixed || each.Nodes[cpu].Vendor != m.Nodes[m.CPUs[0]].Vendor
		}
	}
	return d
}

// describe describes a graph; that of a mixture has the worst pattern of a machine
// (src/init.cc, treePattern), and no more heads than any has.
func describe(g search.Graph) Graph {
	pattern, first := g.Pattern, heads(g.Channels)
	for _, other := range g.Others {
		pattern, first = max(pattern, other.Pattern), min(first, heads(other.Channels))
	}
	return Graph{
		Pattern: pattern, Channels: len(g.Channels), TypeIntra: g.TypeIntra, TypeInter: g.TypeInter,
		BwIntra: float32(g.BwIntra / units.GBps), BwInter: float32(g.BwInter / units.GBps), SameChannels: g.SameChannels, Heads: first,
		LatencyInter: float32(g.LatencyInter.Microseconds()),
	}
}

// heads counts the GPUs that stand first on some channel.
func heads(channels []search.Channel) int {
	first := map[int]bool{}
	for _, c := range channels {
		first[c.GPUs[0]] = true
	}
	return len(first)
}
