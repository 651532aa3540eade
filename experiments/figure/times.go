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

// Group is the series of one call.
type Group struct {
	Title string
	Lines []Series
}

// WriteTimes draws time and, beside it, bus bandwidth by size. The file appears
// under its name only when it is whole.
func WriteTimes(path, title string, lines []Series) error {
	return writeTimes(path, title, []Group{{"", lines}}, draw.Tiles{Rows: 1, Cols: 2, PadX: 2 * gap}, panelWidth, panelHeight)
}

// groupColumns is how many groups stand side by side.
const groupColumns = 3

// WriteTimesOf draws time and, below it, bus bandwidth by size for each group.
func WriteTimesOf(path, title string, groups []Group) error {
	columns := min(groupColumns, len(groups))
	tiles := draw.Tiles{Rows: 2 * ((len(groups) + columns - 1) / columns), Cols: columns, PadTop: nameHeight, PadX: gap, PadY: 2 * gap}
	return writeTimes(path, title, groups, tiles, 0.95*panelWidth, 0.75*panelHeight)
}

// writeTimes draws the two panels of each group, in one row or one above the other.
func writeTimes(path, title string, groups []Group, tiles draw.Tiles, width, height vg.Length) error {
	canvas, area := sheet(format(path), title, vg.Length(tiles.Cols)*width, vg.Length(tiles.Rows)*height+titleHeight)
	tiles.PadTop += titleHeight
	tiles.PadBottom, tiles.PadLeft, tiles.PadRight = gap, gap, 2*gap
	panels := make([][]*plot.Plot, tiles.Rows)
	for row := range panels {
		panels[row] = make([]*plot.Plot, tiles.Cols)
	}
	for i, g := range groups {
		both, err := timePanels(g, i == 0)
		if err != nil {
			return fmt.Errorf("figure %s: %w", path, err)
		}
		if tiles.Rows == 1 {
			panels[0] = both[:]
			continue
		}
		panels[i/tiles.Cols*2][i%tiles.Cols], panels[i/tiles.Cols*2+1][i%tiles.Cols] = both[0], both[1]
	}
	for row, canvases := range plot.Align(panels, tiles, area) {
		for column, c := range canvases {
			if p := panels[row][column]; p != nil {
				p.Draw(c)
			}
		}
	}
	return write(path, canvas)
}

// timePanels returns a group's times and bandwidths.
func timePanels(g Group, legend bool) (both [2]*plot.Plot, err error) {
	s := span{least: math.Inf(1)}
	for _, l := range g.Lines {
		for _, r := range l.Rows {
			s.least, s.most = min(s.least, float64(r.Bytes)), max(s.most, float64(r.Bytes))
		}
	}
	time, bandwidth := s.blank(), s.blank()
	time.Y.Scale, time.Y.Tick.Marker, time.Y.Label.Text = plot.LogScale{}, powerTicks{}, "time (µs)"
	bandwidth.Y.Min, bandwidth.Y.Tick.Marker, bandwidth.Y.Label.Text = 0, roundTicks{}, "bus bandwidth (GB/s)"
	time.Title.Text, time.Title.TextStyle = g.Title, style(11)
	for _, p := range []struct {
		plot *plot.Plot
		y    func(rows.Row) float64
	}{
		{time, func(r rows.Row) float64 { return r.Time.Microseconds() }},
		{bandwidth, func(r rows.Row) float64 { return float64(r.BusBW() / units.GBps) }},
	} {
		p.plot.X.Label.Text = "size"
		for i, l := range g.Lines {
			xy := make(plotter.XYs, len(l.Rows))
			for j, r := range l.Rows {
				xy[j] = plotter.XY{X: float64(r.Bytes), Y: p.y(r)}
			}
			line, dots, err := plotter.NewLinePoints(xy)
			if err != nil {
				return both, err
			}
			line.Color, line.Width = distinct[i%len(distinct)], 1.4
			dots.Color, dots.Radius, dots.Shape = line.Color, 1.5, draw.CircleGlyph{}
			if l.Limit {
				line.Color, line.Dashes = color.Gray{110}, []vg.Length{3, 2}
				dots.Radius = 0
			}
			p.plot.Add(line, dots)
			if p.plot == time && legend { // one for all
				time.Legend.Add(l.Name, line, dots)
			}
		}
	}
	time.Legend.TextStyle, time.Legend.Top, time.Legend.Left = style(9), true, true
	time.Legend.XOffs, time.Legend.YOffs, time.Legend.Padding = 5, -5, 1.5
	time.Y.Min, time.Y.Max = math.Pow(10, math.Floor(math.Log10(time.Y.Min))), math.Pow(10, math.Ceil(math.Log10(time.Y.Max)))
	bandwidth.Y.Max *= 1.06
	return [2]*plot.Plot{time, bandwidth}, nil
}
