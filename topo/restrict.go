package topo

import "slices"

// Restrict returns the system as NCCL sees it in a communicator of its first
// GPUs (by rank; 0 for all). The other GPUs are not there, and, unless the
// communicator spans several machines (network), nor are the NETs (NCCL 2.28.3,
// paths.cc, ncclTopoTrimSystem). Nodes and links keep their numbers; what is not
// there has no links.
func (s *System) Restrict(gpus int, network bool) *System {
	if gpus == 0 {
		gpus = len(s.GPUs)
	}
	if gpus == len(s.GPUs) && (network || len(s.NETs) == 0) {
		return s
	}
	r := &System{
		Name: s.Name, Nodes: slices.Clone(s.Nodes), Links: s.Links,
		GPUs: s.GPUs[:gpus], NETs: s.NETs, CPUs: s.CPUs, NVS: s.NVS, settings: s.settings, source: s.source,
	}
	gone := map[int]bool{}
	for _, g := range s.GPUs[gpus:] {
		gone[g] = true
	}
	if !network {
		r.NETs = nil
		for _, net := range s.NETs {
			gone[net] = true
		}
	}
	for i, n := range r.Nodes {
		r.Nodes[i].Out = slices.DeleteFunc(slices.Clone(n.Out), func(l int) bool { return gone[i] || gone[s.Links[l].To] })
	}
	r.computePaths()
	return r
}
