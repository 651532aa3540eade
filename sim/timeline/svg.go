package timeline

import (
	"bufio"
	"fmt"
	"html"
	"io"

	"tutti/model/units"
)

// MaxDrawn is how many steps a picture may have.
const MaxDrawn = 20000

// The picture's measures, in pixels.
const (
	margin, labels, width = 10, 170, 1100
	rowHeight, barHeight  = 16, 12
	letter                = 5.8 // of text in the picture's size, about
)

// colours of what workers do, of waiting, and of what goes wrong; Okabe and Ito's,
// which people with any colour vision tell apart.
var colours = map[string]string{
	"send": "#0072B2", "recvReduceSend": "#D55E00", "recvReduceCopySend": "#CC79A7", "recvReduceCopy": "#CC79A7",
	"recvCopySend": "#009E73", "recv": "#56B4E9",
	"waits for data": "#DDDDDD", "waits for a slot": "#F0E442", "overhead": "#F2F2F2", "network": "#999999", wrong: "#882255",
}

// wrong is the kind of bars that tell of faults and stragglers.
const wrong = "trouble"

// otherColour is that of other kinds of steps.
const otherColour = "#E69F00"

func colourOf(kind string) string {
	if c, known := colours[kind]; known {
		return c
	}
	return otherColour
}

// waits names the kinds of stalls.
var waits = [...]string{onItself: "overhead", forData: "waits for data", forSlot: "waits for a slot"}

// bar is something that takes a while.
type bar struct {
	kind, title string
	from, to    units.Time
}

// row is what one worker, connection or fault does.
type row struct {
	label string
	bars  []bar
}

// rows returns those of the picture.
func (t *Timeline) rows() (rows []row) {
	add := func(b bar) { rows[len(rows)-1].bars = append(rows[len(rows)-1].bars, b) }
	for i, s := range t.steps {
		if i == 0 || t.steps[i-1].worker != s.worker {
			described := t.schedule.Worker(int(s.worker))
			rows = append(rows, row{label: fmt.Sprintf("rank %d ch %d %v", described.Rank, described.Channel, described.Role)})
		}
		if s.begin > s.from {
			add(bar{waits[t.stalls[i].why], t.words(t.stalls[i]), s.from, s.begin})
		}
		does := name(t.schedule.Step(int(s.worker), int(s.number)))
		add(bar{does, fmt.Sprintf("%s, step %d", does, s.number), s.begin, s.end})
	}
	for i, m := range t.items {
		if i == 0 || t.items[i-1].connection != m.connection {
			c := t.schedule.Connection(int(m.connection))
			rows = append(rows, row{label: fmt.Sprintf("network %d > %d", t.schedule.Worker(c.From[0]).Rank, t.schedule.Worker(c.To[0]).Rank)})
		}
		add(bar{"network", "item", m.begin, m.end})
	}
	for _, k := range t.trouble {
		label := "fault"
		if k.rank >= 0 {
			label = fmt.Sprintf("straggler rank %d", k.rank)
		}
		rows = append(rows, row{label, []bar{{wrong, k.name, k.begin, min(k.end, max(t.last(), k.begin))}}})
	}
	return rows
}

// WriteSVG draws the timeline, which has ended, as a Gantt chart: a row for each worker, for each
// connection of the network, and for what goes wrong. It fails above [MaxDrawn]
// steps.
func (t *Timeline) WriteSVG(w io.Writer) error {
	if len(t.steps) > MaxDrawn {
		return fmt.Errorf("%d steps are too many for a picture: want at most %d, or a trace in .json", len(t.steps), MaxDrawn)
	}
	rows, last := t.rows(), max(1, t.last())
	legend, lines := placed(kinds(rows))
	top := margin + lines*rowHeight
	bottom := top + (len(rows)+1)*rowHeight + 4
	out := bufio.NewWriter(w)
	put := func(format string, args ...any) { fmt.Fprintf(out, format+"\n", args...) }
	at := func(i units.Time) float64 { return labels + float64(min(i, last))/float64(last)*(width-labels-margin) }
	put(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="10">`, width, bottom+rowHeight+margin)
	put(`<rect width="100%%" height="100%%" fill="white"/>`)
	for _, k := range legend {
		put(`<rect x="%.1f" y="%d" width="10" height="10" fill="%s"/><text x="%.1f" y="%d">%s</text>`, k.x, margin+k.line*rowHeight, colourOf(k.kind), k.x+14, margin+k.line*rowHeight+9, k.kind)
	}
	for i, r := range rows {
		y := top + (i+1)*rowHeight
		put(`<text x="%d" y="%d">%s</text>`, margin, y+barHeight-3, html.EscapeString(r.label))
		for _, b := range r.bars {
			put(`<rect x="%.2f" y="%d" width="%.2f" height="%d" fill="%s"><title>%s</title></rect>`,
				at(b.from), y, max(.2, at(b.to)-at(b.from)), barHeight, colourOf(b.kind), html.EscapeString(fmt.Sprintf("%s, %v to %v", b.title, b.from, b.to)))
			if b.kind == wrong && letter*float64(len(b.title)) < at(b.to)-at(b.from) {
				put(`<text x="%.1f" y="%d" fill="white">%s</text>`, at(b.from)+4, y+barHeight-3, html.EscapeString(b.title))
			}
		}
	}
	for tick := range 6 {
		instant := last * units.Time(tick) / 5
		put(`<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="black" stroke-width="0.3"/><text x="%.1f" y="%d" text-anchor="middle">%.1f us</text>`,
			at(instant), top+rowHeight, at(instant), bottom, min(at(instant), width-25), bottom+12, instant.Microseconds())
	}
	put(`</svg>`)
	return out.Flush()
}

// kinds lists those of the bars, in the order in which they come first.
func kinds(rows []row) (list []string) {
	seen := map[string]bool{}
	for _, r := range rows {
		for _, b := range r.bars {
			if !seen[b.kind] {
				seen[b.kind] = true
				list = append(list, b.kind)
			}
		}
	}
	return list
}

// key is an entry of the legend, and its place.
type key struct {
	kind string
	x    float64
	line int
}

// placed sets the legend's entries beside each other, on as many lines as they
// take.
func placed(kinds []string) (legend []key, lines int) {
	x := float64(labels)
	for _, kind := range kinds {
		wide := 14 + letter*float64(len(kind)) + 16
		if x+wide > width {
			x, lines = labels, lines+1
		}
		legend = append(legend, key{kind, x, lines})
		x += wide
	}
	return legend, lines + 1
}
