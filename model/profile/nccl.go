package profile

import "tutti/model"

// Hop is the kind of way that data takes from one rank to the next.
type Hop int

// The hops that NCCL tells apart.
const (
	HopNVLink Hop = iota
	HopPCI
	HopNET
	hops
)

const (
	algorithms = int(model.P2P) + 1
	protocols  = int(model.Simple) + 1
)

// The tables of NCCL 2.28.3, src/graph/tuning.cc: microseconds and GB/s, by
// algorithm (ring, tree, nvls, nvlstree), then protocol (LL, LL128, Simple).
// They are NVIDIA's summary of measurements on DGX systems; tuning uses them as
// NCCL does, and [ForGPU] takes from them what has not been measured otherwise.
var (
	// NCCLBase is the fixed cost of a call (baseLat).
	NCCLBase = [algorithms][protocols]float64{
		{6.6, 14, 8.4},
		{6.8, 14, 8.4},
	}

	// NCCLHop is the cost of each hop (hwLat).
	NCCLHop = [hops][algorithms][protocols]float64{
		HopNVLink: {{.6, 1.9, 3.4}, {.6, 1.25, 4.0}, {0, 0, 25}, {0, 0, 25}},
		HopPCI:    {{1.0, 2.5, 5.7}, {1.0, 1.9, 4.0}, {0, 0, 0}, {0, 0, 0}},
		HopNET:    {{2.7, 4.0, 14}, {5.0, 8.5, 14}, {0, 0, 18}, {0, 0, 14}},
	}
)

// Generation holds NCCL's bandwidth limits for GPUs of one generation, in GB/s
// for one node, two nodes and more (tuning.cc, llMaxBws and perChMax*).
type Generation struct {
	Name       string
	LL         [3]float64 // all channels together
	RingLL128  [3]float64 // each channel, as are all that follow
	TreeLL128  [3]float64
	TreeSimple [3]float64
	NVLSTree   [3]float64
	// NVLS is the share of its links that NVLS reaches (nvlsEfficiency).
	NVLS float64
}

// The generations that NCCL 2.28.3 tells apart.
var (
	Volta = Generation{
		LL: [3]float64{39, 39, 20.4}, RingLL128: [3]float64{20, 20, 20}, TreeLL128: [3]float64{20, 20, 20},
		TreeSimple: [3]float64{26.5, 18.5, 10}, NVLSTree: [3]float64{26.5, 18.5, 10},
	}
	Ampere = Generation{
		LL: [3]float64{87.7, 22.5, 19}, RingLL128: [3]float64{20, 20, 20}, TreeLL128: [3]float64{20, 20, 20},
		TreeSimple: [3]float64{24, 23.6, 17.8}, NVLSTree: [3]float64{24, 23.6, 17.8},
	}
	Hopper = Generation{
		LL: [3]float64{141, 45, 35}, RingLL128: [3]float64{36.7, 36.7, 36.7}, TreeLL128: [3]float64{36.7, 36.7, 29},
		TreeSimple: [3]float64{38.7, 41.4, 36}, NVLSTree: [3]float64{0, 57.7, 45.5}, NVLS: .85,
	}
	Blackwell = Generation{
		LL: [3]float64{282, 90, 70}, RingLL128: [3]float64{73.4, 73.4, 73.4}, TreeLL128: [3]float64{55.6, 31.67, 20},
		TreeSimple: [3]float64{70, 42.8, 24}, NVLSTree: [3]float64{0, 96, 43.1}, NVLS: .74,
	}
)

// GenerationOf returns the generation of a compute capability, times ten.
func GenerationOf(sm int) Generation {
	switch {
	case sm >= 100:
		return Blackwell
	case sm >= 90:
		return Hopper
	case sm >= 80:
		return Ampere
	default:
		return Volta
	}
}
