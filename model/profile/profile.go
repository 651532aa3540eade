// Package profile holds what it costs a machine's kernels and wires to move
// data: each figure with its source and its data. Profiles are YAML files, some
// of which are built in; the simulator and tutti's model take all their
// constants from a [Profile].
//
// A file may describe a part of a machine only: h200-nvswitch has what happens
// inside a node, ndr-rail what happens between nodes. [Open] lays several over
// each other, and says what is still missing.
package profile

import (
	"fmt"

	"tutti/model"
	"tutti/model/units"
	"tutti/topo"
)

// Hop is the kind of way that data takes from one rank to the next.
type Hop int

// The hops that are told apart.
const (
	HopNVLink Hop = iota
	HopPCI
	HopNET
	hops
)

var hopNames = [hops]string{"nvlink", "pci", "network"}

const (
	algorithms = int(model.P2P) + 1
	// known counts those that files have constants of.
	known     = int(model.NVLSTree) + 1
	protocols = int(model.Simple) + 1
	kernels   = 32
)

// Profile is the set of constants of one kind of machine. Its model of a step:
// the worker finds an item and a free slot, spends Overhead, and moves the data
// at the rate of Copy while the bytes cross the links; the reader finds the
// item after the latency of the links and the Handover.
type Profile struct {
	// Name is that of the files that the profile is made of.
	Name string
	// SM is the compute capability of the GPUs, times ten; 0 where no file says.
	SM int
	// Base is spent once in a call: the launch and the end of the kernel.
	Base [algorithms][protocols]units.Time
	// Overhead keeps a worker from moving data in each step: it polls,
	// synchronises its threads and, over Simple, fences.
	Overhead [protocols]units.Time
	// Turn is what a worker needs from the end of a step to the next one, whether
	// or not data is waiting. It hides behind the way of the data, if that is
	// longer; a lone chunk that meets idle workers does not see it.
	Turn [algorithms][protocols]units.Time
	// Ramp is what the first RampBytes of an item take beside Copy: the more
	// threads a block has, and loads under way, the longer until the first are
	// back. A smaller item takes its part.
	Ramp [algorithms][protocols]units.Time
	// Handover is what passes until the reader knows of an item, the latency of
	// the links aside. Within one step Overhead comes on top.
	Handover [hops][algorithms][protocols]units.Time
	// Copy is what a block of 512 threads moves, as payload, in a step that reads
	// and writes three buffers (recvReduceSend); steps with fewer or more take
	// their part of the time. LocalCopy is what it moves within its own GPU's
	// memory (NVLS scatter and gather).
	Copy      [algorithms][protocols]units.Rate
	LocalCopy units.Rate
	// Miss is for how many buffers more one counts that is read from the GPU's
	// memory and not from its cache, which holds Cache bytes.
	Miss  [algorithms][protocols]float64
	Cache units.Bytes
	// Latency is that of one link, by its type.
	Latency map[topo.LinkType]units.Time
	// Efficiency is the share of a link's rate that transfers reach, and Multimem
	// the share of that which the switch's multicasts and reductions do.
	Efficiency map[topo.LinkType]float64
	Multimem   float64
	// Kernel is what tutti's own kernels take, in the order of [Kernels].
	Kernel [kernels]KernelCost
	// Message is what it takes to post a message to a NIC, by who does: the proxy's
	// is a part of the network's Handover or, over LL, of its Latency. QueuePair is what one queue pair
	// carries, 0 where nothing is known.
	Message   [posters]units.Time
	QueuePair units.Rate
}

// Poster is who tells a NIC to send.
type Poster int

// The posters.
const (
	AsMeasured Poster = iota // whoever did when the constants were taken
	ByProxy                  // a thread of the CPU for each GPU, one message after another (NCCL)
	ByGPU                    // the GPU, for each connection by itself (IBGDA)
	posters
)

// extend gives the algorithms that files have no constants of those of a ring,
// hop by hop.
func (p *Profile) extend() {
	for a := known; a < algorithms; a++ {
		p.Base[a], p.Copy[a], p.Turn[a], p.Ramp[a] = p.Base[model.Ring], p.Copy[model.Ring], p.Turn[model.Ring], p.Ramp[model.Ring]
		p.Miss[a] = p.Miss[model.Ring]
		for h := range hops {
			p.Handover[h][a] = p.Handover[h][model.Ring]
		}
	}
}

// Misses returns for how many buffers more one counts that is a part of so much
// memory, gone over again and again. Of W bytes a cache for C that replaces at
// random finds about (C/W)^2 again, within 0.06 of the share h = exp(-(1-h)W/C)
// that it would.
func (p *Profile) Misses(a model.Algorithm, q model.Protocol, footprint units.Bytes) float64 {
	if footprint <= p.Cache {
		return 0
	}
	found := float64(p.Cache) / float64(footprint)
	return p.Miss[a][q] * (1 - float64(found*found))
}

// RampBytes is the size of an item from which on a step takes its whole Ramp:
// 256 threads with 64 bytes each, NCCL's threshold.
const RampBytes = 16 * units.KiB

// Streams is how many buffers the step reads and writes that Copy is stated for.
const Streams = 3

// builtin says which profiles a machine has whose user names none, by the
// compute capability of its GPUs. By that, H100s are H200s, whose figures were measured:
// h100-nvswitch differs by the L2 and by NVLS, as one cloud's machines had it.
func builtin(sm int) string {
	switch {
	case sm >= 100:
		return "b200-nvswitch"
	case sm >= 90:
		return "h200-nvswitch"
	case sm >= 80:
		return "a100-nvswitch"
	default:
		return "v100-nvlink"
	}
}

// Suits fails for a machine with GPUs of another generation than the profile's.
func (p *Profile) Suits(machine *topo.System) error {
	if sm := machine.SM(); p.SM > 0 && p.SM/10 != sm/10 {
		return fmt.Errorf("profile %s is for GPUs of compute capability %d.x, and %s has %d.%d: want another --profile", p.Name, p.SM/10, machine.Name, sm/10, sm%10)
	}
	return nil
}

// ForGPU returns the constants for machines with GPUs of a compute capability,
// times ten, on InfiniBand rails.
func ForGPU(sm int) *Profile {
	p, err := Open(builtin(sm) + ",ndr-rail")
	if err != nil {
		panic(err) // the files are in the binary
	}
	return p
}
