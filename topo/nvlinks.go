package topo

import "math"

// NVLinks returns how many NVLinks a link of a machine stands for: 0 if it is of
// another kind.
func (s *System) NVLinks(link int) int {
	l := s.Links[link]
	if l.Type != LinkNVL {
		return 0
	}
	gpu := l.From
	if s.Nodes[gpu].Type != GPU {
		gpu = l.To
	}
	return int(math.Round(float64(l.Rate / nvlinkRate(s.Nodes[gpu].SM))))
}
