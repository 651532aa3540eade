package draw

import (
	"slices"

	"tutti/topo"
)

// Sizes in pixels.
const (
	margin      = 36
	cellWidth   = 66 // of a GPU or NIC
	cellDepth   = 44
	portWidth   = 86 // of a NIC's port where they stand in two rows
	portDepth   = 20
	boxWidth    = 96 // of a CPU or switch, at least
	switchDepth = 24
	cpuDepth    = 30
	rowGap      = 26 // between levels of the PCI tree
	cellGap     = 10 // between devices of a switch
	groupGap    = 22 // between switches
	cpuGap      = 34
	arcRise     = 22 // of a link over each CPU that stands between
	hostGap     = 44
	pageWidth   = 2000 // hosts beyond that go to the next row
	stubDepth   = 12   // from a NIC towards the network
	laneDepth   = 9    // of a route
	gutter      = 48   // left of several rows of hosts
	linkDepth   = 44   // between GPUs and NVSwitches
	barDepth    = 34   // of NVSwitches
	titleDepth  = 64
)

// box is a rectangle of the picture.
type box struct{ x, y, w, h int }

func (b box) centre() int { return b.x + b.w/2 }
func (b box) bottom() int { return b.y + b.h }
func (b box) right() int  { return b.x + b.w }

// tree is a part of a machine's PCI tree: a CPU, a PCI switch, a GPU or a NIC.
type tree struct {
	node    int
	kids    []*tree
	columns [][]*tree // the kids, NICs of one port in twos where there are many
	span    int       // width of the columns
	width   int       // of the whole
	ports   []int     // NETs of a NIC
	small   bool      // a NIC whose ports stand in two rows
}

// host is a machine, or one of the machines of an NVLink domain.
type host struct {
	cpus  []*tree
	width int
	depth int // levels of PCI switches
}

// row is a row of hosts, with the bar of NVSwitches below it.
type row struct {
	hosts   []*host
	above   int // room above the devices, for routes
	links   int // room below them, for NVLinks and routes
	cpus    int // y of the CPUs
	devices int // y of the devices
	below   int // y where they end, and what hangs on NICs
	bar     box
	bottom  int
}

// layout says where the parts of a machine stand.
type layout struct {
	s      *topo.System
	hosts  []*host
	rows   []row
	boxes  map[int]box // by node
	width  int
	height int
}

// arrange lays a machine out, without room for links and routes.
func arrange(s *topo.System) *layout {
	l := &layout{s: s, boxes: map[int]box{}}
	seen := map[int]bool{}
	for _, cpu := range s.CPUs {
		if seen[cpu] {
			continue
		}
		h := &host{}
		for _, c := range s.CPUs {
			if c == cpu || linked(s, cpu, c) {
				seen[c] = true
				h.cpus = append(h.cpus, l.grow(c, map[int]bool{c: true}))
			}
		}
		for i, t := range h.cpus {
			h.width += t.width
			if i > 0 {
				h.width += cpuGap
			}
			h.depth = max(h.depth, t.depth()-1)
		}
		l.hosts = append(l.hosts, h)
	}
	l.fill()
	l.place()
	return l
}

func linked(s *topo.System, a, b int) bool {
	return slices.ContainsFunc(s.Nodes[a].Out, func(l int) bool { return s.Links[l].To == b })
}

// fill spreads the hosts evenly over rows.
func (l *layout) fill() {
	widest := 0
	for _, h := range l.hosts {
		widest = max(widest, h.width)
	}
	count := max(1, (pageWidth+hostGap)/(widest+hostGap))
	rows := (len(l.hosts) + count - 1) / count
	count = (len(l.hosts) + rows - 1) / rows
	for chunk := range slices.Chunk(l.hosts, count) {
		l.rows = append(l.rows, row{hosts: chunk})
		width := -hostGap
		for _, h := range chunk {
			width += h.width + hostGap
		}
		l.width = max(l.width, width)
	}
	if rows > 1 {
		l.width += gutter
	}
}

// grow builds the tree below a node.
func (l *layout) grow(node int, seen map[int]bool) *tree {
	t := &tree{node: node}
	var below []int
	for _, out := range l.s.Nodes[node].Out {
		link := l.s.Links[out]
		to := l.s.Nodes[link.To].Type
		switch {
		case seen[link.To]:
		case link.Type == topo.LinkNET && to == topo.NET:
			t.ports = append(t.ports, link.To)
		case link.Type == topo.LinkPCI && to != topo.CPU && l.s.Nodes[node].Type != topo.GPU:
			below = append(below, link.To)
		}
	}
	slices.Sort(t.ports)
	slices.Sort(below)
	ports := 0
	for _, b := range below {
		seen[b] = true
		kid := l.grow(b, seen)
		if l.s.Nodes[b].Type == topo.NIC && len(kid.ports) == 0 {
			continue
		}
		ports += len(kid.ports)
		t.kids = append(t.kids, kid)
	}
	for _, kid := range t.kids {
		kid.small = len(kid.ports) > 1 || (len(kid.ports) == 1 && ports > 2)
		kid.measure()
	}
	t.measure()
	return t
}

// depth is how many levels of switches a tree has, its root among them.
func (t *tree) depth() int {
	d := 0
	for _, k := range t.kids {
		if len(k.kids) > 0 {
			d = max(d, k.depth())
		}
	}
	return d + 1
}

// measure finds how wide a tree is whose branches are measured.
func (t *tree) measure() {
	switch {
	case len(t.kids) > 0:
		t.columns = columns(t.kids)
		t.span = 0
		for i, column := range t.columns {
			if i > 0 {
				t.span += gapAfter(t.columns[i-1][0])
			}
			t.span += column[0].width
		}
		t.width = max(t.span, boxWidth)
	case t.small:
		t.width = (len(t.ports)+1)/2*(portWidth+cellGap) - cellGap
	default:
		t.width = cellWidth
	}
}

// columns lists what stands side by side.
func columns(kids []*tree) [][]*tree {
	var list [][]*tree
	for _, k := range kids {
		single := k.small && len(k.ports) == 1
		if n := len(list); n > 0 && single && len(list[n-1]) == 1 {
			if last := list[n-1][0]; last.small && len(last.ports) == 1 {
				list[n-1] = append(list[n-1], k)
				continue
			}
		}
		list = append(list, []*tree{k})
	}
	return list
}

func gapAfter(t *tree) int {
	if len(t.kids) > 0 {
		return groupGap
	}
	return cellGap
}

// place gives every part its box.
func (l *layout) place() {
	y := margin + titleDepth
	for i := range l.rows {
		r := &l.rows[i]
		depth, between, width := 0, 0, -hostGap
		for _, h := range r.hosts {
			depth = max(depth, h.depth)
			between = max(between, len(h.cpus)-2)
			width += h.width + hostGap
		}
		r.cpus = y + between*arcRise
		x := margin + (l.width-width)/2
		if len(l.hosts) > 1 {
			r.cpus += 28 // for the frame
		}
		if len(l.rows) > 1 {
			x = margin + gutter
		}
		switches := r.cpus + cpuDepth + rowGap
		r.devices = switches + depth*(switchDepth+rowGap) + max(0, r.above-rowGap/2)
		r.below = r.devices + cellDepth + stubDepth
		r.bar = box{x, r.below + r.links, width, barDepth}
		r.bottom = r.bar.y
		if l.s.NVS >= 0 {
			r.bottom += barDepth
		}
		for _, h := range r.hosts {
			for _, t := range h.cpus {
				l.boxes[t.node] = box{x, r.cpus, t.width, cpuDepth}
				l.placeKids(t, x, switches, r.devices)
				x += t.width + cpuGap
			}
			x += hostGap - cpuGap
		}
		y = r.bottom + hostGap
	}
	l.height = y
}

// placeKids gives what is below a tree its boxes: switches at y and below that,
// devices at theirs.
func (l *layout) placeKids(t *tree, x, y, devices int) {
	x += (t.width - t.span) / 2
	for _, column := range t.columns {
		for k, kid := range column {
			switch {
			case len(kid.kids) > 0:
				l.boxes[kid.node] = box{x, y, kid.width, switchDepth}
				l.placeKids(kid, x, y+switchDepth+rowGap, devices)
			case len(kid.ports) > 1:
				l.boxes[kid.node] = box{x, devices, kid.width, cellDepth}
				for p, port := range kid.ports {
					l.boxes[port] = box{x + p/2*(portWidth+cellGap), devices + p%2*(cellDepth-portDepth), portWidth, portDepth}
				}
			case kid.small:
				b := box{x, devices + k*(cellDepth-portDepth), portWidth, portDepth}
				l.boxes[kid.node], l.boxes[kid.ports[0]] = b, b
			default:
				b := box{x, devices, cellWidth, cellDepth}
				l.boxes[kid.node] = b
				for _, port := range kid.ports {
					l.boxes[port] = b
				}
			}
		}
		x += column[0].width + gapAfter(column[0])
	}
}

// rowOf is the index of the row of hosts that a node stands in.
func (l *layout) rowOf(node int) int {
	y := l.boxes[node].y
	return max(0, slices.IndexFunc(l.rows, func(r row) bool { return y < r.below }))
}
