package search

import (
	"math/bits"

	"tutti/topo"
)

// Connection is what a communicator's ranks set up between them: as many channels
// as rings and trees both have, twice over, and those of NVLS and of send and
// receive.
type Connection struct {
	Rings *Rings
	Trees *Trees
	// Heads is nil where there is no NVLS.
	Heads *Heads
	// Search is how many channels of rings and trees are in use; tree 1 begins at
	// this channel.
	Search int
	// Collective is how many channels a collective may use, NVLS how many it may
	// use with NVLS, P2P how many there are for send and receive, and PerPeer how
	// many of those a pair of ranks uses.
	Collective, NVLS, P2P, PerPeer int
}

// Connect connects the graphs of a cluster (NCCL 2.28.3, src/graph/connect.cc,
// ncclTopoPostset; src/init.cc).
func Connect(c *topo.Cluster, g Graphs) *Connection {
	n := min(len(g.Ring.Channels), len(g.Tree.Channels))
	views := viewsOf(c)
	sm := views[0].SM()
	for _, view := range views {
		sm = min(sm, view.SM())
	}
	k := &Connection{Search: n, Collective: collective(c, g, n, sm)}
	k.Rings, k.Trees = NewRings(c, g.Ring.first(n)), NewTrees(c, g.Tree.first(n))
	if len(g.NVLS.Channels) > 0 {
		k.Heads = NewHeads(c, g.NVLS)
		k.NVLS = nvlsChannels(c, sm)
	}
	k.P2P, k.PerPeer = p2pChannels(c, views, k.Collective)
	return k
}

// viewsOf returns what NCCL sees of each kind of machine: the GPUs that take part.
func viewsOf(c *topo.Cluster) (views []*topo.System) {
	for kind := range c.Machines() {
		alike := c.AllOf(kind)
		views = append(views, alike.Machine.Restrict(alike.RanksPerNode(), c.Nodes > 1))
	}
	return views
}

// collective is how many channels a collective has with n channels found: twice
// as many, and more where CollNet leaves room within machines or where fast GPUs
// would have few.
func collective(c *topo.Cluster, g Graphs, n, sm int) int {
	channels := min(MaxChannels, 2*n)
	if chain := g.CollNetChain; len(chain.Channels) > 0 && chain.BwIntra > chain.BwInter && c.Ranks() > c.Nodes {
		channels = min(MaxChannels, channels+channels/2)
	}
	if sm >= 90 && c.Nodes > 1 && g.Ring.BwIntra > rate(45) && channels < 16 {
		channels = min(MaxChannels, 2*channels)
	}
	return channels
}

// nvlsChannels is how many channels NVLS uses, whatever it has as heads (NCCL
// 2.28.3, src/transport/nvls.cc, ncclNvlsInit).
func nvlsChannels(c *topo.Cluster, sm int) int {
	switch {
	case sm < 100:
		return 16
	case c.Nodes > 1:
		return 32
	default:
		return 24
	}
}

// p2pChannels is how many channels there are for send and receive, and how many
// of them a pair of ranks uses: as many as every pair can (NCCL 2.28.3,
// src/graph/paths.cc, ncclTopoComputeP2pChannels).
func p2pChannels(c *topo.Cluster, views []*topo.System, collective int) (all, perPeer int) {
	all = min(collective, MaxChannels)
	perPeer = all
	for _, view := range views {
		for _, g := range view.GPUs {
			for _, peer := range view.GPUs {
				if g == peer {
					continue
				}
				channels := 2
				if path := view.Path(peer, g); path.Type == topo.PathNVL {
					channels *= max(1, int(path.Rate/view.NVLinkRate(g)))
				}
				perPeer = min(perPeer, channels)
			}
			if c.Nodes > 1 {
				channels := 2
				for channels > 1 && channels*c.Ranks() > 4*all {
					channels /= 2
				}
				perPeer = min(perPeer, max(channels, portsFor(view, g)))
			}
		}
	}
	all = min(MaxChannels, powerOfTwo(all))
	return all, min(all, powerOfTwo(perPeer))
}

// portsFor is how many of its nearest NETs fill the link from a GPU to its CPU; 0
// if it is behind a switch.
func portsFor(s *topo.System, gpu int) int {
	var toCPU, nets float64
	for _, l := range s.Nodes[gpu].Out {
		if s.Nodes[s.Links[l].To].Type == topo.CPU {
			toCPU = float64(s.Links[l].Rate)
		}
	}
	count := 0
	for _, net := range s.NearestNETs(gpu) {
		if nets >= toCPU {
			break
		}
		nets += float64(s.Path(gpu, net).Rate)
		count++
	}
	return count
}

// powerOfTwo is the first power of two that is not below n.
func powerOfTwo(n int) int { return 1 << bits.Len(uint(n-1)) }
