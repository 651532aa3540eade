// Package search finds the channels of a cluster: in which order rings and
// trees pass through the GPUs of a machine, by which ports they leave it, which
// GPUs head NVLS, and how the machines are connected with each other.
//
// The results are those of NCCL 2.28.3 on machines whose GPUs, more than two,
// all meet at one NVSwitch and, between machines, have a NIC each beside them.
// There NCCL's exhaustive search (src/graph/search.cc) comes down to the rules
// given here; on other machines the rules still give rings and trees that work,
// though not always NCCL's. Rings and trees over all ranks are computed on
// demand: a ring over 100,000 ranks takes no memory.
package search

import (
	"fmt"
	"math"

	"tutti/model/units"
	"tutti/topo"
)

// Pattern tells what the order of a channel's GPUs means, with NCCL's numbers.
type Pattern int

// The patterns.
const (
	BalancedTree Pattern = 1 // a chain; one child joins at the first GPU, one at the second
	TreePattern  Pattern = 3 // a chain; parent and children all join at the first GPU
	RingPattern  Pattern = 4
	NVLSPattern  Pattern = 5 // the first GPU heads a share of the data
)

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
	// TypeIntra and TypeInter are the worst paths used between GPUs and from a
	// GPU to its NET.
	TypeIntra, TypeInter topo.PathType
	// CrossNic says that rings leave by another NET than they enter by, so that
	// every second machine swaps its channels in pairs to stay on the rails.
	CrossNic bool
}

// Graphs are the graphs of a cluster that tuning and schedules start from.
type Graphs struct {
	Ring, Tree Graph
	// NVLS has no channels where NVLSError says why there is no NVLS.
	NVLS      Graph
	NVLSError error
}

// All finds every graph of a cluster.
func All(c *topo.Cluster) Graphs {
	g := Graphs{Ring: Ring(c), Tree: Tree(c)}
	g.NVLS, g.NVLSError = NVLS(c)
	return g
}

// maxGraphChannels is how many channels the search looks for: half of what a
// communicator may have (NCCL 2.28.3: ring graphs have at most 32).
const maxGraphChannels = 32

// maxHeads is how many GPUs of a machine NVLS has as heads (NCCL 2.28.3,
// NCCL_MAX_NVLS_ARITY).
const maxHeads = 32

// MaxChannels is how many channels a communicator may have (NCCL's MAXCHANNELS).
const MaxChannels = 64

// speeds are the rates per channel that are tried, from the highest (NCCL
// 2.28.3, src/graph/search.cc, speedArray*).
func speeds(sm int, network bool) []float64 {
	switch {
	case sm >= 100 && network:
		return []float64{96, 48, 45.1, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, .24, .12}
	case sm >= 100:
		return []float64{90, 80, 70, 60, 50, 40, 30, 24, 20, 19, 18}
	case sm >= 90 && network:
		return []float64{48, 45, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, .24, .12}
	case sm >= 90:
		return []float64{60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3}
	case network:
		return []float64{48, 30, 28, 24, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, .24, .12}
	default:
		return []float64{40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3}
	}
}

// fastest returns the highest speed of which share times fits in rate.
func fastest(sm int, network bool, rate units.Rate, share float64) units.Rate {
	all := speeds(sm, network)
	for _, s := range all {
		if share*s <= float64(rate/units.GBps) {
			return units.Rate(s) * units.GBps
		}
	}
	return units.Rate(all[len(all)-1]) * units.GBps
}

// Ring finds the ring channels.
func Ring(c *topo.Cluster) Graph {
	g := Graph{Pattern: RingPattern, TypeIntra: worstIntra(c), TypeInter: topo.PathPIX}
	if c.Nodes == 1 {
		within(c, &g)
		return g
	}
	between(c, &g)
	k := c.RanksPerNode()
	// A ring comes back to the port that it entered by, from the last GPU through
	// the one beside the port (PXN), unless that takes more of NVLink than there
	// is: then it enters by one port of a pair and leaves by the other.
	own := len(g.Channels) == k && len(g.Channels) == len(c.Machine.NETs)
	g.CrossNic = own && k%2 == 0 && g.BwInter*units.Rate(k) > intraRate(c)
	for i := range g.Channels {
		ch := &g.Channels[i]
		if g.CrossNic {
			ch.Out = i ^ 1
			ch.GPUs = walk(k, ch.GPUs[0], 2*(i%2)-1)
		} else {
			ch.GPUs = walk(k, ch.GPUs[0], -1)
		}
		g.TypeInter = max(g.TypeInter, pathOut(c, ch.GPUs[k-1], ch.Out).Type)
	}
	duplicate(c, &g)
	return g
}

// Tree finds the chains that double binary trees are made of; it has as many
// channels as the ring.
func Tree(c *topo.Cluster) Graph {
	g := Graph{Pattern: BalancedTree, TypeIntra: worstIntra(c), TypeInter: topo.PathPIX}
	if c.Nodes == 1 {
		within(c, &g)
		g.BwIntra = fastest(c.Machine.SM(), false, intraRate(c), float64(len(g.Channels)))
		g.BwInter = g.BwIntra
		return g
	}
	g.Pattern = TreePattern
	between(c, &g)
	for i := range g.Channels {
		ch := &g.Channels[i]
		ch.GPUs = walk(c.RanksPerNode(), ch.GPUs[0], 1)
		g.TypeInter = max(g.TypeInter, pathOut(c, ch.GPUs[0], ch.Out).Type)
	}
	duplicate(c, &g)
	// A chain may get twice inside a machine of what it gets between machines, as
	// far as NVLink has room.
	room := intraRate(c) / units.Rate(len(g.Channels)) * units.Rate(c.RanksPerNode()) / units.Rate(max(1, c.RanksPerNode()-1))
	g.BwIntra = max(g.BwIntra, fastest(c.Machine.SM(), true, min(room, 2*g.BwInter), 1))
	return g
}

// NVLS finds the heads: every GPU, up to 32, owns an equal share of the data,
// which it reduces and multicasts through the switch. A head's NET is the one
// near it.
// It fails where NCCL 2.28.3 has no NVLS: without an NVSwitch, before Hopper,
// and with fewer than three GPUs.
func NVLS(c *topo.Cluster) (Graph, error) {
	g := Graph{Pattern: NVLSPattern, TypeIntra: worstIntra(c), TypeInter: topo.PathPIX}
	m, k := c.Machine, c.RanksPerNode()
	switch {
	case m.NVS < 0:
		return g, fmt.Errorf("NVLS needs an NVSwitch, and %s has none", m.Name)
	case m.SM() < 90:
		return g, fmt.Errorf("NVLS needs GPUs of compute capability 9.0 or higher, and %s has %d.%d", m.Name, m.SM()/10, m.SM()%10)
	case k < 3:
		return g, fmt.Errorf("NVLS needs three GPUs or more on a machine, and %d take part", k)
	case g.TypeIntra > topo.PathNVL:
		return g, fmt.Errorf("NVLS needs every GPU on the NVSwitch, and some of %s are not", m.Name)
	}
	heads := min(k, maxHeads)
	limit := intraRate(c) / units.Rate(heads+1) // a head's link carries its own share twice
	network := c.Nodes > 1
	port := units.Rate(math.Inf(1))
	if network {
		port = interRate(c)
	}
	g.BwIntra = fastest(m.SM(), network, min(limit, port), 1)
	g.BwInter = fastest(m.SM(), network, min(port, 2*g.BwIntra), 1)
	for i := range heads {
		ch := Channel{GPUs: []int{i}, In: -1, Out: -1}
		if network {
			ch.In = nearestNET(c, i)
			ch.Out = ch.In
			g.TypeInter = max(g.TypeInter, pathOut(c, i, ch.Out).Type)
		}
		g.Channels = append(g.Channels, ch)
	}
	return g, nil
}

// within fills in the channels of a single machine: the GPUs in order, as many
// times as the narrowest NVLink or PCI path has room.
func within(c *topo.Cluster, g *Graph) {
	rate := intraRate(c)
	g.BwIntra = fastest(c.Machine.SM(), false, rate, 1)
	n := max(1, min(maxGraphChannels, int(rate/g.BwIntra)))
	g.BwInter = g.BwIntra
	for range n {
		g.Channels = append(g.Channels, Channel{GPUs: walk(c.RanksPerNode(), 0, 1), In: -1, Out: -1})
	}
	duplicate(c, g)
}

// between starts a channel at every NET that is the nearest of some GPU.
func between(c *topo.Cluster, g *Graph) {
	g.BwInter = fastest(c.Machine.SM(), true, interRate(c), 1)
	g.BwIntra = g.BwInter
	used := map[int]bool{}
	for gpu := range c.RanksPerNode() {
		if net := nearestNET(c, gpu); !used[net] {
			used[net] = true
			g.Channels = append(g.Channels, Channel{GPUs: []int{gpu}, In: net, Out: net})
		}
	}
}

// duplicate splits wide channels in two, so that more blocks share the work
// (NCCL 2.28.3, ncclTopoDupChannels).
func duplicate(c *topo.Cluster, g *Graph) {
	n, bw, sm := len(g.Channels), g.BwIntra/units.GBps, c.Machine.SM()
	if bw < 25 || (sm > 80 && bw < 50 && n > 4) || 2*n > maxGraphChannels {
		return
	}
	g.Channels = append(g.Channels, g.Channels...)
	g.BwIntra /= 2
	g.BwInter /= 2
}

// walk lists k GPUs from first on, upwards or downwards, wrapping round.
func walk(k, first, step int) []int {
	order := make([]int, k)
	for i := range order {
		order[i] = ((first+i*step)%k + k) % k
	}
	return order
}

// intraRate is the rate of the slowest path from a GPU to the next.
func intraRate(c *topo.Cluster) units.Rate {
	rate := c.Machine.Path(c.GPU(0), c.GPU(0)).Rate
	for i := range c.RanksPerNode() - 1 {
		rate = min(rate, c.Machine.Path(c.GPU(i), c.GPU(i+1)).Rate)
	}
	return rate
}

// interRate is the rate of the slowest path from a GPU to its nearest NET.
func interRate(c *topo.Cluster) units.Rate {
	rate := units.Rate(math.Inf(1))
	for gpu := range c.RanksPerNode() {
		rate = min(rate, pathOut(c, gpu, nearestNET(c, gpu)).Rate)
	}
	return rate
}

// pathOut is the path from a GPU to a NET.
func pathOut(c *topo.Cluster, gpu, net int) topo.Path {
	return c.Machine.Path(c.GPU(gpu), c.Machine.NETs[net])
}

// nearestNET is the NET of the highest rate and then the best path from the
// GPU; among equals, GPUs take turns.
func nearestNET(c *topo.Cluster, gpu int) int {
	m := c.Machine
	var nearest []int
	for k := range m.NETs {
		p := pathOut(c, gpu, k)
		if len(nearest) > 0 {
			best := pathOut(c, gpu, nearest[0])
			if p.Rate < best.Rate || (p.Rate == best.Rate && p.Type > best.Type) {
				continue
			}
			if p.Rate > best.Rate || p.Type < best.Type {
				nearest = nearest[:0]
			}
		}
		nearest = append(nearest, k)
	}
	return nearest[gpu%len(nearest)]
}

// worstIntra is the worst path type between two GPUs.
func worstIntra(c *topo.Cluster) topo.PathType {
	worst := topo.PathNVL
	for i := range c.RanksPerNode() {
		for j := range c.RanksPerNode() {
			worst = max(worst, c.Machine.Path(c.GPU(i), c.GPU(j)).Type)
		}
	}
	return worst
}
