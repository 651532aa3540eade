package search

import (
	"slices"

	"tutti/topo"
)

// netQuery asks for the NETs of a GPU, or of all (-1), up to a type of path.
type netQuery struct {
	gpu   int
	worst topo.PathType
}

// netsFor lists the NETs worth trying for a GPU, or for all of them (-1), as
// indexes: first those that the GPUs use by themselves, then the others by type
// of path (NCCL 2.28.3, search.cc, ncclTopoSelectNets). The GPUs of one host come
// one after the other with all their NETs; those of a multi-node NVLink domain
// first give one NET each.
func (s *space) netsFor(gpu int, worst topo.PathType) []int {
	query := netQuery{gpu, worst}
	if list, known := s.chosen[query]; known {
		return list
	}
	gpus := s.gpus
	if gpu >= 0 {
		gpus = s.gpus[gpu : gpu+1]
	}
	var list []int
	add := func(net int) {
		if !slices.Contains(list, net) {
			list = append(list, net)
		}
	}
	own := make([][]int, len(gpus))
	for i, g := range gpus {
		own[i] = s.ownNETs(g)
	}
	if s.hosts() > 1 {
		for turn := range MaxChannels {
			for _, nets := range own {
				if turn < len(nets) {
					add(nets[turn])
				}
			}
		}
	} else {
		for _, net := range slices.Concat(own...) {
			add(net)
		}
	}
	for t := topo.PathLOC; t <= worst; t++ {
		for _, g := range gpus {
			for i, net := range s.nets {
				if i < MaxChannels && s.Path(g, net).Type == t {
					add(i)
				}
			}
		}
	}
	s.chosen[query] = list
	return list
}

// ownNETs lists the NETs that a GPU uses by itself, by channel until the first
// comes again.
func (s *space) ownNETs(gpu int) []int {
	var list []int
	for channel := range MaxChannels {
		net := slices.Index(s.nets, s.LocalNET(gpu, channel))
		if net < 0 || (len(list) > 0 && net == list[0]) {
			break
		}
		list = append(list, net)
	}
	return list
}

// hosts counts the hosts of the system.
func (s *space) hosts() int {
	last := 0
	for _, cpu := range s.CPUs {
		last = max(last, s.Nodes[cpu].Host)
	}
	return last + 1
}

// localGPU is the place of the GPU that has a NET as its own, or -1.
func (s *space) localGPU(net int) int { return slices.Index(s.gpus, s.LocalGPU(net)) }

// sameCable tells whether two NETs are one port of one chip.
func (s *space) sameCable(a, b int) bool {
	x, y := s.Nodes[s.nets[a]], s.Nodes[s.nets[b]]
	return x.ASIC == y.ASIC && x.Port == y.Port
}

// takeNet charges bw to all NETs that share the cable of one.
func (s *space) takeNet(net int, bw float32) {
	for i := range s.nets {
		if s.sameCable(i, net) {
			s.netLeft[i] -= bw
		}
	}
}
