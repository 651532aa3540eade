package figure

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"slices"
	"sync"
	"time"

	"codeberg.org/go-pdf/fpdf"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgpdf"
	"gonum.org/v1/plot/vg/vgsvg"

	"tutti/experiments/rows"
	"tutti/model"
	"tutti/model/units"
)

// Measures of a figure. One panel alone is drawn wider.
const (
	panelWidth  = 8.4 * vg.Centimeter
	singleWidth = 14 * vg.Centimeter
	panelHeight = 8.4 * vg.Centimeter
	titleHeight = 1.0 * vg.Centimeter
	nameHeight  = 0.6 * vg.Centimeter // of a panel's name, when there are several
	gap         = 0.35 * vg.Centimeter
	dpi         = 200
)

// ordered runs from light to dark, for lines that have an order; distinct tells
// lines apart that have none (Okabe and Ito, safe for the colour-blind).
var (
	ordered = []color.NRGBA{
		{0xf0, 0xa0, 0x30, 255}, {0xe0, 0x6a, 0x3c, 255}, {0xc2, 0x3b, 0x5e, 255},
		{0x8a, 0x22, 0x7a, 255}, {0x4c, 0x1d, 0x7f, 255}, {0x14, 0x10, 0x50, 255},
	}
	distinct = []color.NRGBA{
		{0x00, 0x72, 0xb2, 255}, {0xd5, 0x5e, 0x00, 255}, {0x00, 0x9e, 0x73, 255},
		{0xcc, 0x79, 0xa7, 255}, {0xe6, 0x9f, 0x00, 255}, {0x56, 0xb4, 0xe9, 255},
		{0x20, 0x20, 0x20, 255}, {0xc8, 0xb4, 0x00, 255},
	}
)

// panel is one plot: the lines of an algorithm by cluster size or, where there
// is one cluster only, the lines of all algorithms.
type panel struct {
	title string
	lines []line
}

type line struct {
	name string
	rows []rows.Row
}

// panels sorts the rows, in their order, into panels and lines: a panel for each
// algorithm with a line for each cluster, or a single one where there is one
// cluster or one way for each size. Protocols are told apart where a size was
// run over several.
func panels(list []rows.Row) (out []panel, clusters bool) {
	clusters = kinds(list, func(r rows.Row) rows.Row { return rows.Row{Ranks: r.Ranks} }) > 1
	ways := kinds(list, func(r rows.Row) rows.Row { return rows.Row{Ranks: r.Ranks, Bytes: r.Bytes} }) < len(list)
	protocols := kinds(list, func(r rows.Row) rows.Row { return rows.Row{Ranks: r.Ranks, Bytes: r.Bytes, Algorithm: r.Algorithm} }) < len(list)
	for _, r := range list {
		way := r.Algorithm.String()
		if clusters && r.Algorithm == model.NVLSTree {
			way = model.NVLS.String() // one panel for both, as no cluster has both
		}
		if protocols {
			way += " " + r.Protocol.String()
		}
		title, name := "", way
		if clusters {
			name = fmt.Sprintf("%d GPUs", r.Ranks)
			if ways {
				title = way
			}
		}
		p := find(&out, func(p panel) bool { return p.title == title }, panel{title: title})
		l := find(&p.lines, func(l line) bool { return l.name == name }, line{name: name})
		l.rows = append(l.rows, r)
	}
	return out, clusters
}

// kinds counts how many rows differ in their key.
func kinds(list []rows.Row, key func(rows.Row) rows.Row) int {
	seen := map[rows.Row]bool{}
	for _, r := range list {
		seen[key(r)] = true
	}
	return len(seen)
}

// find returns the element that fits, appending fresh if there is none.
func find[T any](list *[]T, fits func(T) bool, fresh T) *T {
	i := slices.IndexFunc(*list, fits)
	if i < 0 {
		i = len(*list)
		*list = append(*list, fresh)
	}
	return &(*list)[i]
}

// busBandwidth draws bus bandwidth against size, panel beside panel on common
// axes, with a dashed line at each of some sizes.
func busBandwidth(list []rows.Row, format string, marks []units.Bytes) (io.WriterTo, error) {
	all, clusters := panels(list)
	plots := [][]*plot.Plot{make([]*plot.Plot, len(all))}
	least, most, top := float64(list[0].Bytes), float64(list[0].Bytes), 0.0
	for _, r := range list {
		least, most = min(least, float64(r.Bytes)), max(most, float64(r.Bytes))
		top = max(top, float64(r.BusBW()/units.GBps))
	}
	if least == most { // a single size: some room around it
		least, most = least/2, most*2
	}
	if top == 0 { // a single rank has no bus
		top = 1
	}
	for i, p := range all {
		drawn, err := p.draw(clusters)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			drawn.Y.Label.Text = "bus bandwidth (GB/s)"
		}
		drawn.X.Min, drawn.X.Max = least, most
		drawn.Y.Min, drawn.Y.Max = 0, top*1.06
		for _, size := range marks {
			line, err := plotter.NewLine(plotter.XYs{{X: float64(size), Y: 0}, {X: float64(size), Y: top * 1.06}})
			if err != nil {
				return nil, err
			}
			line.Color, line.Width, line.Dashes = color.Gray{110}, 0.8, []vg.Length{3, 2}
			drawn.Add(line)
		}
		plots[0][i] = drawn
	}
	width := vg.Length(len(all)) * panelWidth
	if len(all) == 1 {
		width = singleWidth
	}
	head := titleHeight
	if len(all) > 1 {
		head += nameHeight
	}
	canvas := newCanvas(format, width, panelHeight+head)
	area := draw.New(canvas)
	area.FillPolygon(color.White, []vg.Point{area.Min, {X: area.Max.X, Y: area.Min.Y}, area.Max, {X: area.Min.X, Y: area.Max.Y}})
	area.FillText(style(13), vg.Point{X: gap, Y: area.Max.Y - titleHeight + gap}, title(list))
	tiles := draw.Tiles{Rows: 1, Cols: len(all), PadTop: head, PadBottom: gap, PadLeft: gap, PadRight: gap, PadX: 2 * gap}
	for i, c := range plot.Align(plots, tiles, area)[0] {
		plots[0][i].Draw(c)
		name := style(11)
		name.XAlign = text.XCenter
		data := plots[0][i].DataCanvas(c)
		c.FillText(name, vg.Point{X: data.Center().X, Y: c.Max.Y + gap/2}, all[i].title)
	}
	return canvas, nil
}

// title says what all rows have in common.
func title(list []rows.Row) string {
	first := list[0]
	text := first.Collective.String()
	if kinds(list, func(r rows.Row) rows.Row { return rows.Row{Algorithm: r.Algorithm} }) == 1 {
		text += " by " + first.Algorithm.String()
	}
	text += " on "
	if kinds(list, func(r rows.Row) rows.Row { return rows.Row{Ranks: r.Ranks} }) == 1 {
		text += fmt.Sprintf("%d GPUs of ", first.Ranks)
	}
	text += first.Machine
	switch first.Source {
	case "sim":
		text += ", simulated"
	case "model":
		text += ", modelled"
	}
	return text
}

// canvas is what gonum/plot draws on and what is then written.
type canvas interface {
	vg.CanvasSizer
	io.WriterTo
}

// timeless makes PDFs say the same time of making, and order their parts the
// same, in every run.
var timeless = sync.OnceFunc(func() {
	fpdf.SetDefaultCreationDate(time.Unix(0, 0).UTC())
	fpdf.SetDefaultModificationDate(time.Unix(0, 0).UTC())
	fpdf.SetDefaultCatalogSort(true)
})

func newCanvas(format string, w, h vg.Length) canvas {
	switch format {
	case ".svg":
		return vgsvg.New(w, h)
	case ".pdf":
		timeless()
		return vgpdf.New(w, h)
	default:
		return vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(w, h), vgimg.UseDPI(dpi))}
	}
}

// style returns text in a sans-serif face.
func style(size vg.Length) text.Style {
	s := text.Style{Color: color.Gray{40}, Font: plot.DefaultFont, Handler: plot.DefaultTextHandler}
	s.Font.Variant, s.Font.Size = "Sans", size
	return s
}

// draw plots the lines of a panel.
func (p panel) draw(clusters bool) (*plot.Plot, error) {
	out := plot.New()
	for _, axis := range []*plot.Axis{&out.X, &out.Y} {
		axis.Padding, axis.Width = 0, 0.6
		axis.Label.TextStyle.Font, axis.Tick.Label.Font = style(10).Font, style(9).Font
	}
	out.X.Scale, out.X.Tick.Marker = plot.LogScale{}, byteTicks{}
	out.X.Label.Text = "size"
	out.Y.Tick.Marker = roundTicks{}
	out.Legend.TextStyle, out.Legend.Top, out.Legend.Left = style(9), true, true
	out.Legend.XOffs, out.Legend.YOffs, out.Legend.Padding = 5, -7, 1.5
	grid := plotter.NewGrid()
	grid.Horizontal = draw.LineStyle{Color: color.Gray{225}, Width: 0.5}
	grid.Vertical = grid.Horizontal
	out.Add(grid)
	for i, l := range p.lines {
		points := make(plotter.XYs, len(l.rows))
		for j, r := range l.rows {
			points[j] = plotter.XY{X: float64(r.Bytes), Y: float64(r.BusBW() / units.GBps)}
		}
		drawn, dots, err := plotter.NewLinePoints(points)
		if err != nil {
			return nil, err
		}
		colour := distinct[i%len(distinct)]
		if clusters {
			colour = ordered[i*(len(ordered)-1)/max(1, len(p.lines)-1)]
		}
		drawn.Color, drawn.Width = colour, 1.4
		dots.Color, dots.Radius, dots.Shape = colour, 1.8, draw.CircleGlyph{}
		out.Add(drawn, dots)
		out.Legend.Add(l.name, drawn, dots)
	}
	return out, nil
}

// byteTicks marks the whole powers of two, naming as many as are legible.
type byteTicks struct{}

// Ticks implements [plot.Ticker].
func (byteTicks) Ticks(lo, hi float64) []plot.Tick {
	first, last := max(0, int(math.Ceil(math.Log2(lo)))), int(math.Floor(math.Log2(hi)))
	every := max(1, (last-first+4)/5)
	var ticks []plot.Tick
	for e := first; e <= last; e++ {
		t := plot.Tick{Value: math.Ldexp(1, e)}
		if (e-first)%every == 0 {
			t.Label = units.Bytes(1 << e).String()
		}
		ticks = append(ticks, t)
	}
	return ticks
}

// roundTicks marks multiples of a round number, four to ten of them.
type roundTicks struct{}

// Ticks implements [plot.Ticker].
func (roundTicks) Ticks(lo, hi float64) []plot.Tick {
	step := math.Pow(10, math.Floor(math.Log10((hi-lo)/4)))
	for _, times := range []float64{5, 2} {
		if (hi-lo)/(times*step) >= 4 {
			step *= times
			break
		}
	}
	var ticks []plot.Tick
	for i := math.Ceil(lo / step); i*step <= hi; i++ {
		ticks = append(ticks, plot.Tick{Value: i * step, Label: fmt.Sprintf("%.4g", i*step)})
	}
	return ticks
}
