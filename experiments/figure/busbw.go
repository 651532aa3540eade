package figure

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"path"
	"slices"
	"strings"
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
	// shade is where the line stands in an order of all panels' lines, from 0 to
	// 1.
	shade float64
}

// panels sorts the rows, in their order, into panels and lines. By size there is
// a panel for each algorithm with a line for each cluster, or a single one where
// there is one cluster or one way for each size; by ranks it is sizes that have
// lines. Machines, fabrics, protocols and numbers of channels are told apart
// where one place on the axis has several.
func panels(list []rows.Row, by axis) (out []panel, grouped bool) {
	grouped = kinds(list, by.group) > 1
	at := func(r rows.Row) rows.Row { return rows.Row{Ranks: r.Ranks, Bytes: r.Bytes} }
	ways := kinds(list, at) < len(list)
	both := slices.ContainsFunc(list, func(r rows.Row) bool { return r.Algorithm == model.NVLS && r.Nodes > 1 })
	var parts []func(rows.Row) string
	algorithm := func(r rows.Row) string {
		if by.clusters && grouped && r.Algorithm == model.NVLSTree && !both {
			return model.NVLS.String() // one panel for both
		}
		return r.Algorithm.String()
	}
	for _, part := range []func(rows.Row) string{
		algorithm,
		func(r rows.Row) string { return r.Machine },
		func(r rows.Row) string { return fabricOf(r) },
		func(r rows.Row) string { return r.Protocol.String() },
		func(r rows.Row) string {
			if r.Source == "model" || r.Source == "sim" { // the title says it
				return ""
			}
			return r.Source
		},
		func(r rows.Row) string { return fmt.Sprintf("%d channels", r.Channels) },
	} {
		before := kinds(list, key(at, parts))
		with := append(slices.Clip(parts), part)
		if len(parts) == 0 || kinds(list, key(at, with)) > before {
			parts = with
		}
	}
	var groups []rows.Row
	for _, r := range list {
		if g := by.group(r); !slices.Contains(groups, g) {
			groups = append(groups, g)
		}
	}
	for _, r := range list {
		way := strings.Join(words(r, parts), " ")
		title, name := "", way
		if grouped {
			name = by.name(r)
			if ways {
				title = way
			}
		}
		p := find(&out, func(p panel) bool { return p.title == title }, panel{title: title})
		shade := float64(slices.Index(groups, by.group(r))) / float64(max(1, len(groups)-1))
		l := find(&p.lines, func(l line) bool { return l.name == name }, line{name: name, shade: shade})
		l.rows = append(l.rows, r)
	}
	return out, grouped
}

// key returns a row's place, with some of its parts.
func key(at func(rows.Row) rows.Row, parts []func(rows.Row) string) func(rows.Row) rows.Row {
	return func(r rows.Row) rows.Row {
		k := at(r)
		k.Machine = strings.Join(words(r, parts), "/")
		return k
	}
}

func words(r rows.Row, parts []func(rows.Row) string) (words []string) {
	for _, part := range parts {
		if word := part(r); word != "" {
			words = append(words, word)
		}
	}
	return words
}

// fabricOf names what joins the machines, if there are several.
func fabricOf(r rows.Row) string {
	switch {
	case r.Why == nil:
		return ""
	case r.Why.Fabric == "":
		return "one machine"
	}
	return strings.TrimSuffix(path.Base(r.Why.Fabric), ".yaml")
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
	canvas := newCanvas(format, width, vg.Length(len(plots))*(panelHeight+between)-between+head)
	area := draw.New(canvas)
	area.FillPolygon(color.White, []vg.Point{area.Min, {X: area.Max.X, Y: area.Min.Y}, area.Max, {X: area.Min.X, Y: area.Max.Y}})
	area.FillText(fit(style(13), title, width-2*gap), vg.Point{X: gap, Y: area.Max.Y - titleHeight + gap}, title)
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

// fit makes letters smaller until a text has room.
func fit(s text.Style, words string, room vg.Length) text.Style {
	for s.Width(words) > room && s.Font.Size > 6 {
		s.Font.Size -= .5
	}
	return s
}

// title says what all rows have in common.
func title(list []rows.Row) string {
	first := list[0]
	one := func(key func(rows.Row) rows.Row) bool { return kinds(list, key) == 1 }
	words := first.Collective.String()
	if one(func(r rows.Row) rows.Row { return rows.Row{Bytes: r.Bytes} }) && len(list) > 1 {
		words += " of " + first.Bytes.String()
	}
	if one(func(r rows.Row) rows.Row { return rows.Row{Algorithm: r.Algorithm} }) {
		words += " by " + first.Algorithm.String()
	}
	place := ""
	if one(func(r rows.Row) rows.Row { return rows.Row{Ranks: r.Ranks} }) {
		place = fmt.Sprintf("%d GPUs", first.Ranks)
	}
	if one(func(r rows.Row) rows.Row { return rows.Row{Machine: r.Machine} }) {
		place = strings.TrimPrefix(place+" of "+first.Machine, " of ")
	}
	if place != "" {
		words += " on " + place
	}
	switch first.Source {
	case "sim":
		words += ", simulated"
	case "model":
		words += ", modelled"
	}
	return words
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
	grid := plotter.NewGrid()
	grid.Horizontal = draw.LineStyle{Color: color.Gray{225}, Width: 0.5}
	grid.Vertical = grid.Horizontal
	out.Add(grid)
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
