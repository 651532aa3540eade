package search

import (
	"slices"

	"tutti/model/units"
	"tutti/topo"
)

// space is the machine that the search goes through, and what its links still
// have to give. Rates are float32 in GB/s, as in NCCL, so that ties fall as
// there.
//
// Ends are numbered: GPUs in NCCL's order, then NETs, then the NVSwitch.
type space struct {
	*topo.System
	gpus, nets []int // nodes
	rank       []int // by GPU
	sm         int
	crossing   CrossNic
	maxBw      float32 // what one channel can have
	totalBw    float32 // what all of them can have together

	routes  []route   // by start and end
	hops    []hop     // by link
	left    []float32 // by link
	netLeft []float32 // by NET
	// offloads tells of each NET whether collectives run in the network behind it.
	offloads []bool
	pci      [][2]int // by GPU: its PCI link and the one back, or -1

	cable    []int                     // by NET: the first one that is the same port of the same chip
	ownGPU   []int                     // by NET: the GPU that has it as its own, or -1
	nearGPUs [][]int                   // by NET
	choices  [][topo.PathDIS + 1][]int // what netsFor gives for a GPU, or all at 0
}

// route is the path from one end to another.
type route struct {
	links    []int
	kind     topo.PathType
	backKind topo.PathType // of the path back
	bw       int           // whole GB/s
	intra    bool          // between GPUs, or GPU and NVSwitch
	toGPU    bool          // from elsewhere
	intel    bool          // through the root complex of an Intel CPU, from GPU to GPU
}

// hop is what matters about a link.
type hop struct {
	reverse int
	pci     bool
	reads   bool // to a GPU before Ampere: what it is sent from elsewhere costs reads, too
	bridge  bool // an NVLink to a Power CPU, which has as much both ways
}

func newSpace(c *topo.Cluster) *space {
	view := c.Machine.Restrict(c.RanksPerNode(), c.Nodes > 1)
	s := &space{
		System: view, gpus: view.Of(topo.GPU), nets: view.NETs, sm: view.SM(),
		maxBw: gbps(view.MaxRate()), totalBw: gbps(view.TotalRate()), choices: make([][topo.PathDIS + 1][]int, len(view.GPUs)+1),
	}
	for i, l := range view.Links {
		to := &view.Nodes[l.To]
		s.left = append(s.left, gbps(l.Rate))
		s.hops = append(s.hops, hop{
			reverse: view.Reverse(i), pci: l.Type == topo.LinkPCI,
			reads:  to.Type == topo.GPU && to.SM < 80,
			bridge: to.Type == topo.CPU && to.Arch == topo.ArchPower && l.Type == topo.LinkNVL,
		})
	}
	for _, g := range s.gpus {
		s.rank = append(s.rank, slices.Index(view.GPUs, g))
		s.pci = append(s.pci, s.pciLinks(g))
	}
	for i, n := range s.nets {
		s.netLeft = append(s.netLeft, gbps(view.Links[view.Nodes[n].Out[0]].Rate))
		s.cable = append(s.cable, slices.IndexFunc(s.nets, func(other int) bool {
			a, b := &view.Nodes[n], &view.Nodes[other]
			return a.ASIC == b.ASIC && a.Port == b.Port
		}))
		s.ownGPU = append(s.ownGPU, slices.Index(s.gpus, view.LocalGPU(i)))
		var near []int
		for _, g := range view.NearestGPUs(n) {
			near = append(near, slices.Index(s.gpus, g))
		}
		s.nearGPUs = append(s.nearGPUs, near)
	}
	ends := slices.Concat(s.gpus, s.nets)
	if view.NVS >= 0 {
		ends = append(ends, view.NVS)
	}
	for _, from := range ends {
		for _, to := range ends {
			s.routes = append(s.routes, s.newRoute(from, to))
		}
	}
	return s
}

func (s *space) newRoute(from, to int) route {
	p := s.Path(from, to)
	a, b := s.Nodes[from].Type, s.Nodes[to].Type
	r := route{
		links: p.Links, kind: p.Type, backKind: s.Path(to, from).Type, bw: int(gbps(p.Rate)),
		intra: a != topo.NET && b != topo.NET, toGPU: a != topo.GPU,
	}
	r.intel = p.Type == topo.PathPHB && a == topo.GPU && slices.ContainsFunc(p.Links, func(l int) bool {
		n := &s.Nodes[s.Links[l].To]
		return n.Type == topo.CPU && n.Arch == topo.ArchX86 && n.Vendor == topo.VendorIntel
	})
	return r
}

// pciLinks returns the PCI link of a GPU and the link back, which is the first
// one if there are others beside it.
func (s *space) pciLinks(gpu int) [2]int {
	for _, l := range s.Nodes[gpu].Out {
		if s.Links[l].Type != topo.LinkPCI {
			continue
		}
		for _, back := range s.Nodes[s.Links[l].To].Out {
			if s.Links[back].To == gpu {
				return [2]int{l, back}
			}
		}
	}
	return [2]int{-1, -1}
}

// pciLeft is what the PCI link of a GPU still has in its narrower direction.
func (s *space) pciLeft(gpu int) int {
	l := s.pci[gpu]
	if l[0] < 0 {
		return -1
	}
	return int(min(s.left[l[0]], s.left[l[1]]))
}

// end numbers.
func (s *space) net(i int) int { return len(s.gpus) + i }
func (s *space) nvs() int      { return len(s.gpus) + len(s.nets) }

func (s *space) route(from, to int) *route {
	ends := len(s.gpus) + len(s.nets)
	if s.NVS >= 0 {
		ends++
	}
	return &s.routes[from*ends+to]
}

func gbps(r units.Rate) float32 { return float32(r / units.GBps) }

// take charges bw to the links of a route, in order, and stops where a link has
// less left than that. It returns how many links were charged. A negative bw
// gives back. Source: NCCL 2.28.3, search.cc, followPath.
func (s *space) take(r *route, links []int, bw float32) int {
	pci := bw
	if r.intel {
		pci = float32(bw*6) / 5 // peers through Intel's root complex lose some
	}
	for i, l := range links {
		h := &s.hops[l]
		forth, back := bw, float32(0)
		if h.pci {
			forth = pci
		}
		if h.reads && r.toGPU {
			back += forth / 8
		}
		if h.bridge {
			back += forth
		}
		if s.left[l] < forth || (back != 0 && s.left[h.reverse] < back) {
			return i
		}
		s.left[l] = less(s.left[l], forth)
		if back != 0 {
			s.left[h.reverse] = less(s.left[h.reverse], back)
		}
	}
	return len(links)
}

// less subtracts, rounded to MB/s, so that nothing adds up from errors.
func less(a, b float32) float32 {
	mbps := float64(float32(float32(a-b) * 1000))
	if mbps < 0 {
		return float32(int64(mbps-.5)) / 1000
	}
	return float32(int64(mbps+.5)) / 1000
}

// worst and best are the extreme types of the paths from the GPUs to the given
// nodes; between GPUs, those to others.
func (s *space) worst(nodes []int) topo.PathType {
	return s.extreme(nodes, topo.PathLOC, func(a, b topo.PathType) topo.PathType { return max(a, b) })
}

func (s *space) best(nodes []int) topo.PathType {
	return s.extreme(nodes, topo.PathSYS, func(a, b topo.PathType) topo.PathType { return min(a, b) })
}

func (s *space) extreme(nodes []int, t topo.PathType, of func(a, b topo.PathType) topo.PathType) topo.PathType {
	for _, g := range s.gpus {
		for _, n := range nodes {
			if g != n {
				t = of(t, s.Path(g, n).Type)
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
