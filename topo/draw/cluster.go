package draw

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"tutti/model/units"
	"tutti/topo"
)

// Sizes of a cluster's picture.
const (
	labelWidth  = 250 // left of the switches
	fabricWidth = 1240
	tierDepth   = 30  // of a switch
	tierGap     = 130 // between levels
	nodeDepth   = 52
	maxShown    = 8 // of anything side by side
)

// Cluster draws the machines of a cluster and the switches of its fabric. Of
// what there is much of, the first and the last are drawn. It draws the machine
// if there is only one.
func Cluster(w io.Writer, c *topo.Cluster) error {
	if c.Nodes == 1 {
		return Machine(w, c.Machine)
	}
	p := &plan{cluster: c, tiers: c.Tiers()}
	p.choose()
	top := margin + titleDepth
	width := labelWidth + fabricWidth + 2*margin
	bottom := top + len(p.tiers)*(tierDepth+tierGap) + nodeDepth
	entries := p.legend()
	height := bottom + margin + legend(nil, entries, 0, 0, width-2*margin) + margin/2
	machines := topo.ShortName(c.Machine.Name)
	if !c.Mixed() {
		machines = fmt.Sprintf("%d x %s", c.Nodes, machines)
	}
	title := machines + " on " + topo.ShortName(c.Fabric.Name)
	pic := newCanvas(width, height, title)
	pic.writeLeft(margin, margin+14, 22, title, bold)
	pic.writeLeft(margin, margin+36, 13, p.summary(), "fill:#555555")
	p.place(top)
	p.drawCables(pic)
	p.drawBoxes(pic)
	p.drawLabels(pic)
	legend(pic, entries, margin, bottom+margin, width-2*margin)
	return pic.writeTo(w)
}

// plan says which parts of a cluster are drawn, and where.
type plan struct {
	cluster *topo.Cluster
	tiers   []topo.Tier
	units   []block     // of machines that share leaves
	levels  [][]block   // groups of switches, by level
	boxes   map[key]box // of switches by level, group and place; of machines with level -1
}

// key names a machine or a switch.
type key struct{ level, group, place int }

// block is a group of machines or switches. Members that are left out stand as
// one that is negative.
type block struct {
	group   int
	first   int // the first machine that is below it
	rail    int // -1 where all rails meet
	members []int
	gap     bool // groups are left out before it
}

// elide lists the numbers below n: all, or where there are more than so many, the
// first ones, -1 for those left out, and the last.
func elide(n, most int) []int {
	list := make([]int, 0, most+1)
	for i := range min(n, most) {
		list = append(list, i)
	}
	if n > most {
		list = append(list[:most-1], -1, n-1)
	}
	return list
}

// choose finds what is drawn.
func (p *plan) choose() {
	c := p.cluster
	leaf := p.tiers[0]
	unitCount := (c.Nodes + leaf.Nodes - 1) / leaf.Nodes
	shown := elide(unitCount, 2)
	perUnit := maxShown / 2
	if unitCount > 1 {
		perUnit = 3
	}
	if leaf.Rails == 1 && unitCount > 2 { // leaves are few: units can be more
		shown, perUnit = elide(unitCount, 4), 2
	}
	gap := false
	for _, u := range shown {
		if u < 0 {
			gap = true
			continue
		}
		first := u * leaf.Nodes
		p.units = append(p.units, block{group: u, first: first, rail: -1, gap: gap, members: elide(min(leaf.Nodes, c.Nodes-first), perUnit)})
		gap = false
	}
	for _, t := range p.tiers {
		p.levels = append(p.levels, p.groups(t))
	}
}

// groups lists the groups of a tier that are above the machines drawn.
func (p *plan) groups(t topo.Tier) []block {
	var list []block
	last := -1
	for _, u := range p.units {
		part := u.first / t.Nodes
		if part == last {
			continue
		}
		gap := last >= 0 && part > last+1
		last = part
		for _, r := range elide(t.Rails, maxShown) {
			if r < 0 {
				gap = true
				continue
			}
			b := block{group: part*t.Rails + r, first: u.first, rail: r, gap: gap}
			if t.Rails == 1 {
				b.rail = -1
			}
			list = append(list, b)
			gap = false
		}
	}
	most := 2 * maxShown / len(list)
	if n := len(p.levels); n > 0 && len(p.levels[n-1]) > maxShown {
		most = min(most, maxShown) // or cables hide each other
	}
	for i := range list {
		list[i].members = elide(t.Planes, max(2, most))
	}
	return list
}

// place gives machines and switches their boxes, from the top level down.
func (p *plan) place(y int) {
	p.boxes = map[key]box{}
	for level := len(p.tiers) - 1; level >= 0; level-- {
		p.row(level, p.levels[level], y, tierDepth, 84)
		y += tierDepth + tierGap
	}
	p.row(-1, p.units, y, nodeDepth, 150)
}

// row spreads blocks, and the members in each, over the width.
func (p *plan) row(level int, blocks []block, y, depth, widest int) {
	slots := 0
	for i, b := range blocks {
		slots += len(b.members)
		if i > 0 {
			slots++ // between blocks, whether something is left out there or not
		}
	}
	step := fabricWidth / slots
	w := min(widest, step-8)
	x := margin + labelWidth + (fabricWidth-slots*step)/2
	for i, b := range blocks {
		if i > 0 {
			if b.gap {
				p.boxes[key{level, b.group, -2}] = box{x + (step-w)/2, y, w, depth}
			}
			x += step
		}
		for _, m := range b.members {
			p.boxes[key{level, b.group, m}] = box{x + (step-w)/2, y, w, depth}
			x += step
		}
	}
}

// colour is that of a rail.
func (p *plan) colour(rail int) string {
	if rail < 0 {
		return grey
	}
	return palette[rail%len(palette)]
}

// drawnPort is a NET that is drawn: its rail, and where its cable leaves the
// machine.
type drawnPort struct{ rail, x, y int }

// ports returns those of a machine.
func (p *plan) ports(node int, b box) (list []drawnPort) {
	nets := elide(len(p.cluster.At(node).NETs), maxShown)
	for i, net := range nets {
		if net >= 0 {
			list = append(list, drawnPort{p.cluster.Rail(node, net), b.x + b.w*(2*i+1)/(2*len(nets)), b.y})
		}
	}
	return list
}

func (p *plan) drawCables(c *canvas) {
	for _, u := range p.units {
		for _, n := range u.members {
			if n < 0 {
				continue
			}
			for _, port := range p.ports(u.first+n, p.boxes[key{-1, u.group, n}]) {
				leaf, shown := p.boxes[key{0, u.group*p.tiers[0].Rails + port.rail%p.tiers[0].Rails, 0}]
				if shown {
					c.Line(port.x, port.y, leaf.centre(), leaf.bottom(), stroke(p.colour(port.rail), 1.4, "opacity:0.75"))
				}
			}
		}
	}
	for level := 1; level < len(p.tiers); level++ {
		t, lower := p.tiers[level], p.tiers[level-1]
		for _, b := range p.levels[level-1] {
			above := b.first/t.Nodes*t.Rails + max(b.rail, 0)%t.Rails
			for _, m := range b.members {
				from, shown := p.boxes[key{level - 1, b.group, m}]
				if m < 0 || !shown {
					continue
				}
				for j := range t.Parents {
					to, shown := p.boxes[key{level, above, m%lower.Planes*t.Parents + j}]
					if shown {
						c.Line(from.centre(), from.y, to.centre(), to.bottom(), stroke(p.colour(b.rail), 1.1, "opacity:0.6"))
					}
				}
			}
		}
	}
}

func (p *plan) drawBoxes(c *canvas) {
	for level := range p.tiers {
		t := p.tiers[level]
		for _, b := range p.levels[level] {
			p.drawGap(c, level, b)
			for _, m := range b.members {
				place := p.boxes[key{level, b.group, m}]
				if m < 0 {
					p.drawDots(c, place)
					continue
				}
				name := fmt.Sprintf("%s %d", t.Name, b.group*t.Planes+m)
				if textWidth(name, 11) > place.w-4 {
					name = fmt.Sprint(b.group*t.Planes + m)
				}
				c.frame(place, switchFill, p.colour(b.rail), name, "")
			}
		}
	}
	for _, u := range p.units {
		p.drawGap(c, -1, u)
		for _, n := range u.members {
			place := p.boxes[key{-1, u.group, n}]
			if n < 0 {
				p.drawDots(c, place)
				continue
			}
			what := count(p.cluster.RanksOn(u.first+n), "GPU")
			if p.cluster.Mixed() {
				what = topo.ShortName(p.cluster.At(u.first+n).Name) + ", " + what
			}
			c.frame(place, gpuFill, green, fmt.Sprintf("node %d", u.first+n), what)
			for _, port := range p.ports(u.first+n, place) {
				c.Circle(port.x, port.y, 4, "fill:"+p.colour(port.rail))
			}
		}
	}
}

// drawGap and drawDots mark what is left out.
func (p *plan) drawGap(c *canvas, level int, b block) {
	if place, found := p.boxes[key{level, b.group, -2}]; found {
		p.drawDots(c, place)
	}
}

func (p *plan) drawDots(c *canvas, b box) {
	for i := -1; i <= 1; i++ {
		c.Circle(b.centre()+8*i, b.y+b.h/2, 2, "fill:"+grey)
	}
}

// drawLabels writes the counts beside the levels.
func (p *plan) drawLabels(c *canvas) {
	y := margin + titleDepth
	for level := len(p.tiers) - 1; level >= 0; level-- {
		t := p.tiers[level]
		ports := fmt.Sprintf("%d ports down", t.Down)
		if t.Up > 0 {
			ports += fmt.Sprintf(", %d up", t.Up)
		}
		if p.cluster.Fabric.Levels[level].Reduces {
			ports += ", SHARP"
		}
		c.writeLeft(margin, y+14, 14, switches(t.Switches, t.Name), bold)
		c.writeLeft(margin, y+31, 11, ports, "fill:#555555")
		middle := y + tierDepth + tierGap/2
		c.writeLeft(margin, middle, 11, fmt.Sprintf("%s of %g Gb/s", count(t.Cables, "cable"), round(float64(t.CableRate/units.Gbps))), "fill:#555555")
		c.writeLeft(margin, middle+15, 11, fmt.Sprintf("%g TB/s each way", round(float64(t.Capacity/units.GBps)/1000)), "fill:#555555")
		y += tierDepth + tierGap
	}
	c.writeLeft(margin, y+22, 14, count(p.cluster.Nodes, "machine"), bold)
	if !p.cluster.Mixed() {
		c.writeLeft(margin, y+39, 11, topo.ShortName(p.cluster.Machine.Name), "fill:#555555")
	}
}

// switches counts switches in English.
func switches(n int, name string) string {
	if n == 1 {
		return "1 " + name
	}
	if name == "leaf" {
		return fmt.Sprintf("%d leaves", n)
	}
	return fmt.Sprintf("%d %ss", n, name)
}

func round(v float64) float64 { return float64(int(v*10+0.5)) / 10 }

func (p *plan) summary() string {
	c := p.cluster
	var nets []int
	for _, m := range c.Machines() {
		if n := len(m.NETs); !slices.Contains(nets, n) {
			nets = append(nets, n)
		}
	}
	ports := count(nets[0], "port")
	for _, n := range nets[1:] {
		ports = fmt.Sprintf("%d or %s", n, ports)
	}
	return strings.Join([]string{
		count(c.Ranks(), "GPU"),
		ports + " per machine",
		fmt.Sprintf("%v routing", c.Fabric.Routing),
	}, ", ")
}

// legend lists the colours of the rails that are drawn.
func (p *plan) legend() []entry {
	var entries []entry
	seen := map[int]bool{}
	for _, u := range p.units {
		for _, n := range u.members {
			for _, port := range p.ports(u.first+max(0, n), box{}) {
				if !seen[port.rail] {
					seen[port.rail] = true
					entries = append(entries, entry{fmt.Sprintf("rail %d", port.rail), p.colour(port.rail), "", 3})
				}
			}
		}
	}
	return entries
}
