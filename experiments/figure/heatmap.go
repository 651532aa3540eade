package figure

import (
	"cmp"
	"fmt"
	"image/color"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"tutti/experiments/traffic"
	"tutti/model/units"
)

// Measures of a heat map.
const (
	mapWidth   = 24 * vg.Centimeter
	mapLeft    = 2.6 * vg.Centimeter // of the cells
	mapRight   = 5 * vg.Centimeter
	mapHead    = 2.2 * vg.Centimeter
	mapFoot    = 1.9 * vg.Centimeter
	bandGap    = 0.14 * vg.Centimeter
	rowLeast   = 0.14 * vg.Centimeter
	bandLeast  = 0.62 * vg.Centimeter
	machineGap = 2
	wordsLeast = 0.72 * vg.Centimeter // of a cell, to have its figure written into it
	// sideBySide is up to how many links of a kind stand in one row, machine by
	// machine.
	sideBySide = 64
)

// WriteHeatMap draws how busy the links of a cluster were: a band for each kind
// of link, with the machines from left to right. Where there are few, the links
// of a machine stand side by side, each with its figure; else below each other.
// The busiest link has a frame. The file appears under its name only when it is
// whole.
func WriteHeatMap(path, title, subtitle string, m traffic.Map) error {
	flat := true
	for _, b := range m.Bands {
		flat = flat && len(b.Busy)*len(b.Busy[0]) <= sideBySide
	}
	height := mapHead + mapFoot
	for _, b := range m.Bands {
		height += bandHeight(b, flat) + bandGap
	}
	canvas, c := sheet(format(path), title, mapWidth, height)
	c.FillText(fit(style(9), subtitle, mapWidth-2*gap), vg.Point{X: gap, Y: height - 1.3*vg.Centimeter}, subtitle)
	top := height - mapHead
	busiest := slices.MaxFunc(m.Bands, func(a, b traffic.Band) int { return cmp.Compare(a.Busiest.Busy, b.Busiest.Busy) })
	drawFigures(c, top+.25*vg.Centimeter, "busiest", "GB/s, and of what", "mean")
	for _, b := range m.Bands {
		h := bandHeight(b, flat)
		drawBand(c, b, m.Nodes, flat, top-h, h, b.Kind == busiest.Kind)
		top -= h + bandGap
	}
	drawNodes(c, m.Nodes, top)
	drawScale(c)
	return write(path, canvas)
}

func bandHeight(b traffic.Band, flat bool) vg.Length {
	if flat {
		return bandLeast
	}
	return max(bandLeast, vg.Length(len(b.Busy))*rowLeast)
}

// cellsWidth is that of all cells together.
const cellsWidth = mapWidth - mapLeft - mapRight

// drawBand draws the cells of a band, from the given height up, its name and its
// figures. The busiest of its cells gets a frame if it is to be marked.
func drawBand(c draw.Canvas, b traffic.Band, nodes int, flat bool, bottom, height vg.Length, marked bool) {
	box(c, color.Gray{246}, mapLeft, bottom, mapLeft+cellsWidth, bottom+height)
	rows, node := vg.Length(len(b.Busy)), cellsWidth/vg.Length(nodes)
	place := func(row, from, to int) (left, low, right, high vg.Length) {
		at := vg.Length(row)
		left, right = mapLeft+vg.Length(from*b.Span)*node, mapLeft+vg.Length(min(to*b.Span, nodes))*node
		if !flat {
			return left, bottom + height*(rows-1-at)/rows, right, bottom + height*(rows-at)/rows
		}
		each := (right - left - machineGap) / rows
		return left + each*at, bottom, left + each*(at+1) - .5, bottom + height
	}
	for i, row := range b.Busy {
		for from := 0; from < len(row); {
			to := from + 1
			for !flat && to < len(row) && shade(row[to]) == shade(row[from]) { // cells that look the same are one
				to++
			}
			if busy := row[from]; !math.IsNaN(busy) {
				left, low, right, high := place(i, from, to)
				box(c, shade(busy), left, low, right, high)
				if flat && right-left >= wordsLeast {
					label := centred(8)
					if busy > .55 {
						label.Color = color.White
					}
					c.FillText(label, vg.Point{X: (left + right) / 2, Y: (low + high) / 2}, percent(busy))
				}
			}
			from = to
		}
	}
	for i, row := range b.Busy {
		if at := slices.Index(row, b.Busiest.Busy); marked && at >= 0 {
			marked = false
			left, low, right, high := place(i, at, at+1)
			outline(c, left, low, max(right, left+3), high)
		}
	}
	name := centred(10)
	name.XAlign = text.XRight
	c.FillText(name, vg.Point{X: mapLeft - 6, Y: bottom + height/2}, b.Kind)
	drawFigures(c, bottom+height/2, percent(b.Busiest.Busy),
		fmt.Sprintf("%.4g of %.4g", float64(b.Busiest.Rate/units.GBps), float64(b.Busiest.Capacity/units.GBps)), percent(b.Mean))
}

// drawFigures writes what stands beside the cells, or the heads of its columns.
func drawFigures(c draw.Canvas, y vg.Length, busiest, rate, mean string) {
	label := centred(8.5)
	label.XAlign = text.XRight
	for i, words := range []string{busiest, rate, mean} {
		ends := [3]vg.Length{1.3, 3.9, 4.9}[i]
		c.FillText(label, vg.Point{X: mapLeft + cellsWidth + ends*vg.Centimeter, Y: y}, words)
	}
}

// centred returns text that is written around a point.
func centred(size vg.Length) text.Style {
	s := style(size)
	s.XAlign, s.YAlign = text.XCenter, text.YCenter
	return s
}

func percent(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }

// drawNodes numbers the machines below the cells.
func drawNodes(c draw.Canvas, nodes int, top vg.Length) {
	label := centred(9)
	label.YAlign = text.YTop
	every := 1
	for nodes/every > 16 {
		every *= 2
	}
	for n := 0; n < nodes; n += every {
		x := mapLeft + cellsWidth*(vg.Length(n)+.5)/vg.Length(nodes)
		c.StrokeLine2(draw.LineStyle{Color: color.Gray{90}, Width: .6}, x, top+bandGap, x, top+bandGap-3)
		c.FillText(label, vg.Point{X: x, Y: top + bandGap - 4}, strconv.Itoa(n))
	}
	label.XAlign = text.XRight
	c.FillText(label, vg.Point{X: mapLeft - 6, Y: top + bandGap - 4}, "node")
}

// drawScale draws what the colours stand for.
func drawScale(c draw.Canvas) {
	const steps, low, high = 100, .5 * vg.Centimeter, .75 * vg.Centimeter
	const width = 8 * vg.Centimeter
	for i := range steps {
		box(c, shade((float64(i)+.5)/steps), mapLeft+width*vg.Length(i)/steps, low, mapLeft+width*vg.Length(i+1)/steps+.2, high)
	}
	label := centred(8.5)
	label.XAlign = text.XLeft
	c.FillText(label, vg.Point{X: mapLeft + width + 14, Y: (low + high) / 2}, "share of the time that a link is busy; the busiest has a frame, those that carry nothing are blank")
	label.XAlign, label.YAlign = text.XCenter, text.YTop
	for i := range 5 {
		share := float64(i) / 4
		c.FillText(label, vg.Point{X: mapLeft + width*vg.Length(share), Y: low - 2}, percent(share))
	}
}

// shade colours a share from next to nothing to all of the time.
func shade(share float64) color.NRGBA {
	if math.IsNaN(share) {
		return color.NRGBA{}
	}
	ramp := append([]color.NRGBA{{0xfb, 0xee, 0xd5, 255}}, ordered...)
	at := min(1, max(0, math.Round(share*200)/200)) * float64(len(ramp)-1)
	i := min(int(at), len(ramp)-2)
	between := func(a, b uint8) uint8 {
		return uint8(math.Round(float64(a) + float64((at-float64(i))*(float64(b)-float64(a)))))
	}
	a, b := ramp[i], ramp[i+1]
	return color.NRGBA{between(a.R, b.R), between(a.G, b.G), between(a.B, b.B), 255}
}

func outline(c draw.Canvas, left, bottom, right, top vg.Length) {
	for _, line := range []draw.LineStyle{{Color: color.White, Width: 3}, {Color: distinct[2], Width: 1.8}} {
		c.StrokeLines(line, []vg.Point{
			{X: left, Y: bottom}, {X: right, Y: bottom}, {X: right, Y: top}, {X: left, Y: top}, {X: left, Y: bottom}, {X: right, Y: bottom},
		})
	}
}
