package topo

import (
	"slices"

	"tutti/model/units"
)

// Path is a way from one node to another.
type Path struct {
	// Links are indexes into [System.Links], in the order of travel.
	Links []int
	// Type is that of the weakest part; PathDIS means that there is no way.
	Type PathType
	// Rate is that of the slowest link.
	Rate units.Rate
}

// Path returns the way from one node to another, which must be a GPU, NET, CPU
// or NVS: the fewest hops and, among equals, the highest rate (NCCL 2.28.3,
// src/graph/paths.cc, ncclTopoSetPaths), but for the pairs that peer-to-peer,
// GPUDirect RDMA and PXN send another way.
func (s *System) Path(from, to int) Path { return s.paths[to][from] }

// computePaths floods from each possible end, and then lets the rules of
// transports change what they say (NCCL 2.28.3, paths.cc, ncclTopoComputePaths).
func (s *System) computePaths() {
	s.paths = make([][]Path, len(s.Nodes))
	for _, list := range [][]int{s.CPUs, s.GPUs, s.NETs} {
		for _, base := range list {
			s.paths[base] = s.flood(base)
		}
	}
	if s.NVS >= 0 {
		s.paths[s.NVS] = s.flood(s.NVS)
	}
	s.applyTransports()
}

// flood finds the paths from every node to base, breadth first outwards.
func (s *System) flood(base int) []Path {
	paths := make([]Path, len(s.Nodes))
	for i := range paths {
		paths[i].Type = PathDIS
	}
	paths[base] = Path{Type: PathLOC, Rate: rateOnDie}
	for frontier := []int{base}; len(frontier) > 0; {
		var next []int
		for _, node := range frontier {
			for _, l := range s.Nodes[node].Out {
				link, path := s.Links[l], &paths[node]
				forwards := !s.settings.NoNVB && link.Type == LinkNVL && s.Nodes[link.To].Type == GPU && len(path.Links) == 1
				if s.Nodes[node].Type == GPU && node != base && !forwards {
					continue // a GPU forwards to a GPU only, and for one hop
				}
				back := s.Reverse(l)
				rate, to := min(path.Rate, link.Rate), &paths[link.To]
				if back < 0 || rate <= to.Rate || (to.Rate > 0 && len(to.Links) <= len(path.Links)) {
					continue
				}
				*to = Path{
					Links: append([]int{back}, path.Links...),
					Type:  max(path.Type, s.stepType(node, link, path.Type)),
					Rate:  rate,
				}
				if !slices.Contains(next, link.To) {
					next = append(next, link.To)
				}
			}
		}
		frontier = next
	}
	return paths
}

// stepType is the type that one more link, taken from node, gives to a path.
func (s *System) stepType(node int, link Link, path PathType) PathType {
	from, to := s.Nodes[node].Type, s.Nodes[link.To].Type
	switch {
	case link.Type == LinkNET:
		return PathLOC
	case from == PCI && to == PCI:
		return PathPXB
	case link.Type == LinkPCI && (from == CPU || to == CPU):
		return PathPHB
	case link.Type == LinkNVL && from == GPU && path == PathNVL:
		return PathNVB
	default:
		return PathType(link.Type)
	}
}
