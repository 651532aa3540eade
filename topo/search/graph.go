package search

import (
	"errors"
	"fmt"
	"slices"

	"tutti/model/units"
	"tutti/topo"
)

// Pattern tells what the order of a channel's GPUs means, with NCCL's numbers.
type Pattern int

// The patterns.
const (
	BalancedTree  Pattern = 1 // a chain; one child joins at the first GPU, one at the second
	SplitTree     Pattern = 2 // a chain; the parent joins at the first GPU, both children at the second
	TreePattern   Pattern = 3 // a chain; parent and children all join at the first GPU
	RingPattern   Pattern = 4
	NVLSPattern   Pattern = 5 // the first GPU heads a share of the data
	CollNetDirect Pattern = 6 // the first GPU heads a share, which the others send it
)

// tree says that the pattern is a chain that is part of a tree.
func (p Pattern) tree() bool { return p == BalancedTree || p == SplitTree || p == TreePattern }

// Channel is what one channel looks like on one machine.
type Channel struct {
	// GPUs is the order, as indexes among the machine's GPUs.
	GPUs []int
	// In and Out are the NETs by which the channel enters at the first GPU and
	// leaves at the last (rings) or the first (trees, heads), or -1 within one
	// machine.
	In, Out int
}

// Graph is what the search found for one pattern.
type Graph struct {
	Pattern  Pattern
	Channels []Channel
	// BwIntra and BwInter are what each channel gets within a machine and
	// between machines.
	BwIntra, BwInter units.Rate
	// LatencyInter is what the NETs in use add to a message.
	LatencyInter units.Time
	// TypeIntra and TypeInter are the worst paths used between GPUs and from a
	// GPU to its NET.
	TypeIntra, TypeInter topo.PathType
	// CrossNic is 0 where rings leave by the NET that they enter by, 1 where they
	// need not, and 2 where they leave by that which the other ring of a pair
	// enters by: every second machine then swaps its channels in pairs, so that
	// they stay on the rails.
	CrossNic int
	// SameChannels says that every channel was to have the order of the first.
	SameChannels bool
	// Others are the graphs of the further machines of a mixed cluster, whose
	// channels are others, as many, and as fast: of the second of
	// [topo.Cluster.Machines], and so on.
	Others []Graph
	// Opposed says that the second ring of every pair passes the machines
	// backwards (see [RailRings]).
	Opposed bool
}

// On returns the graph of one of the kinds of machines that a cluster has.
func (g *Graph) On(kind int) *Graph {
	if kind == 0 {
		return g
	}
	return &g.Others[kind-1]
}

// Aligned tells whether the channels of all machines have their NETs in common.
func (g *Graph) Aligned() bool {
	for _, other := range g.Others {
		for i, ch := range g.Channels {
			if o := other.Channels[i]; ch.In != o.In || ch.Out != o.Out {
				return false
			}
		}
	}
	return true
}

// first returns the graph with its first n channels, on all machines.
func (g Graph) first(n int) Graph {
	g.Channels, g.Others = g.Channels[:n], slices.Clone(g.Others)
	for i := range g.Others {
		g.Others[i].Channels = g.Others[i].Channels[:n]
	}
	return g
}

// Graphs are the graphs of a cluster that tuning and schedules start from.
type Graphs struct {
	Ring, Tree Graph
	// CollNetChain and CollNetDirect have no channels unless they were asked for
	// and the network can do collectives.
	CollNetChain, CollNetDirect Graph
	// NVLS has no channels where NVLSError says why there is no NVLS.
	NVLS      Graph
	NVLSError error
}

// Limits of NCCL 2.28.3 (src/include/device.h).
const (
	// MaxChannels is how many channels a communicator may have (MAXCHANNELS).
	MaxChannels = 64
	// maxHeads is how many GPUs of a machine NVLS has as heads
	// (NCCL_MAX_NVLS_ARITY).
	maxHeads = 32
	// maxDirectHeads is how many of them CollNetDirect has
	// (NCCL_MAX_DIRECT_ARITY, and the head itself).
	maxDirectHeads = 8
	// collNetNodes is how many machines CollNet takes (NCCL_COLLNET_NODE_THRESHOLD).
	collNetNodes = 2
)

// All finds the rings, trees and NVLS heads of a cluster: chains that double binary
// trees are made of, as many as rings, and up to 32 GPUs of a machine as heads,
// each of which owns an equal share of the data.
func All(c *topo.Cluster) Graphs { return Find(c, Options{}) }

// find finds the graphs of equal machines in NCCL's order, since the count of ring
// channels bounds that of the trees (NCCL 2.28.3, src/init.cc,
// initTransportsRank): what one of them finds is what all agree on.
func find(c *topo.Cluster, o Options) Graphs {
	s := newSpace(c)
	s.crossing = o.CrossNic
	for i, net := range s.nets {
		s.offloads = append(s.offloads, s.Nodes[net].Coll || o.SHARP && c.Reduces(i))
	}
	g := Graphs{}
	if o.Given != nil {
		g = *o.Given
	}
	fill := func(g *Graph, r request) {
		if len(g.Channels) == 0 || g.CrossNic == 1 && o.CrossNic == CrossNicNever {
			*g = s.find(r)
		}
	}
	fill(&g.Ring, request{pattern: RingPattern, min: 1, max: MaxChannels / 2})
	rings := len(g.Ring.Channels)
	fill(&g.Tree, request{pattern: BalancedTree, min: rings, max: rings})
	if o.CollNet && c.Nodes >= collNetNodes {
		fill(&g.CollNetChain, request{pattern: TreePattern, min: rings, max: rings, collNet: true})
		fill(&g.CollNetDirect, request{pattern: CollNetDirect, min: 1, max: MaxChannels, collNet: true})
	} else {
		g.CollNetChain, g.CollNetDirect = Graph{}, Graph{}
	}
	if g.NVLSError = s.noNVLS(); o.NoNVLS {
		g.NVLSError = errors.New("NVLS is switched off")
	}
	if g.NVLSError != nil {
		g.NVLS = Graph{}
		return g
	}
	fill(&g.NVLS, request{pattern: NVLSPattern, min: 1, max: MaxChannels})
	if len(g.NVLS.Channels) == 0 {
		g.NVLSError = fmt.Errorf("NVLS finds no way through the NVSwitch of %s", c.Machine.Name)
	}
	return g
}

// noNVLS says why there is no NVLS, if so: without an NVSwitch, before Hopper, and
// with fewer than three GPUs (NCCL 2.28.3, src/transport/nvls.cc, ncclNvlsInit).
func (s *space) noNVLS() error {
	switch {
	case s.NVS < 0:
		return fmt.Errorf("NVLS needs an NVSwitch, and %s has none", s.Name)
	case s.sm < 90:
		return fmt.Errorf("NVLS needs GPUs of compute capability 9.0 or higher, and %s has %d.%d", s.Name, s.sm/10, s.sm%10)
	case len(s.gpus) < 3:
		return fmt.Errorf("NVLS needs three GPUs or more on a machine, and %d take part", len(s.gpus))
	}
	return nil
}
