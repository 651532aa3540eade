package topo

import "slices"

// applyTransports changes paths to what NCCL's transports do: GPUs that are not
// peers meet in memory, a GPU on a C2C link reaches its CPU's ports by it, GPUs
// that are far from a port send through the one beside it (PXN), and where there
// is no GPUDirect RDMA data is staged in memory. The order is NCCL's (2.28.3,
// paths.cc, ncclTopoComputePaths).
func (s *System) applyTransports() {
	gpus := s.Of(GPU)
	for _, g := range gpus {
		for _, p := range gpus {
			if s.Path(p, g).Type > s.peerLevel() {
				s.paths[g][p] = s.via(p, s.localCPU(g), g)
				if s.Nodes[p].Host != s.Nodes[g].Host {
					s.paths[g][p].Type = PathNET // no memory in common
				}
			}
		}
	}
	for _, net := range s.NETs {
		for _, g := range gpus {
			cpu := s.localCPU(g)
			if merged(s.Path(g, cpu).Type, s.Path(net, cpu).Type) == PathP2C {
				s.paths[net][g].Type = min(PathP2C, s.paths[net][g].Type)
				s.paths[g][net].Type = min(PathP2C, s.paths[g][net].Type)
			}
		}
	}
	for _, net := range s.NETs {
		for _, g := range gpus {
			if near := s.nearestGPU(net); !s.settings.NoPXN && near >= 0 && near != g && s.relays(g, near, net) {
				s.paths[net][g] = s.via(g, near, net)
				s.paths[net][g].Type = PathPXN
			}
			if s.Path(g, net).Type < PathPHB && !s.GDR(g, net, false) {
				cpu := s.localCPU(g)
				s.paths[g][net], s.paths[net][g] = s.via(net, cpu, g), s.via(g, cpu, net)
			}
		}
	}
	s.near = make([]int, len(s.NETs))
	for i, net := range s.NETs {
		s.near[i] = s.nearestGPU(net)
	}
}

// peerLevel is how far apart two GPUs may be to read and write each other's
// memory: up to several PCI switches, and anything for a pair beside AMD's CPUs
// (NCCL 2.28.3, ncclTopoCheckP2p).
func (s *System) peerLevel() PathType {
	if level := s.settings.P2PLevel; level != nil {
		return *level
	}
	if s.AMD() && len(s.GPUs) <= 2 {
		return PathSYS
	}
	return PathPXB
}

// relays tells whether GPU g had better send to a port through near, which is
// the GPU beside it.
func (s *System) relays(g, near, net int) bool {
	first, last, direct := s.Path(near, g), s.Path(near, net), s.Path(g, net)
	worst := PathP2C
	if s.settings.NoPXNC2C {
		worst = PathPXB
	}
	return s.Nodes[near].Host == s.Nodes[g].Host && first.Type <= PathNVL && last.Type <= worst &&
		(last.Rate > direct.Rate || direct.Type > PathPXN)
}

// GDR tells whether a NIC moves data from or to the memory of a GPU itself
// (GPUDirect RDMA): both are able to and near each other. Reading, which sending
// takes, is left alone before Ampere where GPUs share PCI for all they do (NCCL
// 2.28.3, ncclTopoCheckGdr).
func (s *System) GDR(gpu, net int, read bool) bool {
	if !s.Nodes[gpu].GDR || !s.Nodes[net].GDR {
		return false
	}
	if read && s.Nodes[gpu].SM < 80 && len(s.GPUs) > 1 {
		nvlink := slices.ContainsFunc(s.GPUs, func(p int) bool { return p != gpu && s.Path(gpu, p).Type == PathNVL })
		if !nvlink {
			return false
		}
	}
	distance := s.Path(gpu, net).Type
	if distance == PathPXN {
		distance = s.Path(s.Relay(gpu, net), net).Type
	}
	if distance == PathP2C && !s.settings.NoGDRC2C {
		distance = PathC2C
	}
	level := PathPXB
	if set := s.settings.GDRLevel; set != nil {
		level = *set
	}
	return distance <= level
}

// Relay returns the GPU that passes on what another sends to a port, which is
// the same one where it reaches the port by itself (NCCL 2.28.3,
// ncclTopoGetIntermediateRank).
func (s *System) Relay(gpu, net int) int {
	path := s.Path(gpu, net)
	if path.Type != PathPXN {
		return gpu
	}
	for _, l := range path.Links {
		if to := s.Links[l].To; s.Nodes[to].Type == GPU {
			return to
		}
	}
	return gpu
}

// via joins the paths from one node to a middle one and on to another.
func (s *System) via(from, middle, to int) Path {
	first, second := s.Path(from, middle), s.Path(middle, to)
	return Path{
		Links: slices.Concat(first.Links, second.Links),
		Type:  merged(first.Type, second.Type),
		Rate:  min(first.Rate, second.Rate),
	}
}

// merged is the type of two paths in a row: the worse one, but C2C and then PCI
// has a name of its own.
func merged(a, b PathType) PathType {
	if min(a, b) == PathC2C && max(a, b) == PathPHB {
		return PathP2C
	}
	return max(a, b)
}

// localCPU is the CPU that is the fewest hops from a GPU.
func (s *System) localCPU(gpu int) int {
	local, hops := s.CPUs[0], 0
	for _, cpu := range s.CPUs {
		if n := len(s.Path(gpu, cpu).Links); n > 0 && (hops == 0 || n < hops) {
			local, hops = cpu, n
		}
	}
	return local
}
