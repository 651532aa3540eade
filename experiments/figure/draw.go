package figure

import (
	"image/color"
	"io"
	"math"
	"tutti/model/units"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// columns is how many panels stand side by side at the most.
const columns = 4

// drawPanels draws panel beside panel on common scales, with a dashed line at
// each of some sizes.
func drawPanels(title string, all []panel, grouped bool, format string, by axis, marks []units.Bytes) (io.WriterTo, error) {
	least, low, most, high := math.Inf(1), math.Inf(1), 0.0, 0.0
	for _, p := range all {
		for _, l := range p.lines {
			for _, r := range l.rows {
				least, most = min(least, by.x(r)), max(most, by.x(r))
				low, high = min(low, by.y(r)), max(high, by.y(r))
			}
		}
	}
	if least == most { // a single place: some room around it
		least, most = least/2, most*2
	}
	bottom, top := by.scale(low, high)
	cols := min(len(all), columns)
	plots := make([][]*plot.Plot, (len(all)+cols-1)/cols)
	for i, p := range all {
		drawn, err := p.draw(by, grouped)
		if err != nil {
			return nil, err
		}
		if i%cols == 0 {
			drawn.Y.Label.Text = by.yLabel
			plots[i/cols] = make([]*plot.Plot, cols)
		}
		drawn.X.Min, drawn.X.Max = least, most
		drawn.Y.Min, drawn.Y.Max = bottom, top
		for _, size := range marks {
			line, err := plotter.NewLine(plotter.XYs{{X: float64(size), Y: bottom}, {X: float64(size), Y: top}})
			if err != nil {
				return nil, err
			}
			line.Color, line.Width, line.Dashes = color.Gray{110}, 0.8, []vg.Length{3, 2}
			drawn.Add(line)
		}
		plots[i/cols][i%cols] = drawn
	}
	width := vg.Length(cols) * panelWidth
	if len(all) == 1 {
		width = singleWidth
	}
	between := 2 * gap
	head := titleHeight
	if len(all) > 1 {
		head += nameHeight
		between += nameHeight
	}
	canvas, area := sheet(format, title, width, vg.Length(len(plots))*(panelHeight+between)-between+head)
	tiles := draw.Tiles{Rows: len(plots), Cols: cols, PadTop: head, PadBottom: gap, PadLeft: gap, PadRight: gap, PadX: 2 * gap, PadY: between}
	for row, line := range plot.Align(plots, tiles, area) {
		for col, c := range line {
			drawn := plots[row][col]
			if drawn == nil {
				continue
			}
			drawn.Draw(c)
			words := all[row*cols+col].title
			name := fit(style(11), words, c.Max.X-c.Min.X)
			name.XAlign = text.XCenter
			data := drawn.DataCanvas(c)
			c.FillText(name, vg.Point{X: data.Center().X, Y: c.Max.Y + gap/2}, words)
		}
	}
	return canvas, nil
}

// draw plots the lines of a panel.
func (p panel) draw(by axis, grouped bool) (*plot.Plot, error) {
	out := plot.New()
	for _, axis := range []*plot.Axis{&out.X, &out.Y} {
		axis.Padding, axis.Width = 0, 0.6
		axis.Label.TextStyle.Font, axis.Tick.Label.Font = style(10).Font, style(9).Font
	}
	out.X.Scale, out.X.Tick.Marker, out.X.Label.Text = plot.LogScale{}, by.xTicks, by.xLabel
	out.Y.Tick.Marker = by.yTicks
	if by.logY {
		out.Y.Scale = plot.LogScale{}
	}
	out.Legend.TextStyle, out.Legend.Top, out.Legend.Left = style(9), true, true
	out.Legend.XOffs, out.Legend.YOffs, out.Legend.Padding = 5, -7, 1.5
	out.Add(gridLines())
	for i, l := range p.lines {
		points := make(plotter.XYs, len(l.rows))
		for j, r := range l.rows {
			points[j] = plotter.XY{X: by.x(r), Y: by.y(r)}
		}
		drawn, dots, err := plotter.NewLinePoints(points)
		if err != nil {
			return nil, err
		}
		colour := distinct[i%len(distinct)]
		if grouped {
			colour = ordered[int(l.shade*float64(len(ordered)-1))]
		}
		drawn.Color, drawn.Width = colour, 1.4
		if !grouped && i >= len(distinct) { // colours come round again
			drawn.Dashes = []vg.Length{4, 2}
		}
		dots.Color, dots.Radius, dots.Shape = colour, 1.8, draw.CircleGlyph{}
		out.Add(drawn, dots)
		out.Legend.Add(l.name, drawn, dots)
	}
	return out, nil
}
