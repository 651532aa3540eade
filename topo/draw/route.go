package draw

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"tutti/topo"
)

// Route is a way to be drawn over a machine: a ring, a chain of a tree, a path.
type Route struct {
	// Label stands in the legend.
	Label string
	// Nodes are GPUs and NETs of the machine in order, as indexes into
	// [topo.System.Nodes].
	Nodes []int
	// Closed says that the last is followed by the first.
	Closed bool
}

const routeWidth = 3

func routeColour(i int) string { return palette[i%len(palette)] }

func checkRoutes(s *topo.System, routes []Route) error {
	for _, r := range routes {
		for _, n := range r.Nodes {
			if n < 0 || n >= len(s.Nodes) || (s.Nodes[n].Type != topo.GPU && s.Nodes[n].Type != topo.NET) {
				return fmt.Errorf("route %q: node %d is neither a GPU nor a NET of %s", r.Label, n, s.Name)
			}
		}
	}
	return nil
}

// side is where a hop runs: NVLink below the devices, the rest above.
type side int

const (
	above side = iota
	below
	along // an arc of a mesh
)

// hop is a part of a route from one device to the next.
type hop struct {
	route, from, to int
	side            side
	lanes           [2]int // in the row of hosts of either end
}

// lanes are the hops of all routes, on lanes so that none covers another.
type lanes struct {
	layout *layout
	routes []Route
	hops   []hop
	used   map[lane][]interval
	count  map[rowSide]int
}

type rowSide struct {
	row  int
	side side
}

type lane struct {
	rowSide
	number int
}

type interval struct{ lo, hi int }

// assign finds a lane for each hop: the shortest of a route nearest to the
// devices, one route below the other.
func assign(l *layout, routes []Route) *lanes {
	a := &lanes{layout: l, routes: routes, used: map[lane][]interval{}, count: map[rowSide]int{}}
	for i, r := range routes {
		base := maps.Clone(a.count)
		var hops []hop
		for k, n := range r.Nodes {
			switch {
			case k+1 < len(r.Nodes):
				hops = append(hops, hop{route: i, from: n, to: r.Nodes[k+1]})
			case r.Closed && len(r.Nodes) > 1:
				hops = append(hops, hop{route: i, from: n, to: r.Nodes[0]})
			}
		}
		slices.SortStableFunc(hops, func(p, q hop) int { return cmp.Compare(a.length(p), a.length(q)) })
		for _, h := range hops {
			h.side = a.sideOf(h)
			from, to := a.layout.rowOf(h.from), a.layout.rowOf(h.to)
			if h.side != along {
				x1, x2 := a.out(h), a.in(h)
				if from == to {
					h.lanes[0] = a.take(rowSide{from, h.side}, base, x1, x2)
					h.lanes[1] = h.lanes[0]
				} else {
					h.lanes[0] = a.take(rowSide{from, h.side}, base, x1, a.shaft(i))
					h.lanes[1] = a.take(rowSide{to, h.side}, base, x2, a.shaft(i))
				}
			}
			a.hops = append(a.hops, h)
		}
	}
	return a
}

// sideOf tells where a hop runs.
func (a *lanes) sideOf(h hop) side {
	s := a.layout.s
	p := s.Path(h.from, h.to)
	switch {
	case s.Nodes[h.from].Type != topo.GPU || s.Nodes[h.to].Type != topo.GPU || p.Type != topo.PathNVL:
		return above
	case len(p.Links) == 1:
		return along
	default:
		return below
	}
}

func (a *lanes) length(h hop) int {
	from, to := a.layout.boxes[h.from], a.layout.boxes[h.to]
	across, down := to.centre()-from.centre(), to.y-from.y
	return max(across, -across) + 10*max(down, -down)
}

// out and in are where a hop leaves and enters, beside the devices' own links.
func (a *lanes) out(h hop) int { return a.layout.boxes[h.from].centre() + a.aside(h) }
func (a *lanes) in(h hop) int  { return a.layout.boxes[h.to].centre() - a.aside(h) }

func (a *lanes) aside(h hop) int { return 9 + 5*(h.route%5) }

// shaft is where a route changes from row to row of hosts.
func (a *lanes) shaft(route int) int { return a.layout.rows[0].bar.x - 20 - 5*(route%4) }

// take finds the first lane from a route's own on with room from one x to
// another.
func (a *lanes) take(k rowSide, base map[rowSide]int, x1, x2 int) int {
	v := interval{min(x1, x2) - 4, max(x1, x2) + 4}
	for n := base[k]; ; n++ {
		taken := slices.ContainsFunc(a.used[lane{k, n}], func(u interval) bool { return u.lo < v.hi && v.lo < u.hi })
		if !taken {
			a.used[lane{k, n}] = append(a.used[lane{k, n}], v)
			a.count[k] = max(a.count[k], n+1)
			return n
		}
	}
}

// depth is how much room the lanes of a row take.
func (a *lanes) depth(row int, s side) int { return laneDepth * a.count[rowSide{row, s}] }

// draw draws all hops, the last routes' first, with arrows where they end.
func (a *lanes) draw(c *canvas) {
	arcs := a.layout.arcs()
	for _, h := range slices.Backward(a.hops) {
		up := 1 // or -1, where the arrow points down
		var path string
		var x, y int
		if h.side == along {
			path, x, y = a.alongArc(h, arcs)
		} else {
			path, x, y = a.overLanes(h)
		}
		if h.side == above {
			up = -1
		}
		colour := routeColour(h.route)
		c.Path(path, stroke("white", routeWidth+2.5, "stroke-linejoin:round"))
		c.Path(path, stroke(colour, routeWidth, "stroke-linejoin:round"))
		c.Polygon([]int{x, x - 5, x + 5}, []int{y - up, y + 7*up, y + 7*up}, "fill:"+colour)
	}
	for i, r := range a.routes {
		if len(r.Nodes) > 1 && !r.Closed {
			x, y := a.start(hop{route: i, from: r.Nodes[0], to: r.Nodes[1]}, arcs)
			c.Circle(x, y, 4, "fill:"+routeColour(i))
		}
	}
}

// start is where the first hop of a route leaves its device.
func (a *lanes) start(h hop, arcs []arc) (x, y int) {
	b := a.layout.boxes[h.from]
	switch a.sideOf(h) {
	case above:
		return a.out(h), b.y - 3
	case along:
		_, x, y := a.alongArc(hop{from: h.to, to: h.from}, arcs)
		return x, y + 3
	}
	return a.out(h), b.bottom() + 3
}

// overLanes is the way of a hop from a device to its lane and on to the other.
func (a *lanes) overLanes(h hop) (path string, x, y int) {
	end := func(node, lane int) (y, laneY int) {
		b, r := a.layout.boxes[node], a.layout.rows[a.layout.rowOf(node)]
		if h.side == above {
			return b.y, r.devices - 12 - laneDepth*lane
		}
		return b.bottom(), r.below + 4 + laneDepth*lane
	}
	y1, lane1 := end(h.from, h.lanes[0])
	y2, lane2 := end(h.to, h.lanes[1])
	x1, x2 := a.out(h), a.in(h)
	if a.layout.rowOf(h.from) == a.layout.rowOf(h.to) {
		return fmt.Sprintf("M%d %d V%d H%d V%d", x1, y1, lane1, x2, y2), x2, y2
	}
	return fmt.Sprintf("M%d %d V%d H%d V%d H%d V%d", x1, y1, lane1, a.shaft(h.route), lane2, x2, y2), x2, y2
}

// alongArc is the way of a hop on the NVLink of a mesh.
func (a *lanes) alongArc(h hop, arcs []arc) (path string, x, y int) {
	i := slices.IndexFunc(arcs, func(r arc) bool {
		return (r.a == h.from && r.b == h.to) || (r.b == h.from && r.a == h.to)
	})
	r := arcs[i]
	if x = r.x1; r.a == h.from {
		x = r.x2
	}
	return r.path(5 * (h.route % 5)), x, r.y
}
