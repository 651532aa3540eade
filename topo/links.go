package topo

import (
	"slices"

	"tutti/model/units"
)

// link adds rate to the link from one node to another, making it if need be, and
// returns it. The links of a node stay sorted by rate, the highest first (NCCL
// 2.28.3, topo.cc, ncclTopoConnectNodes).
func (s *System) link(t LinkType, from, to int, rate units.Rate) int {
	out := s.Nodes[from].Out
	at := slices.IndexFunc(out, func(l int) bool { return s.Links[l].Type == t && s.Links[l].To == to })
	if at < 0 {
		at = len(out)
		out = append(out, len(s.Links))
		s.Links = append(s.Links, Link{Type: t, From: from, To: to})
	}
	l := out[at]
	s.Links[l].Rate += rate
	for ; at > 0 && s.Links[out[at-1]].Rate < s.Links[l].Rate; at-- {
		out[at] = out[at-1]
	}
	out[at] = l
	s.Nodes[from].Out = out
	return l
}

// connect links two nodes both ways.
func (s *System) connect(t LinkType, a, b int, rate units.Rate) {
	s.link(t, a, b, rate)
	s.link(t, b, a, rate)
}

// sortLinks puts the link up the PCI tree last on every node below a CPU, so that
// among ways of equal length NVLinks come first and the local PCI tree before
// what is above it (NCCL 2.28.3, topo.cc, ncclTopoSort).
func (s *System) sortLinks(node, up int) {
	out := s.Nodes[node].Out
	if i := slices.IndexFunc(out, func(l int) bool { return s.Links[l].To == up }); i >= 0 {
		last := out[i]
		copy(out[i:], out[i+1:])
		out[len(out)-1] = last
	}
	for _, l := range out {
		if link := s.Links[l]; link.Type == LinkPCI && link.To != up {
			s.sortLinks(link.To, node)
		}
	}
}

// broadcomGeneration tells whether a PCI switch is one of Broadcom's that show
// themselves as two levels of switches: 4 or 5 for the generation, else 0. The
// level is 0 for the upper switch and 1 for the lower ones.
func broadcomGeneration(device uint64, level uint64) int {
	switch device &^ 0xfff {
	case 0x1000c0101000a000:
		return 4
	case 0x1000c03010000000 | level<<12:
		return 5
	}
	return 0
}

// flattenSwitches makes one node of each Broadcom switch that shows itself as a
// switch over switches, since all its ports have their full rate (NCCL 2.28.3,
// topo.cc, ncclTopoFlattenBcmSwitches).
func (s *System) flattenSwitches() {
	inner := map[int]bool{}
	for _, upper := range s.Of(PCI) {
		generation := broadcomGeneration(s.Nodes[upper].Device, 0)
		if generation == 0 || inner[upper] {
			continue
		}
		var lower, moved []int
		out := slices.DeleteFunc(s.Nodes[upper].Out, func(l int) bool {
			to := s.Links[l].To
			below := s.Nodes[to].Type == PCI && !inner[to] && broadcomGeneration(s.Nodes[to].Device, 1) == generation
			if below {
				lower = append(lower, to)
			}
			return below
		})
		for _, node := range lower {
			inner[node] = true
			for _, l := range s.Nodes[node].Out {
				if s.Links[l].To == upper {
					continue
				}
				if back := s.Reverse(l); back >= 0 {
					s.Links[back].To = upper
				}
				s.Links[l].From = upper
				moved = append(moved, l)
			}
			s.Nodes[node].Out = nil
		}
		s.Nodes[upper].Out = append(out, moved...)
		s.Nodes[upper].Device |= 0xffff // so that it is not taken for one again
	}
	if len(inner) > 0 {
		s.without(inner)
	}
}

// without removes the given nodes and the links to them, and renumbers the others.
func (s *System) without(gone map[int]bool) {
	var nodes []Node
	at := make([]int, len(s.Nodes))
	for i, n := range s.Nodes {
		if !gone[i] {
			at[i] = len(nodes)
			nodes = append(nodes, n)
		}
	}
	var links []Link
	for i := range nodes {
		out := nodes[i].Out
		nodes[i].Out = nil
		for _, l := range out {
			link := s.Links[l]
			if gone[link.To] {
				continue
			}
			link.From, link.To = at[link.From], at[link.To]
			nodes[i].Out = append(nodes[i].Out, len(links))
			links = append(links, link)
		}
	}
	for _, list := range [][]int{s.GPUs, s.NETs, s.CPUs} {
		for i := range list {
			list[i] = at[list[i]]
		}
	}
	if s.NVS >= 0 {
		s.NVS = at[s.NVS]
	}
	s.Nodes, s.Links = nodes, links
}
