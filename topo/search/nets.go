package search

import (
	"slices"

	"tutti/topo"
)

// netsFor lists the NETs worth trying for a GPU, or for all of them (-1), as
// indexes: first those that the GPUs use by themselves, then the others by type
// of path (NCCL 2.28.3, search.cc, ncclTopoSelectNets). The GPUs of one host come
// one after the other with all their NETs; those of a multi-node NVLink domain
// first give one NET each.
func (s *space) netsFor(gpu int, worst topo.PathType) []int {
	known := &s.choices[gpu+1][worst]
	if *known != nil {
		return *known
	}
	gpus := s.gpus
	if gpu >= 0 {
		gpus = s.gpus[gpu : gpu+1]
	}
	list := []int{}
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
	*known = list
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

// takeNet charges bw to all NETs that share the cable of one.
func (s *space) takeNet(net int, bw float32) {
	for i, cable := range s.cable {
		if cable == s.cable[net] {
			s.netLeft[i] -= bw
		}
	}
}
