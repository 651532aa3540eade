package figure

import (
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"tutti/experiments/rows"
	"tutti/model/units"
)

// Series is one way of a call by size. A limit is dashed.
type Series struct {
	Name  string
	Rows  []rows.Row
	Limit bool
}

// WriteTimes draws time and, beside it, bus bandwidth by size. The file appears
// under its name only when it is whole.
func WriteTimes(path, title string, lines []Series) error {
	canvas := newCanvas(format(path), 2*panelWidth, panelHeight+titleHeight)
	area := draw.New(canvas)
	area.FillPolygon(color.White, []vg.Point{area.Min, {X: area.Max.X, Y: area.Min.Y}, area.Max, {X: area.Min.X, Y: area.Max.Y}})
	area.FillText(style(13), vg.Point{X: gap, Y: area.Max.Y - titleHeight + gap}, title)
	s := span{least: math.Inf(1)}
	for _, l := range lines {
		for _, r := range l.Rows {
			s.least, s.most = min(s.least, float64(r.Bytes)), max(s.most, float64(r.Bytes))
		}
	}
	time, bandwidth := s.blank(), s.blank()
	time.Y.Scale, time.Y.Tick.Marker, time.Y.Label.Text = plot.LogScale{}, powerTicks{}, "time (µs)"
	bandwidth.Y.Min, bandwidth.Y.Tick.Marker, bandwidth.Y.Label.Text = 0, roundTicks{}, "bus bandwidth (GB/s)"
	for _, p := range []struct {
		plot *plot.Plot
		y    func(rows.Row) float64
	}{
		{time, func(r rows.Row) float64 { return r.Time.Microseconds() }},
		{bandwidth, func(r rows.Row) float64 { return float64(r.BusBW() / units.GBps) }},
	} {
		p.plot.X.Label.Text = "size"
		for i, l := range lines {
			xy := make(plotter.XYs, len(l.Rows))
			for j, r := range l.Rows {
				xy[j] = plotter.XY{X: float64(r.Bytes), Y: p.y(r)}
			}
			line, dots, err := plotter.NewLinePoints(xy)
			if err != nil {
				return fmt.Errorf("figure %s: %w", path, err)
			}
			line.Color, line.Width = distinct[i%len(distinct)], 1.4
			dots.Color, dots.Radius, dots.Shape = line.Color, 1.5, draw.CircleGlyph{}
			if l.Limit {
				line.Color, line.Dashes = color.Gray{110}, []vg.Length{3, 2}
				dots.Radius = 0
			}
			p.plot.Add(line, dots)
			if p.plot == time { // one legend for both
				time.Legend.Add(l.Name, line, dots)
			}
		}
	}
	time.Legend.TextStyle, time.Legend.Top, time.Legend.Left = style(9), true, true
	time.Legend.XOffs, time.Legend.YOffs, time.Legend.Padding = 5, -5, 1.5
	time.Y.Min, time.Y.Max = math.Pow(10, math.Floor(math.Log10(time.Y.Min))), math.Pow(10, math.Ceil(math.Log10(time.Y.Max)))
	bandwidth.Y.Max *= 1.06
	tiles := draw.Tiles{Rows: 1, Cols: 2, PadTop: titleHeight, PadBottom: gap, PadLeft: gap, PadRight: 2 * gap, PadX: 2 * gap}
	for i, c := range plot.Align([][]*plot.Plot{{time, bandwidth}}, tiles, area)[0] {
		[]*plot.Plot{time, bandwidth}[i].Draw(c)
	}
	return write(path, canvas)
}
