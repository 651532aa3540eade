package topo

import (
	"slices"

	"tutti/model/splitmix"
)

// RouteAround is [Cluster.RouteFlow] while some links carry nothing. A flow whose
// way is whole keeps to it; ECMP spreads the others over the cables that are left,
// by the same hash, as switches do that know which way leads where. It returns nil
// if no way is left: nothing leads around a port, or a link in a machine.
func (c *Cluster) RouteAround(from, to, out, in, flow int, failed func(link int) bool) []int {
	route := c.RouteFlow(from, to, out, in, flow)
	if !slices.ContainsFunc(route, failed) {
		return route
	}
	source, target := port{c.NodeOf(from), out}, port{c.NodeOf(to), in}
	if source.node == target.node || c.Fabric.Routing != ECMP {
		return nil
	}
	var left [][]int
	top := c.meet(source, target)
	var by picks
	for more := true; more; more = c.next(&by, top) {
		if route := c.across(from, to, source, target, by); !slices.ContainsFunc(route, failed) {
			left = append(left, route)
		}
	}
	if len(left) == 0 {
		return nil
	}
	return left[splitmix.Mix(c.hash(source, target, flow))%uint64(len(left))]
}

// next counts through the cables up to a level, and returns false after the last.
func (c *Cluster) next(by *picks, top int) bool {
	for i := 1; i <= top; i++ {
		if by[i]++; by[i] < c.tiers[i].ways() {
			return true
		}
		by[i] = 0
	}
	return false
}
