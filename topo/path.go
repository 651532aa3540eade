package topo

import (
	"cmp"
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
// src/graph/paths.cc, ncclTopoSetPaths).
func (s *System) Path(from, to int) Path { return s.paths[to][from] }

// computePaths orders every node's links and floods from each possible end.
func (s *System) computePaths() {
	for i := range s.Nodes {
		slices.SortStableFunc(s.Nodes[i].Out, func(a, b int) int {
			return cmp.Or(cmp.Compare(s.Links[a].Type, s.Links[b].Type), cmp.Compare(s.Links[b].Rate, s.Links[a].Rate))
		})
	}
	s.paths = make([][]Path, len(s.Nodes))
	for i, n := range s.Nodes {
		if n.Type != PCI && n.Type != NIC {
			s.paths[i] = s.flood(i)
		}
	}
	for _, net := range s.NETs {
		s.viaNeighbour(net)
	}
}

// viaNeighbour lets GPUs that are far from a NET, or reach it at a lower rate,
// send through the GPU nearest to it over NVLink (PXN). What they receive does
// not take that way.
func (s *System) viaNeighbour(net int) {
	near := s.GPUs[0]
	for _, g := range s.GPUs {
		if p, best := s.Path(g, net), s.Path(near, net); p.Rate > best.Rate || (p.Rate == best.Rate && p.Type < best.Type) {
			near = g
		}
	}
	last := s.Path(near, net)
	if last.Type > PathPXB {
		return
	}
	for _, g := range s.GPUs {
		first, direct := s.Path(g, near), s.Path(g, net)
		if g != near && first.Type <= PathNVL && (last.Rate > direct.Rate || direct.Type > PathPXN) {
			s.paths[net][g] = Path{Links: slices.Concat(first.Links, last.Links), Type: PathPXN, Rate: min(first.Rate, last.Rate)}
		}
	}
}

// flood finds the paths from every node to base, breadth first outwards. Links
// are taken to be as fast back as forth.
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
				forwards := link.Type == LinkNVL && s.Nodes[link.To].Type == GPU && len(path.Links) == 1
				if s.Nodes[node].Type == GPU && node != base && !forwards {
					continue // a GPU forwards to a GPU only, and for one hop
				}
				back := s.linkBack(l)
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
	case link.Type == LinkPCI && from == PCI && to == PCI:
		return PathPXB
	case link.Type == LinkPCI && (from == CPU || to == CPU):
		return PathPHB
	case link.Type == LinkNVL && from == GPU && path == PathNVL:
		return PathNVB
	default:
		return PathType(link.Type)
	}
}

// linkBack returns the link that runs opposite to l, or -1.
func (s *System) linkBack(l int) int {
	for _, back := range s.Nodes[s.Links[l].To].Out {
		if s.Links[back].To == s.Links[l].From && s.Links[back].Type == s.Links[l].Type {
			return back
		}
	}
	return -1
}
