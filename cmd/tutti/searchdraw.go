package main

import (
	"io"

	"tutti/topo"
	"tutti/topo/draw"
	"tutti/topo/search"
)

// maxDrawn is how many ways of each graph are drawn: more are hard to tell apart,
// and further ones are like these.
const maxDrawn = 2

// drawSearch draws the first ways of rings and trees over a machine, of a mixture
// the first one.
func drawSearch(w io.Writer, c *topo.Cluster, g search.Graphs) error {
	c = c.AllOf(0)
	var routes []draw.Route
	for _, named := range []searchGraph{{"ring", g.Ring}, {"tree", g.Tree}} {
		ring := named.name == "ring"
		ways := waysOf(c.Machine, named.graph)
		for _, way := range ways[:min(maxDrawn, len(ways))] {
			ch := way.first
			route := draw.Route{Label: named.name + " " + way.channels, Closed: ring && ch.In < 0}
			if ch.In >= 0 {
				route.Nodes = append(route.Nodes, c.Machine.NETs[ch.In])
			}
			for _, gpu := range ch.GPUs {
				route.Nodes = append(route.Nodes, c.GPU(gpu))
			}
			if ring && ch.Out >= 0 { // trees leave by the first GPU, as they enter
				route.Nodes = append(route.Nodes, c.Machine.NETs[ch.Out])
			}
			routes = append(routes, route)
		}
	}
	return draw.Machine(w, c.Machine, routes...)
}
