package figure

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"tutti/experiments/compare"
	"tutti/model/units"
	"tutti/topo"
)

// Measures of a figure that compares: columns of panels, each with one of errors
// below it.
const (
	comparedColumns = 3
	comparedWidth   = 7.6 * vg.Centimeter
	comparedHeight  = 6.4 * vg.Centimeter
	errorHeight     = 3.0 * vg.Centimeter
)

// WriteComparison draws measured points, predicted lines and what the links
// allow, a panel for each series, with the errors below. The file appears under
// its name only when it is whole.
func WriteComparison(path string, c *compare.Comparison) error {
	canvas, err := comparison(c, format(path))
	if err != nil {
		return fmt.Errorf("figure %s: %w", path, err)
	}
	return write(path, canvas)
}

func comparison(c *compare.Comparison, format string) (io.WriterTo, error) {
	series := c.Series()
	columns := min(comparedColumns, len(series))
	lines := (len(series) + columns - 1) / columns
	height := comparedHeight + errorHeight
	title := fmt.Sprintf("%v on %s, measured and predicted", series[0].Like.Collective, topo.ShortName(series[0].Like.Machine))
	canvas, area := sheet(format, title, vg.Length(columns)*comparedWidth, vg.Length(lines)*height+titleHeight)
	span := newSpan(c)
	for i, s := range series {
		left := area.Min.X + vg.Length(i%columns)*comparedWidth
		top := area.Max.Y - titleHeight - vg.Length(i/columns)*height
		box := func(from, high vg.Length) draw.Canvas {
			return draw.Canvas{Canvas: area.Canvas, Rectangle: vg.Rectangle{
				Min: vg.Point{X: left + gap, Y: top - from - high + gap/2}, Max: vg.Point{X: left + comparedWidth - gap, Y: top - from},
			}}
		}
		main, err := span.bandwidth(c, s, i == 0)
		if err != nil {
			return nil, err
		}
		errors, err := span.errors(c, s)
		if err != nil {
			return nil, err
		}
		data := drawAligned(main, box(0, comparedHeight), errors, box(comparedHeight, errorHeight))
		area.FillText(fit(style(10.5), s.Name(), data.Size().X), vg.Point{X: data.Min.X, Y: data.Max.Y + 1.6*gap}, s.Name())
		area.FillText(style(8), vg.Point{X: data.Min.X, Y: data.Max.Y + gap/2}, off(c, s))
	}
	return canvas, nil
}

// off says how far the sources are off on a series.
func off(c *compare.Comparison, s compare.Series) string {
	var words []string
	for i, source := range c.Sources {
		if summary := compare.Summarise(s.Lines, i); summary.Rows > 0 {
			words = append(words, fmt.Sprintf("%s %.1f %%", source, 100*summary.Median))
		}
	}
	return "median error: " + strings.Join(words, ", ")
}

// drawAligned draws one plot above another so that their data begin at the same
// place, and returns where those of the upper one are.
func drawAligned(a *plot.Plot, above draw.Canvas, b *plot.Plot, below draw.Canvas) vg.Rectangle {
	x, y := a.DataCanvas(above), b.DataCanvas(below)
	from, to := max(x.Min.X, y.Min.X), min(x.Max.X, y.Max.X)
	a.Draw(draw.Crop(above, from-x.Min.X, to-x.Max.X, 0, 0))
	b.Draw(draw.Crop(below, from-y.Min.X, to-y.Max.X, 0, 0))
	return a.DataCanvas(draw.Crop(above, from-x.Min.X, to-x.Max.X, 0, 0)).Rectangle
}

// span is what the axes of all panels reach over.
type span struct {
	least, most, low, high, worst float64
}

func newSpan(c *compare.Comparison) span {
	s := span{least: math.Inf(1), low: math.Inf(1), worst: .1}
	for _, l := range c.Lines {
		s.least, s.most = min(s.least, float64(l.Bytes)), max(s.most, float64(l.Bytes))
		s.low, s.high = min(s.low, float64(l.BusBW()/units.GBps)), max(s.high, float64(max(l.Limit, l.BusBW())/units.GBps))
		for i := range c.Sources {
			if l.Predicted[i] > 0 {
				s.worst = max(s.worst, min(.5, math.Abs(l.Error(i))))
			}
		}
	}
	if s.least == s.most {
		s.least, s.most = s.least/2, s.most*2
	}
	s.worst = math.Ceil(s.worst*20) / 20
	return s
}

// blank returns a plot with our axes and grid, and sizes along it.
func (s span) blank() *plot.Plot {
	p := plot.New()
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Padding, axis.Width = 0, 0.6
		axis.Label.TextStyle.Font, axis.Tick.Label.Font = style(9).Font, style(8).Font
	}
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, byteTicks{}
	p.X.Min, p.X.Max = s.least, s.most
	p.Add(gridLines())
	return p
}

// bandwidth draws bus bandwidth: measured, predicted, and the links' limit.
func (s span) bandwidth(c *compare.Comparison, series compare.Series, legend bool) (*plot.Plot, error) {
	p := s.blank()
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, powerTicks{}
	p.Y.Min, p.Y.Max = math.Pow(10, math.Floor(math.Log10(s.low))), s.high*2
	p.Y.Label.Text = "bus bandwidth (GB/s)"
	points := func(lines []compare.Line, of func(compare.Line) float64) plotter.XYs {
		xy := make(plotter.XYs, len(lines))
		for i, l := range lines {
			xy[i] = plotter.XY{X: float64(l.Bytes), Y: of(l)}
		}
		return xy
	}
	limit, err := plotter.NewLine(points(series.Lines, func(l compare.Line) float64 { return float64(l.Limit / units.GBps) }))
	if err != nil {
		return nil, err
	}
	limit.Color, limit.Width, limit.Dashes = color.Gray{120}, 1, []vg.Length{3, 2}
	p.Add(limit)
	drawn := []plot.Thumbnailer{limit}
	names := []string{"links' limit"}
	for i, source := range c.Sources {
		line := &plotter.Line{XYs: points(compare.Told(series.Lines, i), func(l compare.Line) float64 {
			return float64(l.BusBW()/units.GBps) / (1 + l.Error(i))
		})}
		line.Color, line.Width = distinct[i], 1.4
		if len(line.XYs) > 0 {
			p.Add(line)
		}
		drawn, names = append(drawn, line), append(names, source)
	}
	dots, err := plotter.NewScatter(points(series.Lines, func(l compare.Line) float64 { return float64(l.BusBW() / units.GBps) }))
	if err != nil {
		return nil, err
	}
	dots.Color, dots.Radius, dots.Shape = color.Gray{30}, 2, draw.RingGlyph{}
	p.Add(dots)
	if legend {
		p.Legend.TextStyle, p.Legend.Left, p.Legend.Top = style(8), false, false
		p.Legend.XOffs, p.Legend.YOffs = -5, 5
		p.Legend.Add("measured", dots)
		for i, d := range drawn {
			p.Legend.Add(names[i], d)
		}
	}
	return p, nil
}

// errors draws each source's error by size, within which 5 % either way is
// shaded.
func (s span) errors(c *compare.Comparison, series compare.Series) (*plot.Plot, error) {
	p := s.blank()
	p.Y.Min, p.Y.Max = -100*s.worst, 100*s.worst
	p.Y.Tick.Marker = roundTicks{}
	p.X.Label.Text, p.Y.Label.Text = "size", "error (%)"
	band, err := plotter.NewPolygon(plotter.XYs{{X: s.least, Y: -5}, {X: s.most, Y: -5}, {X: s.most, Y: 5}, {X: s.least, Y: 5}})
	if err != nil {
		return nil, err
	}
	band.Color, band.Width = color.NRGBA{0, 0, 0, 18}, 0
	p.Add(band)
	for i := range c.Sources {
		told := compare.Told(series.Lines, i)
		if len(told) == 0 {
			continue
		}
		xy := make(plotter.XYs, len(told))
		for j, l := range told {
			xy[j] = plotter.XY{X: float64(l.Bytes), Y: 100 * max(-s.worst, min(s.worst, l.Error(i)))}
		}
		line, dots, err := plotter.NewLinePoints(xy)
		if err != nil {
			return nil, err
		}
		line.Color, line.Width = distinct[i], 1
		dots.Color, dots.Radius, dots.Shape = distinct[i], 1.4, draw.CircleGlyph{}
		p.Add(line, dots)
	}
	return p, nil
}
