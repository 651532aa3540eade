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
)

// colours of what workers do, and of waiting; Okabe and Ito's, which people
// with any colour vision tell apart.
var colours = map[string]string{
	"send": "#0072B2", "recvReduceSend": "#D55E00", "recvReduceCopySend": "#CC79A7", "recvReduceCopy": "#CC79A7",
	"recvCopySend": "#009E73", "recv": "#56B4E9",
}

const (
	otherColour   = "#E69F00"
	waitColour    = "#DDDDDD"
	networkColour = "#999999"
)

// WriteSVG draws the timeline as a Gantt chart: a row for each worker, and one
// for each connection of the network. It fails above [MaxDrawn] steps.
func (t *Timeline) WriteSVG(w io.Writer) error {
	if len(t.steps) > MaxDrawn {
		return fmt.Errorf("%d steps are too many for a picture: want at most %d, or a trace in .json", len(t.steps), MaxDrawn)
	}
	t.sort()
	var last units.Time
	rows := 0
	for i, s := range t.steps {
		last = max(last, s.end)
		if i == 0 || t.steps[i-1].worker != s.worker {
			rows++
		}
	}
	for i, m := range t.items {
		if i == 0 || t.items[i-1].connection != m.connection {
			rows++
		}
	}
	height := 2*margin + 3*rowHeight + rows*rowHeight
	out := bufio.NewWriter(w)
	put := func(format string, args ...any) { fmt.Fprintf(out, format+"\n", args...) }
	at := func(i units.Time) float64 { return labels + float64(i)/float64(max(1, last))*(width-labels-margin) }
	put(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="10">`, width, height)
	put(`<rect width="100%%" height="100%%" fill="white"/>`)
	y := margin
	bar := func(from, to units.Time, colour, title string) {
		put(`<rect x="%.2f" y="%d" width="%.2f" height="%d" fill="%s"><title>%s</title></rect>`,
			at(from), y, max(.2, at(to)-at(from)), barHeight, colour, html.EscapeString(fmt.Sprintf("%s, %v to %v", title, from, to)))
	}
	row := func(label string) {
		y += rowHeight
		put(`<text x="%d" y="%d">%s</text>`, margin, y+barHeight-3, html.EscapeString(label))
	}
	x := labels
	for _, kind := range []string{"send", "recvReduceSend", "recvReduceCopySend", "recvCopySend", "recv"} {
		put(`<rect x="%d" y="%d" width="10" height="10" fill="%s"/><text x="%d" y="%d">%s</text>`, x, y, colours[kind], x+14, y+9, kind)
		x += 130
	}
	put(`<rect x="%d" y="%d" width="10" height="10" fill="%s"/><text x="%d" y="%d">wait</text>`, x, y, waitColour, x+14, y+9)
	put(`<rect x="%d" y="%d" width="10" height="10" fill="%s"/><text x="%d" y="%d">network</text>`, x+60, y, networkColour, x+74, y+9)
	for i, s := range t.steps {
		described := t.schedule.Worker(int(s.worker))
		if i == 0 || t.steps[i-1].worker != s.worker {
			row(fmt.Sprintf("rank %d ch %d %v", described.Rank, described.Channel, described.Role))
		}
		if s.begin > s.from {
			bar(s.from, s.begin, waitColour, "wait")
		}
		does := name(t.schedule.Step(int(s.worker), int(s.number)))
		colour, known := colours[does]
		if !known {
			colour = otherColour
		}
		bar(s.begin, s.end, colour, fmt.Sprintf("%s, step %d", does, s.number))
	}
	for i, m := range t.items {
		if i == 0 || t.items[i-1].connection != m.connection {
			c := t.schedule.Connection(int(m.connection))
			row(fmt.Sprintf("network %d > %d", t.schedule.Worker(c.From[0]).Rank, t.schedule.Worker(c.To[0]).Rank))
		}
		bar(m.begin, m.end, networkColour, "item")
	}
	y += rowHeight + 4
	for tick := range 6 {
		instant := last * units.Time(tick) / 5
		put(`<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="black" stroke-width="0.3"/><text x="%.1f" y="%d" text-anchor="middle">%.1f us</text>`,
			at(instant), margin+rowHeight, at(instant), y, min(at(instant), width-25), y+12, instant.Microseconds())
	}
	put(`</svg>`)
	return out.Flush()
}
