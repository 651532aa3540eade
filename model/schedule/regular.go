package schedule

import (
	"slices"

	"tutti/topo/search"
)

// Regular is implemented by schedules that know which machines are alike. Their
// workers and connections are numbered machine by machine.
type Regular interface {
	Schedule
	// Node returns what tells a machine from others and the machines that it is
	// connected with. Where two machines are told by the same words, the one's
	// part of the schedule is the other's, step by step, but for the places of
	// elements and with the i-th neighbour of the other for that of the one.
	Node(node int) (words []int, neighbours []int)
	// Like returns which worker of a machine is to be compared with the i-th of
	// others, both counted from the machine's first: the i-th, unless machines are
	// alike with their channels exchanged. The one like that is again the i-th. The
	// same holds for connections.
	Like(node, i int) int
	// First returns the first worker and the first connection of a machine; of the
	// one after the last, how many there are.
	First(node int) (worker, connection int)
}

// mirror knows which channels are exchanged on the second half of the machines:
// those of the two trees of a double tree, of which one is the other's mirror
// image. There are none if the trees do not carry the same, or are shifted, as
// over an odd number of machines.
type mirror struct {
	nodes int
	twin  []int // of a channel
}

func newMirror(nodes, channels int, twin func(int) int, same func(a, b int) bool) (m mirror) {
	if nodes%2 == 1 {
		return mirror{}
	}
	for ch := range channels {
		t := twin(ch)
		if t >= channels || !same(ch, t) {
			return mirror{}
		}
		m.twin = append(m.twin, t)
	}
	m.nodes = nodes
	return m
}

// exchanged tells whether a machine's channels are.
func (m *mirror) exchanged(node int) bool { return m.twin != nil && node >= m.nodes/2 }

// channel returns the channel of a machine that is to be compared with one of
// others.
func (m *mirror) channel(node, ch int) int {
	if m.exchanged(node) {
		return m.twin[ch]
	}
	return ch
}

// like returns the i-th worker or connection in the other channel, where each
// channel has so many side by side.
func (m *mirror) like(node, i, each int) int {
	if !m.exchanged(node) {
		return i
	}
	ch := i / each % len(m.twin)
	return i + (m.twin[ch]-ch)*each
}

// see adds to a view which neighbours do not have the same channels exchanged.
func (m *mirror) see(v *view) {
	for i, n := range v.neighbours {
		if m.exchanged(n) != m.exchanged(v.node) {
			v.words = append(v.words, i)
		}
	}
}

// view describes a machine from within.
type view struct {
	Layout
	node              int
	words, neighbours []int
}

// see adds a rank, by its machine's place among the neighbours, -1 for its own,
// or none by a negative number.
func (v *view) see(rank int) {
	if rank < 0 {
		v.words = append(v.words, -2)
		return
	}
	node := v.NodeOf(rank)
	at := -1
	if node != v.node {
		at = slices.Index(v.neighbours, node)
		if at < 0 {
			at = len(v.neighbours)
			v.neighbours = append(v.neighbours, node)
		}
	}
	v.words = append(v.words, at, rank-v.FirstRank(node))
}

// ranks returns those of the machine.
func (v *view) ranks() (first, end int) { return v.FirstRank(v.node), v.FirstRank(v.node + 1) }

// position adds a place in a tree, whose places stand for ranks.
func (v *view) position(p search.Position, rank func(int) int) {
	if p.Up < 0 {
		v.see(-1)
	} else {
		v.see(rank(p.Up))
	}
	for _, child := range p.Down() {
		v.see(rank(child))
	}
	v.see(-1)
}

// Node implements [Regular]. Blocks that are not all of one size go round the
// ring, and from a root or to it no two machines are at the same place.
func (r *Ring) Node(node int) (words, neighbours []int) {
	v := view{Layout: r.rings, node: node}
	if !r.even() {
		v.words = append(v.words, node)
	}
	for rank, end := v.ranks(); rank < end; rank++ {
		for ch := range r.parts {
			at := r.rings.Index(ch, rank)
			previous, next := r.rings.At(ch, at-1), r.rings.At(ch, at+1)
			v.see(previous)
			v.see(next)
			_, in := r.rings.NETs(ch, previous)
			out, _ := r.rings.NETs(ch, rank)
			v.words = append(v.words, in, out)
		}
	}
	return v.words, v.neighbours
}

// Like implements [Regular].
func (r *Ring) Like(_, i int) int { return i }

// First implements [Regular].
func (r *Ring) First(node int) (worker, connection int) {
	first := r.rings.FirstRank(node) * len(r.parts)
	return first, first
}

// even tells whether all ranks run the same steps.
func (r *Ring) even() bool {
	if r.hops() == 1 {
		return false
	}
	for _, p := range r.parts {
		if p.perLoop > 1 && p.count != (int64(p.loops-1)*p.chunk+p.last)*p.perLoop {
			return false
		}
	}
	return true
}

// Node implements [Regular].
func (r *Tree) Node(node int) (words, neighbours []int) {
	v := view{Layout: r.trees, node: node}
	for rank, end := v.ranks(); rank < end; rank++ {
		for like := range r.parts {
			ch := r.channel(node, like)
			v.position(r.trees.At(ch, rank), func(rank int) int { return rank })
			if up := r.trees.At(ch, rank).Up; up >= 0 { // the root has one worker for both
				v.words = append(v.words, min(0, r.trees.At(ch, up).Up))
			}
		}
	}
	r.see(&v)
	return v.words, v.neighbours
}

// Like implements [Regular].
func (r *Tree) Like(node, i int) int { return r.like(node, i, 2) }

// First implements [Regular].
func (r *Tree) First(node int) (worker, connection int) {
	first := 2 * r.trees.FirstRank(node) * len(r.parts)
	return first, first
}

// turning is AllToAll by [P2P] on machines with as many ranks each: every one sees
// the others at the same distances, in the same rounds.
type turning struct{ *P2P }

// Node implements [Regular].
func (r *turning) Node(node int) (words, neighbours []int) {
	for rank := node * r.perNode; rank < (node+1)*r.perNode; rank++ {
		for ch := range r.parts {
			words = append(words, r.rails.NET(ch, rank))
		}
	}
	for distance := 1; distance < r.nodes; distance++ {
		neighbours = append(neighbours, (node+distance)%r.nodes)
	}
	return words, neighbours
}

// Like implements [Regular].
func (r *turning) Like(_, i int) int { return i }

// First implements [Regular].
func (r *turning) First(node int) (worker, connection int) {
	sender := node * r.perNode * len(r.parts)
	return 2 * sender, sender * len(r.order)
}

// Node implements [Regular].
func (r *NVLS) Node(node int) (words, neighbours []int) {
	v := view{Layout: nodes{}, node: node}
	for like := range r.parts {
		ch := r.channel(node, like)
		p := r.place(ch, node)
		v.position(p, func(node int) int { return node })
		if p.Up >= 0 {
			v.words = append(v.words, min(0, r.place(ch, p.Up).Up))
		}
		if r.aggregates() {
			v.words = append(v.words, node)
		}
	}
	r.see(&v)
	return v.words, v.neighbours
}

// nodes has a rank on each machine: of NVLS, ranks on one are not told apart.
type nodes struct{}

func (nodes) NodeOf(node int) int    { return node }
func (nodes) FirstRank(node int) int { return node }
func (nodes) Even() bool             { return true }

// First implements [Regular].
func (r *NVLS) First(node int) (worker, connection int) {
	return 4 * r.heads.FirstRank(node) * len(r.parts), 4 * node * r.heads.Heads() * len(r.parts)
}

// Like implements [Regular].
func (r *NVLS) Like(node, i int) int { return r.like(node, i, 4) }
