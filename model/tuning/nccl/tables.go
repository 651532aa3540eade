package nccl

import "tutti/model"

// The tables of NCCL 2.28.3, src/graph/tuning.cc: NVIDIA's summary of
// measurements on DGX systems. Latencies are microseconds by protocol (LL,
// LL128, Simple), bandwidths GB/s.

// baseLatency is the fixed cost of a call.
var baseLatency = [algorithms][protocols]float32{
	Tree: {6.8, 14, 8.4},
	Ring: {6.6, 14, 8.4},
	PAT:  {8, 8, 8},
}

// hop is the kind of way that data takes from one rank to the next.
type hop int

const (
	hopNVLink hop = iota
	hopPCI
	hopNET
)

// hopLatency is the cost of each hop.
var hopLatency = [...][algorithms][protocols]float32{
	hopNVLink: {
		Tree: {.6, 1.25, 4}, Ring: {.6, 1.9, 3.4},
		CollNetDirect: {0, 0, 3.7}, CollNetChain: {0, 0, 2.8},
		NVLS: {0, 0, 25}, NVLSTree: {0, 0, 25}, PAT: {0, 0, 4},
	},
	hopPCI: {
		Tree: {1, 1.9, 4}, Ring: {1, 2.5, 5.7},
		CollNetDirect: {0, 0, 3.7}, CollNetChain: {0, 0, 2.8}, PAT: {0, 0, 4},
	},
	hopNET: {
		Tree: {5, 8.5, 14}, Ring: {2.7, 4, 14},
		CollNetDirect: {0, 0, 31}, CollNetChain: {0, 0, 30},
		NVLS: {0, 0, 18}, NVLSTree: {0, 0, 14}, PAT: {0, 0, 14},
	},
}

// generation holds the bandwidth limits of GPUs of one generation, for one node,
// two nodes and more.
type generation struct {
	ll         [3]float64 // all channels together
	ringLL128  [3]float64 // each channel, as are all that follow
	treeLL128  [3]float64
	tree, nvls [3]float64 // nvls: NVLSTree
	efficiency float32    // the share of its links that NVLS reaches
}

var (
	volta = generation{
		ll: [3]float64{39, 39, 20.4}, ringLL128: [3]float64{20, 20, 20}, treeLL128: [3]float64{20, 20, 20},
		tree: [3]float64{26.5, 18.5, 10}, nvls: [3]float64{26.5, 18.5, 10},
	}
	ampere = generation{
		ll: [3]float64{87.7, 22.5, 19}, ringLL128: [3]float64{20, 20, 20}, treeLL128: [3]float64{20, 20, 20},
		tree: [3]float64{24, 23.6, 17.8}, nvls: [3]float64{24, 23.6, 17.8},
	}
	hopper = generation{
		ll: [3]float64{141, 45, 35}, ringLL128: [3]float64{36.7, 36.7, 36.7}, treeLL128: [3]float64{36.7, 36.7, 29},
		tree: [3]float64{38.7, 41.4, 36}, nvls: [3]float64{0, 57.7, 45.5}, efficiency: .85,
	}
	blackwell = generation{
		ll: [3]float64{282, 90, 70}, ringLL128: [3]float64{73.4, 73.4, 73.4}, treeLL128: [3]float64{55.6, 31.67, 20},
		tree: [3]float64{70, 42.8, 24}, nvls: [3]float64{0, 96, 43.1}, efficiency: .74,
	}
)

func generationOf(sm int) *generation {
	switch {
	case sm >= 100:
		return &blackwell
	case sm >= 90:
		return &hopper
	case sm >= 80:
		return &ampere
	default:
		return &volta
	}
}

// treeCorrection is what the bandwidth of AllReduce trees is multiplied by, from
// 64 bytes on by powers of two.
var treeCorrection = [protocols][23]float32{
	model.LL:     {1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1},
	model.LL128:  {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1},
	model.Simple: {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9},
}
