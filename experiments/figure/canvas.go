package figure

import (
	"bytes"
	"image/color"
	"io"
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
		return svgCanvas{vgsvg.New(w, h)}
	case ".pdf":
		timeless()
		return vgpdf.New(w, h)
	default:
		return vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(w, h), vgimg.UseDPI(dpi))}
	}
}

// svgCanvas names faces of the same widths, for readers that do not have the one
// that texts were measured in.
type svgCanvas struct{ *vgsvg.Canvas }

// WriteTo implements [io.WriterTo].
func (c svgCanvas) WriteTo(w io.Writer) (int64, error) {
	var text bytes.Buffer
	if _, err := c.Canvas.WriteTo(&text); err != nil {
		return 0, err
	}
	const family = "font-family:Liberation Sans"
	n, err := w.Write(bytes.ReplaceAll(text.Bytes(), []byte(family), []byte(family+",Arial,Helvetica,sans-serif")))
	return int64(n), err
}

// style returns text in a sans-serif face.
func style(size vg.Length) text.Style {
	s := text.Style{Color: color.Gray{40}, Font: plot.DefaultFont, Handler: plot.DefaultTextHandler}
	s.Font.Variant, s.Font.Size = "Sans", size
	return s
}

// fit makes letters smaller until a text has room.
func fit(s text.Style, words string, room vg.Length) text.Style {
	for s.Width(words) > room && s.Font.Size > 6 {
		s.Font.Size -= .5
	}
	return s
}

// sheet returns a white canvas with a title, and where to draw on it.
func sheet(format, title string, width, height vg.Length) (canvas, draw.Canvas) {
	made := newCanvas(format, width, height)
	area := draw.New(made)
	box(area, color.White, 0, 0, width, height)
	area.FillText(fit(style(13), title, width-2*gap), vg.Point{X: gap, Y: height - titleHeight + gap}, title)
	return made, area
}

// gridLines returns faint lines at the ticks.
func gridLines() *plotter.Grid {
	g := plotter.NewGrid()
	g.Horizontal = draw.LineStyle{Color: color.Gray{225}, Width: 0.5}
	g.Vertical = g.Horizontal
	return g
}

func box(c draw.Canvas, fill color.Color, left, bottom, right, top vg.Length) {
	c.FillPolygon(fill, []vg.Point{{X: left, Y: bottom}, {X: right, Y: bottom}, {X: right, Y: top}, {X: left, Y: top}})
}
