package sim

import (
	"slices"

	"tutti/model/units"
)

// halves are what machines see of the connections with others, where classes of
// machines are guessed (guess.go). Such a connection is simulated twice: once
// for the class of the machine at either end, which does its part of it, and has
// the other part from the half that the neighbour's class has of it. That half in
// turn may have its other part from elsewhere, as the two neighbours of two
// machines need not be each other's.
type halves struct {
	y      *symmetry
	within [3][]int32 // the classes within a machine: of workers, connections and links
	sides  [][]side   // by shape
	facing [][]int32  // by machine and side: which of the neighbour's sides it is
	trunks []trunk
	// perPlace is how many connections a class of machines numbers.
	perPlace int32

	class []int32 // of each machine
	nodes []int   // by class: the machine that is simulated
	// By class and side: the half. Those of connections that the machine numbers
	// have the numbers of these, and others come after all of them.
	half  [][]int32
	after []after // those that come after
	other []int32 // by half: the one that does the other part, or none if it is whole
}

// side is a connection with another machine, as seen from one of its ends.
type side struct {
	at, local int32 // which neighbour; the class within a machine
	foreign   bool  // the neighbour numbers it
	raw       int32 // an example's number within the machine that numbers it
}

// after is a half of a connection that a neighbour numbers.
type after struct {
	number       int // of the connection
	class, local int32
}

// trunk is a link above the leaves that a connection crosses, the first of its
// class within its place.
type trunk struct {
	node  int // that numbers the connection
	local int32
	link  int
}

func newHalves(y *symmetry, within [3][]int32) *halves {
	h := &halves{y: y, within: within, sides: make([][]side, len(y.shapes)), facing: make([][]int32, len(y.shape)), perPlace: slices.Max(within[1]) + 1}
	for i, s := range y.shapes {
		add := func(c localConnection, foreign bool) {
			if c.passage == own {
				return
			}
			t := side{local: within[1][c.local], foreign: foreign, raw: c.local}
			for _, e := range c.ends {
				if e.worker.at != own {
					t.at = e.worker.at
				}
			}
			if !slices.ContainsFunc(h.sides[i], func(u side) bool { return u.at == t.at && u.local == t.local && u.foreign == foreign }) {
				h.sides[i] = append(h.sides[i], t)
			}
		}
		for _, c := range s.connections {
			add(c, false)
		}
		for _, c := range s.foreign {
			add(c, true)
		}
	}
	inParallel(len(y.shape), func(node int) {
		for _, s := range h.sides[y.shape[node]] {
			to := y.neighbours[node][s.at]
			back := int32(slices.Index(y.neighbours[to], int32(node)))
			h.facing[node] = append(h.facing[node], int32(slices.IndexFunc(h.sides[y.shape[to]], func(u side) bool {
				return u.at == back && u.local == s.local && u.foreign != s.foreign
			})))
		}
	})
	for node, number := range y.shape {
		for _, c := range y.shapes[number].connections {
			for _, l := range c.links {
				if place := y.place(node, l); place >= y.cluster.Nodes && slices.Index(within[2], within[2][l.local]) == int(l.local) {
					h.trunks = append(h.trunks, trunk{node, within[1][c.local], y.cluster.LinkAt(place, int(l.local))})
				}
			}
		}
	}
	return h
}

// divide sets the classes, each of which its first member stands for.
func (h *halves) divide(class []int32) {
	h.class, h.nodes, h.half, h.after = class, nil, nil, nil
	for node, c := range class {
		if int(c) == len(h.nodes) {
			h.nodes = append(h.nodes, node)
		}
	}
	next := int32(len(h.nodes)) * h.perPlace
	for c, node := range h.nodes {
		half := make([]int32, len(h.facing[node]))
		for i, s := range h.sides[h.y.shape[node]] {
			if half[i] = int32(c)*h.perPlace + s.local; s.foreign {
				half[i] = next + int32(len(h.after))
				to := int(h.y.neighbours[node][s.at])
				h.after = append(h.after, after{to*h.y.connections + h.y.schedule.Like(to, int(s.raw)), int32(c), s.local})
			}
		}
		h.half = append(h.half, half)
	}
	h.other = slices.Repeat([]int32{none}, int(next)+len(h.after))
	for c, node := range h.nodes {
		for i, half := range h.half[c] {
			h.other[half] = h.facingHalf(node, i)
		}
	}
}

// node returns the machine that a connection is simulated for.
func (h *halves) node(i int) int {
	if at := i - len(h.nodes)*int(h.perPlace); at >= 0 {
		return h.nodes[h.after[at].class]
	}
	return h.nodes[i/int(h.perPlace)]
}

// local returns the class of a connection within its machine.
func (h *halves) local(i int32) int32 {
	if at := i - int32(len(h.nodes))*h.perPlace; at >= 0 {
		return h.after[at].local
	}
	return i % h.perPlace
}

// from returns the half that a machine which stands for a class has of a
// connection that a neighbour numbers.
func (h *halves) from(node, connection int) int32 {
	owner := connection / h.y.connections
	at := int32(slices.Index(h.y.neighbours[node], int32(owner)))
	local := h.within[1][h.y.schedule.Like(owner, connection%h.y.connections)]
	side := slices.IndexFunc(h.sides[h.y.shape[node]], func(s side) bool { return s.foreign && s.at == at && s.local == local })
	return h.half[h.class[node]][side]
}

// facingHalf returns the half that the class of a machine's neighbour has of the
// connection at the machine's i-th side.
func (h *halves) facingHalf(node, i int) int32 {
	to := h.y.neighbours[node][h.sides[h.y.shape[node]][i].at]
	return h.half[h.class[to]][h.facing[node][i]]
}

// each tells, for all machines and in the same order for those of a class, which
// half stood for what is at the other end of each connection with another
// machine, and which does by that machine's class.
func (h *halves) each(f func(node int, seen, done int32)) {
	for node, c := range h.class {
		for i, half := range h.half[c] {
			f(node, h.other[half], h.facingHalf(node, i))
		}
	}
}

// fold returns the fold that the classes make.
func (h *halves) fold() *fold {
	places, _ := h.y.cluster.Places()
	all := slices.Clone(h.class) // groups of leaves are all different
	for i := range places - len(all) {
		all = append(all, int32(len(h.nodes)+i))
	}
	f := newFold(h.y, all, h.within)
	f.halves = h
	return f
}

// echoes returns, by half, those that have their other part from it.
func (h *halves) echoes() [][]int32 {
	echoes := make([][]int32, len(h.other))
	for half, of := range h.other {
		if of != none {
			echoes[of] = append(echoes[of], int32(half))
		}
	}
	return echoes
}

// come has an item come to the halves that have their writer's part from one.
func (x *simulation) come(half int32, size units.Bytes) {
	for _, e := range x.echoes[half] {
		n := &x.connections[e]
		x.slots[n.firstSlot+n.staged%n.slots].last = int64(size)
		n.bytes += int64(size)
		if n.staged++; n.staged == n.put+1 {
			x.send(e)
		}
	}
}

// leave has an item of a half off the links of its end. It has arrived once it is
// off those of the other end, too.
func (x *simulation) leave(half int32) {
	n := &x.connections[half]
	x.traces[half].items = append(x.traces[half].items, x.now)
	n.crossed = true
	for _, e := range x.echoes[half] {
		x.connections[e].ahead++
		x.meet(e)
	}
	x.meet(half)
}

func (x *simulation) meet(half int32) {
	if n := &x.connections[half]; n.crossed && n.ahead > 0 {
		n.crossed = false
		n.ahead--
		x.deliver(half)
	}
}

// credit has the slot of an item become free in the halves that have their
// reader's part from one.
func (x *simulation) credit(half int32, free units.Time) {
	x.traces[half].credits = append(x.traces[half].credits, free)
	for _, e := range x.echoes[half] {
		n := &x.connections[e]
		s := &x.slots[n.firstSlot+n.taken%n.slots]
		s.free, s.left = free, n.from
		n.taken++
		x.wake(e, x.ends[n.firstEnd:n.firstEnd+n.from])
	}
}
