// Package draw draws machines and clusters as SVG.
//
// [Machine] shows a machine as its PCI trees, CPUs at the top, with NVLink below
// the GPUs: to the NVSwitches, or from GPU to GPU. Routes such as rings and trees
// can be laid over it. [Cluster] shows the switches of a fabric, and of what there
// is much of, some.
//
// Pictures are the same bytes on every machine. Colours are told apart by people
// with any colour vision, and never tell what a label or a width does not.
package draw

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"tutti/model/units"
	"tutti/topo"
)

// Machine draws a machine, and routes over it.
func Machine(w io.Writer, s *topo.System, routes ...Route) error {
	if err := checkRoutes(s, routes); err != nil {
		return err
	}
	l := arrange(s)
	lanes := assign(l, routes)
	for i := range l.rows {
		r := &l.rows[i]
		r.above = lanes.depth(i, above)
		r.links = l.arcDepth()
		if s.NVS >= 0 {
			r.links = linkDepth + lanes.depth(i, below)
		}
	}
	l.place()

	entries := linkEntries(s)
	var routeEntries []entry
	for i, r := range routes {
		routeEntries = append(routeEntries, entry{r.Label, routeColour(i), "", routeWidth})
	}
	width := max(l.width+2*margin, 640)
	inner := width - 2*margin
	offset := (width - l.width - 2*margin) / 2
	height := l.height + legend(nil, entries, 0, 0, inner) + margin/2
	if len(routes) > 0 {
		height += legend(nil, routeEntries, 0, 0, inner)
	}
	c := newCanvas(width, height, topo.ShortName(s.Name))
	c.writeLeft(margin, margin+14, 22, topo.ShortName(s.Name), bold)
	c.writeLeft(margin, margin+36, 13, summary(s), "fill:#555555")
	c.Translate(offset, 0)
	l.drawHosts(c)
	l.drawLinks(c, len(routes) > 0)
	l.drawNodes(c)
	lanes.draw(c)
	c.Gend()
	y := l.height
	y += legend(c, entries, margin, y, inner)
	if len(routes) > 0 {
		legend(c, routeEntries, margin, y, inner)
	}
	return c.writeTo(w)
}

// summary counts the parts of a machine.
func summary(s *topo.System) string {
	parts := []string{
		fmt.Sprintf("%d GPUs of compute capability %d.%d", len(s.GPUs), s.SM()/10, s.SM()%10),
		count(len(s.CPUs), "NUMA node"),
	}
	if s.NVS >= 0 {
		parts = append(parts, "all NVSwitches as one")
	}
	return strings.Join(append(parts, count(len(s.NETs), "network port")), ", ")
}

func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// linkEntries lists the kinds of links of a machine, with their rates.
func linkEntries(s *topo.System) []entry {
	type kind struct {
		t    topo.LinkType
		rate units.Rate
		text string
	}
	var kinds []kind
	for i, l := range s.Links {
		k := kind{t: l.Type, rate: l.Rate}
		switch l.Type {
		case topo.LinkNVL:
			k.text = fmt.Sprintf("%s, %v", count(s.NVLinks(i), "NVLink"), l.Rate)
		case topo.LinkC2C:
			k.text = fmt.Sprintf("NVLink-C2C, %v", l.Rate)
		case topo.LinkPCI:
			k.text = fmt.Sprintf("PCI, %v", l.Rate)
		case topo.LinkSYS:
			k.text = fmt.Sprintf("between CPUs, %v", l.Rate)
		case topo.LinkNET:
			k.text = fmt.Sprintf("network, %g Gb/s", float64(l.Rate/units.Gbps))
		}
		if k.text != "" && !isOnDie(l) && !slices.Contains(kinds, k) {
			kinds = append(kinds, k)
		}
	}
	slices.SortFunc(kinds, func(a, b kind) int { return cmp.Or(cmp.Compare(a.t, b.t), cmp.Compare(b.rate, a.rate)) })
	var entries []entry
	for _, k := range kinds {
		e := entry{text: k.text, colour: colours[k.t], width: linkWidth(k.rate)}
		if k.t == topo.LinkSYS {
			e.style = dashed
		}
		if k.t == topo.LinkNVL && s.NVS < 0 {
			e.width *= arcWidth
		}
		entries = append(entries, e)
	}
	return entries
}

// isOnDie tells whether a link is no link, but of a device that has no PCI.
func isOnDie(l topo.Link) bool { return l.Type == topo.LinkPCI && l.Rate >= 1000*units.GBps }

const dashed = "stroke-dasharray:6 3"

// drawHosts frames the hosts of an NVLink domain, and draws its switches.
func (l *layout) drawHosts(c *canvas) {
	if len(l.hosts) > 1 {
		for i, h := range l.hosts {
			first, last := l.boxes[h.cpus[0].node], l.boxes[h.cpus[len(h.cpus)-1].node]
			r := l.rows[l.rowOf(h.cpus[0].node)]
			b := box{first.x - 14, r.cpus - 28, last.right() - first.x + 28, r.below - r.cpus + 36}
			c.Roundrect(b.x, b.y, b.w, b.h, 8, 8, "fill:"+hostFill+";stroke:#CCCCCC;stroke-width:1")
			c.writeLeft(b.x+10, b.y+18, 12, fmt.Sprintf("host %d", i), bold)
		}
	}
	if l.s.NVS < 0 {
		return
	}
	if len(l.rows) > 1 {
		x := l.rows[0].bar.x - gutter
		for _, r := range l.rows {
			c.Line(x, r.bar.y+r.bar.h/2, r.bar.x+6, r.bar.y+r.bar.h/2, stroke(green, 12, ""))
		}
		last := l.rows[len(l.rows)-1].bar
		c.Line(x, l.rows[0].bar.y+barDepth/2-6, x, last.y+barDepth/2+6, stroke(green, 12, ""))
	}
}

// drawLinks draws what joins the parts of a machine; faint puts NVLinks between
// GPUs back behind routes.
func (l *layout) drawLinks(c *canvas, faint bool) {
	s := l.s
	links := slices.SortedFunc(slices.Values(s.Links), func(a, b topo.Link) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
	for _, link := range links {
		from, to := l.boxes[link.From], l.boxes[link.To]
		width := linkWidth(link.Rate)
		if isOnDie(link) {
			width = 1
		}
		style := stroke(colours[link.Type], width, "")
		switch {
		case link.Type == topo.LinkNVL && link.To == s.NVS && s.Nodes[link.From].Type == topo.GPU:
			c.Line(from.centre(), from.bottom(), from.centre(), l.rows[l.rowOf(link.From)].bar.y, style)
		case link.Type == topo.LinkSYS && link.From < link.To:
			l.drawSYS(c, from, to, link.Rate)
		case link.Type == topo.LinkPCI && to.y > from.y: // downwards
			x := to.centre()
			if slices.ContainsFunc(s.Nodes[link.From].Out, func(l int) bool { return s.Links[l].To == link.To && s.Links[l].Type == topo.LinkC2C }) {
				x -= 10
			}
			c.Line(x, from.bottom(), x, to.y, style)
		case link.Type == topo.LinkC2C && to.y > from.y:
			c.Line(to.centre()+8, from.bottom(), to.centre()+8, to.y, style)
		case link.Type == topo.LinkNET && s.Nodes[link.To].Type == topo.NET:
			c.Line(to.centre(), to.bottom(), to.centre(), l.rows[l.rowOf(link.To)].below, style)
		}
	}
	for _, a := range l.arcs() {
		style := stroke(green, arcWidth*linkWidth(a.rate), "")
		if faint {
			style += ";opacity:0.3"
		}
		c.Path(a.path(0), style)
	}
}

// drawSYS draws the link between two CPUs: straight between neighbours, above
// those that stand between others.
func (l *layout) drawSYS(c *canvas, from, to box, rate units.Rate) {
	if from.x > to.x {
		from, to = to, from
	}
	style := stroke(colours[topo.LinkSYS], linkWidth(rate), dashed)
	if to.x-from.right() <= cpuGap {
		c.Line(from.right(), from.y+from.h/2, to.x, to.y+to.h/2, style)
		return
	}
	between := 0
	for _, cpu := range l.s.CPUs {
		if b := l.boxes[cpu]; b.y == from.y && b.x > from.x && b.x < to.x {
			between++
		}
	}
	rise := between * arcRise * 4 / 3 // a cubic curve reaches three quarters of that
	c.Path(fmt.Sprintf("M%d %d C%d %d %d %d %d %d", from.centre()+10, from.y, from.centre()+10, from.y-rise, to.centre()-10, to.y-rise, to.centre()-10, to.y), style)
}

// drawNodes draws the boxes of all parts.
func (l *layout) drawNodes(c *canvas) {
	s := l.s
	for _, h := range l.hosts {
		for _, t := range h.cpus {
			l.drawTree(c, t)
		}
	}
	if s.NVS < 0 {
		return
	}
	var total units.Rate
	for _, out := range s.Nodes[s.NVS].Out {
		total += s.Links[out].Rate
	}
	for _, r := range l.rows {
		c.Roundrect(r.bar.x, r.bar.y, r.bar.w, r.bar.h, 6, 6, "fill:"+green)
		text := fmt.Sprintf("NVSwitch, %.1f TB/s in all", float64(total/units.GBps)/1000)
		if r.bar.w < 260 {
			text = "NVSwitch"
		}
		c.write(r.bar.centre(), r.bar.y+r.bar.h/2+5, 14, text, bold+";fill:white")
	}
}

func (l *layout) drawTree(c *canvas, t *tree) {
	n := l.s.Nodes[t.node]
	b := l.boxes[t.node]
	switch n.Type {
	case topo.CPU:
		c.frame(b, cpuFill, orange, cpuName(n), "")
	case topo.PCI:
		c.frame(b, switchFill, grey, "PCI switch", "")
	case topo.GPU:
		c.frame(b, gpuFill, green, fmt.Sprintf("GPU %d", slices.Index(l.s.GPUs, t.node)), shortBus(n.Name))
	}
	if len(t.ports) > 1 {
		c.Roundrect(b.x-3, b.y-3, b.w+6, b.h+6, 6, 6, "fill:white;stroke:"+blue+";stroke-width:1")
	}
	for _, net := range t.ports {
		rate := l.s.Links[l.s.Nodes[net].Out[0]].Rate
		c.frame(l.boxes[net], nicFill, blue, fit(l.s.Nodes[net].Name), fmt.Sprintf("%gG", float64(rate/units.Gbps)))
	}
	for _, kid := range t.kids {
		l.drawTree(c, kid)
	}
}

func cpuName(n topo.Node) string {
	maker := map[string]string{"GenuineIntel": "Intel", "AuthenticAMD": "AMD", "": "Arm"}[n.Vendor]
	if maker == "" {
		maker = n.Vendor
	}
	return "CPU " + n.Name + " · " + maker
}

// shortBus leaves a PCI domain of zeros out of a bus id.
func shortBus(id string) string { return strings.TrimPrefix(id, "0000:") }

// fit shortens a name to what a box has room for.
func fit(name string) string {
	if r := []rune(name); len(r) > 11 {
		return string(r[:10]) + "…"
	}
	return name
}
