package draw

import (
	"bytes"
	"fmt"
	"io"
	"math"

	svg "github.com/ajstarks/svgo"

	"tutti/model/units"
	"tutti/topo"
)

// Colours that people with any colour vision can tell apart (Okabe and Ito,
// "Color Universal Design", 2008; olive, after Tol, in the place of a yellow that
// is too light for lines), and light tints of them for boxes.
const (
	black      = "#000000"
	orange     = "#E69F00"
	skyBlue    = "#56B4E9"
	green      = "#009E73"
	olive      = "#999933"
	blue       = "#0072B2"
	vermillion = "#D55E00"
	purple     = "#CC79A7"
	grey       = "#8A8A8A"
	ink        = "#222222"

	gpuFill    = "#DDF1EA"
	nicFill    = "#DCEBF5"
	cpuFill    = "#FBEFD6"
	switchFill = "#EDEDED"
	hostFill   = "#FAFAFA"
)

// palette are the colours of rails and routes, in order.
var palette = []string{vermillion, blue, purple, orange, skyBlue, green, black, olive}

// colours are those of links, by what they are made of.
var colours = map[topo.LinkType]string{
	topo.LinkNVL: green, topo.LinkC2C: orange, topo.LinkPCI: grey, topo.LinkSYS: purple, topo.LinkNET: blue,
}

// linkWidth is how wide a link is drawn: by the root of its rate, so that the
// slowest are to be seen beside the fastest. Tenths of a pixel are all that is
// written.
func linkWidth(r units.Rate) float64 {
	return min(12, max(1, 0.45*math.Sqrt(float64(r/units.GBps))))
}

// canvas is a picture that is written whole or not at all.
type canvas struct {
	*svg.SVG
	text bytes.Buffer
}

func newCanvas(width, height int, title string) *canvas {
	c := &canvas{}
	c.SVG = svg.New(&c.text)
	c.Startview(width, height, 0, 0, width, height)
	c.Title(title)
	c.Rect(0, 0, width, height, "fill:white")
	c.Gstyle("font-family:'Liberation Sans',Arial,Helvetica,sans-serif")
	return c
}

// writeTo ends the picture and writes it.
func (c *canvas) writeTo(w io.Writer) error {
	c.Gend()
	c.End()
	_, err := c.text.WriteTo(w)
	return err
}

// write puts text with its middle at x.
func (c *canvas) write(x, baseline, size int, text, style string) {
	c.Text(x, baseline, text, fmt.Sprintf("text-anchor:middle;font-size:%dpx;fill:%s;%s", size, ink, style))
}

// writeLeft puts text with its start at x.
func (c *canvas) writeLeft(x, baseline, size int, text, style string) {
	c.Text(x, baseline, text, fmt.Sprintf("font-size:%dpx;fill:%s;%s", size, ink, style))
}

const bold = "font-weight:bold"

// frame draws a box with text in one or two lines.
func (c *canvas) frame(b box, fill, border, first, second string) {
	c.Roundrect(b.x, b.y, b.w, b.h, 5, 5, fmt.Sprintf("fill:%s;stroke:%s;stroke-width:1.2", fill, border))
	switch {
	case second == "":
		c.write(b.centre(), b.y+b.h/2+4, size(first, 11, b.w), first, "")
	case b.h < 2*portDepth:
		text := first + " · " + second
		c.write(b.centre(), b.y+b.h/2+3, size(text, 9, b.w), text, "")
	default:
		c.write(b.centre(), b.y+b.h/2-3, size(first, 12, b.w), first, bold)
		c.write(b.centre(), b.y+b.h/2+12, size(second, 9, b.w), second, "")
	}
}

// size is how large text can be, at the most, to fit in a box.
func size(text string, largest, width int) int {
	for largest > 6 && textWidth(text, largest) > width-6 {
		largest--
	}
	return largest
}

// stroke is the style of a line.
func stroke(colour string, width float64, more string) string {
	return fmt.Sprintf("fill:none;stroke:%s;stroke-width:%.1f;%s", colour, width, more)
}

// textWidth is about how wide text is in Liberation Sans; what is drawn does not
// depend on fonts that are there.
func textWidth(text string, size int) int { return len([]rune(text)) * size * 56 / 100 }

// entry is a line of a legend.
type entry struct {
	text, colour, style string
	width               float64
}

// legend draws entries side by side, in as many rows as they need, and returns
// how high that is. Without a canvas it only measures.
func legend(c *canvas, entries []entry, x, y, width int) int {
	const sample, size, gap, depth = 34, 12, 26, 22
	left, top := x, y
	for _, e := range entries {
		need := sample + 8 + textWidth(e.text, size)
		if x > left && x+need > left+width {
			x, y = left, y+depth
		}
		if c != nil {
			c.Line(x, y, x+sample, y, stroke(e.colour, e.width, e.style))
			c.writeLeft(x+sample+8, y+4, size, e.text, "")
		}
		x += need + gap
	}
	return y - top + depth
}
