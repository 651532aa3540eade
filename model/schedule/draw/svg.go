package draw

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	svg "github.com/ajstarks/svgo"
)

// The most that a picture shows: beyond that nobody can read it.
const (
	MaxSVG   = 1500 // steps
	maxLanes = 64
	maxTimes = 150
)

// Sizes in pixels.
const (
	laneWidth = 146
	laneGap   = 14
	rankGap   = 26
	rowHeight = 78
	boxHeight = 36
	left      = 64
	top       = 136
)

// palette is Okabe and Ito's, which colour-blind people can tell apart, without
// black.
var palette = []string{"#56B4E9", "#E69F00", "#009E73", "#F0E442", "#CC79A7", "#D55E00", "#0072B2", "#999999"}

// WriteSVG draws the timeline: a lane for each worker under its rank, time going
// down, a box for each step, arrows from the steps that send to those that
// receive, and a colour for each chunk. It fails for more lanes, instants or
// steps than can be read.
func (t *Timeline) WriteSVG(w io.Writer) error {
	switch {
	case len(t.Moves) > MaxSVG:
		return fmt.Errorf("the picture would have %d steps: want at most %d (fewer ranks, channels or elements)", len(t.Moves), MaxSVG)
	case len(t.Lanes) > maxLanes:
		return fmt.Errorf("the picture would have %d workers side by side: want at most %d (fewer ranks or channels)", len(t.Lanes), maxLanes)
	case t.Times > maxTimes:
		return fmt.Errorf("the picture would be %d steps long: want at most %d (fewer ranks or elements)", t.Times, maxTimes)
	}
	p := &picture{SVG: svg.New(w), Timeline: t, order: t.byFirst(), x: make([]int, len(t.Lanes)), at: map[Sender]*Move{}}
	x := left
	for i, lane := range p.order {
		if i > 0 {
			x += laneWidth + laneGap
			if t.Lanes[p.order[i-1]].Rank != t.Lanes[lane].Rank {
				x += rankGap
			}
		}
		p.x[lane] = x
	}
	for i := range t.Moves {
		m := &t.Moves[i]
		p.at[Sender{m.Lane, m.Time}] = m
		for _, r := range m.ranges() {
			if r[0] < r[1] {
				p.chunks = append(p.chunks, r[0])
			}
		}
	}
	slices.Sort(p.chunks)
	p.chunks = slices.Compact(p.chunks)
	p.draw(max(x+laneWidth+24, 640), top+t.Times*rowHeight)
	return nil
}

// byFirst orders the lanes of a rank and channel by their first steps, so that
// data flows to the right.
func (t *Timeline) byFirst() []int {
	order, first := make([]int, len(t.Lanes)), make([]int, len(t.Lanes))
	for i := len(t.Moves) - 1; i >= 0; i-- {
		first[t.Moves[i].Lane] = t.Moves[i].Time
	}
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		x, y := t.Lanes[a], t.Lanes[b]
		return cmp.Or(cmp.Compare(x.Rank, y.Rank), cmp.Compare(x.Channel, y.Channel), cmp.Compare(first[a], first[b]))
	})
	return order
}

type picture struct {
	*svg.SVG
	*Timeline
	order  []int // lanes from left to right
	x      []int // of lanes
	at     map[Sender]*Move
	chunks []int64 // where they begin
}

func (p *picture) colour(offset int64) string {
	i, _ := slices.BinarySearch(p.chunks, offset)
	return palette[i%len(palette)]
}

func (p *picture) y(time int) int { return top + time*rowHeight }

func (p *picture) draw(width, height int) {
	p.Start(width, height, fmt.Sprintf("viewBox=\"0 0 %d %d\"", width, height))
	p.Style("text/css", "text{font-family:'Liberation Sans',Arial,Helvetica,sans-serif;fill:#222}")
	p.Rect(0, 0, width, height, "fill:#fff")
	t := p.Task
	p.Text(16, 30, fmt.Sprintf("%v by %v over %v: %d ranks, %d elements", t.Collective, t.Algorithm, t.Protocol, t.Ranks, t.Elements()), "font-size:18px;font-weight:bold")
	for i, line := range [...]string{
		"A box is a step: what it does with which elements; those with a dark edge write the output.",
		"An arrow is an item on its way, dashed if it is a signal without data. Each chunk has a colour.",
	} {
		p.Text(16, 50+17*i, line, "font-size:12px;fill:#555")
	}
	p.lanes()
	p.arrows()
	for i := range p.Moves {
		p.box(&p.Moves[i])
	}
	p.End()
}

// lanes draws the ranks, their workers and the instants.
func (p *picture) lanes() {
	bottom := p.y(p.Times) - rowHeight + boxHeight + 12
	for i, lane := range p.order {
		l, x := p.Lanes[lane], p.x[lane]
		if i == 0 || p.Lanes[p.order[i-1]].Rank != l.Rank {
			end := x
			for _, other := range p.order[i:] {
				if p.Lanes[other].Rank == l.Rank {
					end = p.x[other] + laneWidth
				}
			}
			p.Roundrect(x-8, top-46, end-x+16, bottom-top+46, 8, 8, "fill:#f4f5f7")
			p.Text((x+end)/2, top-28, fmt.Sprintf("rank %d", l.Rank), "font-size:14px;font-weight:bold;text-anchor:middle")
		}
		role := l.Role.String()
		if p.Task.Channels > 1 {
			role += fmt.Sprintf(", channel %d", l.Channel)
		}
		p.Text(x+laneWidth/2, top-12, role, "font-size:11px;fill:#555;text-anchor:middle")
	}
	for time := range p.Times {
		p.Text(left-22, p.y(time)+boxHeight/2+4, fmt.Sprint(time), "font-size:12px;fill:#777;text-anchor:end")
	}
	p.Text(left-22, top-12, "time", "font-size:11px;fill:#777;text-anchor:end")
}

// arrows draws the items.
func (p *picture) arrows() {
	for i := range p.Moves {
		m := &p.Moves[i]
		for k, item := range m.From {
			x := p.port(m.Lane, k, len(m.From))
			for _, s := range item.Senders {
				p.arrow(s, p.leaves(s, m.Lane, item.Offset), x, p.y(m.Time), item)
			}
		}
	}
}

// port returns where the k-th of n arrows meets a lane's box.
func (p *picture) port(lane, k, n int) int { return p.x[lane] + laneWidth*(2*k+1)/(2*n) }

// leaves returns where the arrow to a lane leaves the sender's box.
func (p *picture) leaves(s Sender, lane int, offset int64) int {
	m := p.at[s]
	for k, to := range m.To {
		if from, _ := m.Range(m.Send.From + k); from == offset && slices.Contains(to, lane) {
			return p.port(s.Lane, k, len(m.To))
		}
	}
	return p.port(s.Lane, 0, 1)
}

func (p *picture) arrow(s Sender, x0, x1, y1 int, item Item) {
	y0 := p.y(s.Time) + boxHeight
	style := "fill:none;stroke-width:2.2;stroke-opacity:.85;stroke:#777;stroke-dasharray:4 3" // a signal
	colour := "#777"
	if item.Count > 0 {
		colour = p.colour(item.Offset)
		style = "fill:none;stroke-width:2.2;stroke-opacity:.85;stroke:" + colour
	}
	bend := (y1 - y0) * 6 / 10
	p.Bezier(x0, y0, x0, y0+bend, x1, y1-bend, x1, y1-5, style)
	p.Polygon([]int{x1 - 4, x1 + 4, x1}, []int{y1 - 8, y1 - 8, y1 - 1}, "fill:"+colour)
}

// box draws a step, a stripe for each of its blocks.
func (p *picture) box(m *Move) {
	x, y := p.x[m.Lane], p.y(m.Time)
	ranges := m.ranges()
	p.Roundrect(x, y, laneWidth, boxHeight, 4, 4, "fill:#fff")
	for i, r := range ranges {
		from, to := laneWidth*i/len(ranges), laneWidth*(i+1)/len(ranges)
		fill := "#e3e5e8"
		if r[0] < r[1] {
			fill = p.colour(r[0])
		}
		p.Rect(x+from, y, to-from, boxHeight, "fill-opacity:.45;fill:"+fill)
	}
	edge := "fill:none;stroke:#9aa0a6;stroke-width:1"
	if m.Output {
		edge = "fill:none;stroke:#222;stroke-width:1.6"
	}
	p.Roundrect(x, y, laneWidth, boxHeight, 3, 3, edge)
	p.Text(x+laneWidth/2, y+15, m.Verb(), "font-size:12px;text-anchor:middle")
	p.Text(x+laneWidth/2, y+29, p.short(elements(ranges)), "font-size:11px;text-anchor:middle")
}

// short cuts what does not fit into a box.
func (p *picture) short(text string) string {
	const most = 20
	if words := strings.Fields(text); len(text) > most && len(words) > 1 {
		return fmt.Sprintf("%s … %s", words[0], words[len(words)-1])
	}
	return text
}
