package search

import (
	"math"
	"slices"

	"tutti/model/units"
	"tutti/topo"
)

// space is the machine that the search goes through, and what its links still
// have to give. Rates are float32 in GB/s, as in NCCL, so that ties fall as
// there.
type space struct {
	*topo.System
	gpus, nets []int // nodes, in NCCL's order: it counts GPUs by their place here
	rank       []int // by place of a GPU
	sm         int
	maxBw      float32 // what one channel can have
	totalBw    float32 // what all of them can have together

	left    []float32 // by link
	netLeft []float32 // by NET
	reverse []int     // by link
	chosen  map[netQuery][]int
}

func newSpace(c *topo.Cluster) *space {
	view := c.Machine.Restrict(c.RanksPerNode(), c.Nodes > 1)
	s := &space{
		System: view, gpus: view.Of(topo.GPU), nets: view.NETs, sm: view.SM(),
		maxBw: gbps(view.MaxRate()), totalBw: gbps(view.TotalRate()), chosen: map[netQuery][]int{},
	}
	for _, g := range s.gpus {
		s.rank = append(s.rank, slices.Index(view.GPUs, g))
	}
	for i, l := range view.Links {
		s.left = append(s.left, gbps(l.Rate))
		s.reverse = append(s.reverse, view.Reverse(i))
	}
	for _, n := range s.nets {
		s.netLeft = append(s.netLeft, gbps(view.Links[view.Nodes[n].Out[0]].Rate))
	}
	return s
}

func gbps(r units.Rate) float32 { return float32(r / units.GBps) }

// take charges bw to each of the first steps links of a path, and stops where a
// link has less left than that. It returns how many links were charged. A
// negative bw gives back. Source: NCCL 2.28.3, search.cc, followPath.
func (s *space) take(p topo.Path, from, steps int, bw float32) int {
	start := s.Nodes[from].Type
	pci := bw
	if p.Type == topo.PathPHB && start == topo.GPU && slices.ContainsFunc(p.Links, func(l int) bool { return s.intel(s.Links[l].To) }) {
		pci = float32(bw*6) / 5 // GPUs that are peers through Intel's root complex lose some
	}
	for i, l := range p.Links[:steps] {
		link := s.Links[l]
		to := s.Nodes[link.To]
		forth, back := bw, float32(0)
		if link.Type == topo.LinkPCI {
			forth = pci
		}
		if to.Type == topo.GPU && to.SM < 80 && start != topo.GPU {
			back += forth / 8 // reads that go with the writes
		}
		if to.Type == topo.CPU && to.Arch == topo.ArchPower && link.Type == topo.LinkNVL {
			back += forth
		}
		if s.left[l] < forth || (back != 0 && s.left[s.reverse[l]] < back) {
			return i
		}
		s.left[l] = less(s.left[l], forth)
		if back != 0 {
			s.left[s.reverse[l]] = less(s.left[s.reverse[l]], back)
		}
	}
	return steps
}

// less subtracts, rounded to MB/s, so that nothing adds up from errors.
func less(a, b float32) float32 {
	return float32(math.Round(float64(float32(float32(a-b)*1000)))) / 1000
}

func (s *space) intel(node int) bool {
	n := s.Nodes[node]
	return n.Type == topo.CPU && n.Arch == topo.ArchX86 && n.Vendor == topo.VendorIntel
}

// amd tells whether NCCL takes the CPUs for AMD's.
func (s *space) amd() bool { return s.AMD() }

// pciLeft is what the PCI link of a GPU still has in its narrower direction.
func (s *space) pciLeft(gpu int) int {
	for _, l := range s.Nodes[gpu].Out {
		if s.Links[l].Type != topo.LinkPCI {
			continue
		}
		for _, back := range s.Nodes[s.Links[l].To].Out {
			if s.Links[back].To == gpu {
				return int(min(s.left[l], s.left[back]))
			}
		}
	}
	return -1
}

// worst and best are the extreme types of the paths from the GPUs to the given
// ends; between GPUs, those to others.
func (s *space) worst(ends []int) topo.PathType {
	return s.extreme(ends, topo.PathLOC, func(a, b topo.PathType) topo.PathType { return max(a, b) })
}

func (s *space) best(ends []int) topo.PathType {
	return s.extreme(ends, topo.PathSYS, func(a, b topo.PathType) topo.PathType { return min(a, b) })
}

func (s *space) extreme(ends []int, t topo.PathType, of func(a, b topo.PathType) topo.PathType) topo.PathType {
	for _, g := range s.gpus {
		for _, end := range ends {
			if g != end {
				t = of(t, s.Path(g, end).Type)
			}
		}
	}
	return t
}

// split tells whether NVLink joins the GPUs to just two groups of several, with
// something slower in between (NCCL 2.28.3, paths.cc, ncclTopoSplitNvLink).
func (s *space) split() bool {
	domain := make([]int, len(s.gpus))
	size := make([]int, len(s.gpus))
	for i := range domain {
		domain[i] = i
	}
	for i, g := range s.gpus {
		for j := i + 1; j < len(s.gpus); j++ {
			if s.Path(g, s.gpus[j]).Type == topo.PathNVL {
				domain[j] = domain[i]
			}
		}
	}
	groups := 0
	for _, d := range domain {
		if size[d]++; size[d] == 2 {
			groups++
		}
	}
	return groups == 2
}
