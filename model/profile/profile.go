// Package profile holds what it costs a machine's kernels and wires to move
// data: each figure with its source. The simulator takes all its constants from
// a [Profile]; tuning takes NCCL's own tables, which stand here too.
package profile

import (
	"tutti/model"
	"tutti/model/units"
	"tutti/topo"
)

// Profile is the set of constants of one kind of machine. Its model of a step:
// the worker finds an item and a free slot, spends Overhead, and moves the data
// at the rate of Copy while the bytes cross the links; the reader finds the
// item after the latency of the links and the Handover.
type Profile struct {
	// Base is spent once in a call: the launch and the end of the kernel.
	Base [algorithms][protocols]units.Time
	// Overhead keeps a worker from moving data in each step: it polls,
	// synchronises its threads and, over Simple, fences.
	Overhead [protocols]units.Time
	// Handover is what passes until the reader knows of an item, the latency of
	// the links aside. Within one step Overhead comes on top.
	Handover [hops][algorithms][protocols]units.Time
	// Copy is what a block of 512 threads moves, as payload; LocalCopy what it
	// moves within its own GPU's memory (NVLS scatter and gather).
	Copy      [protocols]units.Rate
	LocalCopy units.Rate
	// Latency is that of one link, by its type.
	Latency map[topo.LinkType]units.Time
	// Efficiency is the share of a link's rate that transfers reach, and Multimem
	// the share of that which the switch's multicasts and reductions do.
	Efficiency map[topo.LinkType]float64
	Multimem   float64
}

// Figures that are not NCCL's.
const (
	// A flag takes 0.612 to 0.631 us from GPU to GPU through an NVSwitch, two
	// links (experiments/firstlight/limits-h200x4.txt, pingpong).
	nvlinkLatency = 310 * units.Nanosecond

	// NCCL's ring LL takes 2.7 us per hop through the network, almost all of it
	// the wire's: GPU, PCI switch, NIC, port, leaf switch and back down, four
	// links of PCI and four of network. How they share it was not measured.
	pciLatency     = 300 * units.Nanosecond
	networkLatency = 375 * units.Nanosecond
	networkHop     = 4*pciLatency + 4*networkLatency

	// All GPUs storing to the next reach 361.2 of NCCL's 370.8 GB/s
	// (experiments/firstlight/limits-h200x4.txt, "ring all GPUs store to next").
	nvlinkEfficiency = 361.2 / 370.8

	// An NDR port carries 46 to 48 of its 50 GB/s (NVIDIA/nccl-tests issue 290);
	// PCI Gen5 x16 counts as 48 GB/s to begin with.
	networkEfficiency = 48.0 / 50

	// What a step costs beside its data: a poll, two barriers and a system-wide
	// fence over Simple; over LL the turn of the loop that polls. Fitted to the
	// rings and trees on 4x H200 (experiments/firstlight), all sizes.
	simpleOverhead = 1600 * units.Nanosecond
	llOverhead     = 200 * units.Nanosecond

	// What a block of 512 threads moves on Hopper. LL and LL128 are fitted to the
	// same rows. Simple is NCCL's limit per channel of a tree, which fits as it
	// stands; elsewhere the wires are the limit.
	hopperCopyLL    = 9 * units.GBps
	hopperCopyLL128 = 20 * units.GBps

	// Two DGX-like nodes reach 487 GB/s of bus bandwidth at 16 GiB (AWS, 2x
	// p5.48xlarge), which is 260 GB/s gathered by 5 of 16 warps in 16 blocks.
	hopperLocalCopy = 52 * units.GBps
)

// ForGPU returns the constants for machines with GPUs of a compute capability,
// times ten. Those of Hopper are held against measurements on 4x H200; the
// others differ from them by NCCL's tables alone.
func ForGPU(sm int) *Profile {
	gen := GenerationOf(sm)
	p := &Profile{
		Overhead: [protocols]units.Time{model.LL: llOverhead, model.Simple: simpleOverhead},
		Latency: map[topo.LinkType]units.Time{
			topo.LinkNVL: nvlinkLatency, topo.LinkC2C: pciLatency, topo.LinkPCI: pciLatency,
			topo.LinkSYS: pciLatency, topo.LinkNET: networkLatency,
		},
		Efficiency: map[topo.LinkType]float64{
			topo.LinkNVL: nvlinkEfficiency, topo.LinkC2C: 1, topo.LinkPCI: 1, topo.LinkSYS: 1, topo.LinkNET: networkEfficiency,
		},
	}
	// Other generations are to Hopper as NCCL's limits for them are.
	p.Copy = [protocols]units.Rate{
		model.LL:     hopperCopyLL * units.Rate(gen.LL[0]/Hopper.LL[0]),
		model.LL128:  hopperCopyLL128 * units.Rate(gen.RingLL128[0]/Hopper.RingLL128[0]),
		model.Simple: units.Rate(gen.TreeSimple[0]) * units.GBps,
	}
	p.LocalCopy = hopperLocalCopy * units.Rate(gen.TreeSimple[0]/Hopper.TreeSimple[0])
	p.Multimem = 1
	if gen.NVLS > 0 {
		p.Multimem = gen.NVLS / nvlinkEfficiency // NCCL's share is of the whole rate
	}
	wire := [hops]units.Time{HopNVLink: 2 * nvlinkLatency, HopPCI: 2 * pciLatency, HopNET: networkHop}
	for a := range algorithms {
		for q := range protocols {
			p.Base[a][q] = units.FromMicroseconds(NCCLBase[a][q])
			for h := range hops {
				hop := units.FromMicroseconds(NCCLHop[h][a][q])
				p.Handover[h][a][q] = max(0, hop-wire[h]-p.Overhead[q])
			}
		}
	}
	// NCCL counts the 25 us of NVLS as one hop without a base. Here they are the
	// base of any Simple kernel, and two handovers between three steps.
	for _, a := range []model.Algorithm{model.NVLS, model.NVLSTree} {
		p.Base[a][model.Simple] = p.Base[model.Ring][model.Simple]
		whole := units.FromMicroseconds(NCCLHop[HopNVLink][a][model.Simple]) - p.Base[a][model.Simple]
		p.Handover[HopNVLink][a][model.Simple] = (whole-3*simpleOverhead)/2 - 2*nvlinkLatency
	}
	// Of what NCCL has no figures for, each hop is one like a ring's.
	for a := int(model.CollNet); a < algorithms; a++ {
		p.Base[a] = p.Base[model.Ring]
		for h := range hops {
			p.Handover[h][a] = p.Handover[h][model.Ring]
		}
	}
	return p
}
