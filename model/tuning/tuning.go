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
	"tutti/model/units"
	"tutti/topo"
)

// Model holds the costs of AllReduce on one cluster.
type Model struct {
	costs    map[model.Algorithm]map[model.Protocol]Cost
	ranks    int
	nodes    int
	channels int // of rings and trees
	nvls     int // of NVLS
	sm       int
}

// Cost returns the cost of an algorithm over a protocol.
func (m *Model) Cost(a model.Algorithm, p model.Protocol) Cost { return m.costs[a][p] }

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
