package draw

import (
	"cmp"
	"fmt"
	"slices"

	"tutti/model/units"
	"tutti/topo"
)

// arcWidth is how much wider than others NVLinks from GPU to GPU are drawn.
const arcWidth = 1.4

// arc is an NVLink from GPU to GPU, drawn below them.
type arc struct {
	a, b      int // nodes, from left to right
	x1, x2, y int
	sag       int // how far down the curve's handles are
	rate      units.Rate
}

// arcs lists the NVLinks between GPUs. Of those that leave a GPU to one side the
// shorter start further out, so that they do not cross there.
func (l *layout) arcs() []arc {
	s := l.s
	ends := map[int][]int{} // of each GPU, the links by peer
	var list []arc
	for _, link := range s.Links {
		from, to := link.From, link.To
		known := slices.Contains(ends[from], to) // by the link the other way
		if known || link.Type != topo.LinkNVL || s.Nodes[from].Type != topo.GPU || s.Nodes[to].Type != topo.GPU {
			continue
		}
		ends[from] = append(ends[from], to)
		ends[to] = append(ends[to], from)
		if l.boxes[from].x > l.boxes[to].x {
			from, to = to, from
		}
		a, b := l.boxes[from], l.boxes[to]
		list = append(list, arc{a: from, b: to, y: a.bottom(), sag: 26 + (b.x-a.x)/7, rate: link.Rate})
	}
	for gpu, peers := range ends {
		x := l.boxes[gpu].x
		slices.SortFunc(peers, func(p, q int) int {
			dp, dq := l.boxes[p].x-x, l.boxes[q].x-x
			if (dp < 0) != (dq < 0) {
				return cmp.Compare(dp, dq) // to the left before to the right
			}
			return cmp.Compare(dq, dp) // nearest outermost on either side
		})
	}
	for i := range list {
		list[i].x1 = l.end(list[i].a, list[i].b, ends)
		list[i].x2 = l.end(list[i].b, list[i].a, ends)
	}
	return list
}

// end is where at a GPU's lower edge the link to a peer begins.
func (l *layout) end(gpu, peer int, ends map[int][]int) int {
	peers := ends[gpu]
	step := min(10, (cellWidth-8)/len(peers))
	return l.boxes[gpu].centre() + step*(2*slices.Index(peers, peer)-len(peers)+1)/2
}

// arcDepth is how far below the devices arcs reach; a cubic curve goes three
// quarters of the way to its handles.
func (l *layout) arcDepth() int {
	depth := 8
	for _, a := range l.arcs() {
		depth = max(depth, a.sag*3/4)
	}
	return depth
}

// path is the curve, so much deeper.
func (a arc) path(shift int) string {
	return fmt.Sprintf("M%d %d C%d %d %d %d %d %d", a.x1, a.y, a.x1, a.y+a.sag+shift, a.x2, a.y+a.sag+shift, a.x2, a.y)
}
