package topo

import "math/bits"

// nearest lists those of the nodes that one reaches at the highest rate and,
// among them, by the best type of path (NCCL 2.28.3, topo.cc, ncclTopoGetLocal).
func (s *System) nearest(from int, nodes []int) []int {
	var list []int
	best := Path{Type: PathDIS}
	for _, n := range nodes {
		switch p := s.Path(from, n); {
		case p.Rate > best.Rate || (p.Rate == best.Rate && p.Type < best.Type):
			best, list = p, []int{n}
		case p.Rate == best.Rate && p.Type == best.Type:
			list = append(list, n)
		}
	}
	if best.Type == PathDIS {
		return nil
	}
	return list
}

// NearestGPUs lists the GPUs that are nearest to a NET.
func (s *System) NearestGPUs(net int) []int { return s.nearest(net, s.Of(GPU)) }

// NearestNETs lists the NETs that are nearest to a GPU.
func (s *System) NearestNETs(gpu int) []int { return s.nearest(gpu, s.NETs) }

// LocalNET returns the NET that a GPU uses by itself on a channel, or -1. GPUs
// that have the same ones near share them out by their device numbers and, as far
// as there are more NETs than GPUs, by channel (NCCL 2.28.3, topo.cc,
// ncclTopoGetLocalNet).
func (s *System) LocalNET(gpu, channel int) int {
	nets := s.NearestNETs(gpu)
	if len(nets) == 0 {
		return -1
	}
	n := len(nets)
	sharing := max(1, len(s.NearestGPUs(nets[0])))
	own := (n + sharing - 1) / sharing
	if limit := s.settings.NETsPerGPU; limit > 0 {
		own = min(limit, n)
	}
	i := s.Nodes[gpu].Dev
	if n > 1 && n&(n-1) == 0 { // so that neighbours get NETs that are far apart
		width := bits.Len(uint(n)) - 1
		i = int(bits.Reverse(uint(i)) >> (bits.UintSize - width))
	}
	return nets[(i+channel%own)%n]
}

// nearestGPU is the first of the GPUs nearest to a NET that uses it by itself on
// some channel, or -1 (NCCL 2.28.3, topo.cc, ncclTopoGetLocalGpu).
func (s *System) nearestGPU(net int) int {
	gpus := s.NearestGPUs(net)
	for channel := range maxChannels {
		for _, g := range gpus {
			if s.LocalNET(g, channel) == net {
				return g
			}
		}
	}
	return -1
}

// maxChannels is how many channels a communicator may have (NCCL 2.28.3,
// MAXCHANNELS).
const maxChannels = 64

// LocalGPU returns the GPU that has the NET of the given index as its own, or -1.
func (s *System) LocalGPU(net int) int { return s.near[net] }
