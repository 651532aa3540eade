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

	class []int32 // of each machine
	nodes []int   // by class: the machine that is simulated
	base  []int32 // by class, and in all: the first connection that it numbers
	// By class and side: the half. Those of connections that the machine numbers
	// have the numbers of these, and others come after all of them.
	half    [][]int32
	foreign []foreignHalf // those that come after
	others  []int32       // by item: the half that does the other part, or none if it is whole
	folded  *fold
}

// side is a connection with another machine, as seen from one of its ends.
type side struct {
	at, local int32 // which neighbour; the class within a machine
	foreign   bool  // the neighbour numbers it
	raw       int32 // an example's number within the machine that numbers it
}

// foreignHalf is a half of a connection that a neighbour numbers.
type foreignHalf struct {
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
	h := &halves{y: y, within: within, sides: make([][]side, len(y.shapes)), facing: make([][]int32, len(y.shape))}
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
	type above struct{ local, at, link int32 }
	crossed, first := make([][]above, len(y.shapes)), membersOf(within[2]).first
	for i, s := range y.shapes {
		for k := range s.connections {
			c := &s.connections[k]
			for _, l := range s.links(c) {
				if y.place(s.node, l) >= y.cluster.Nodes && first[within[2][l.local]] == l.local {
					crossed[i] = append(crossed[i], above{within[1][c.local], l.at, l.local})
				}
			}
		}
	}
	for node, number := range y.shape {
		for _, c := range crossed[number] {
			h.trunks = append(h.trunks, trunk{node, c.local, y.cluster.LinkAt(int(y.neighbours[node][c.at]), int(c.link))})
		}
	}
	return h
}

// divide sets the classes, each of which its first member stands for.
func (h *halves) divide(class []int32) {
	h.class, h.nodes, h.half, h.foreign = class, nil, nil, nil
	for node, c := range class {
		if int(c) == len(h.nodes) {
			h.nodes = append(h.nodes, node)
		}
	}
	h.base = bases(h.y.connections, h.nodes, membersOf(h.within[1]))
	next := h.base[len(h.nodes)]
	for c, node := range h.nodes {
		half := make([]int32, len(h.facing[node]))
		for i, s := range h.sides[h.y.shape[node]] {
			if half[i] = h.base[c] + s.local; s.foreign {
				half[i] = next + int32(len(h.foreign))
				to := int(h.y.neighbours[node][s.at])
				h.foreign = append(h.foreign, foreignHalf{h.y.connections.first[to] + h.y.schedule.Like(to, int(s.raw)), int32(c), s.local})
			}
		}
		h.half = append(h.half, half)
	}
	h.others = slices.Repeat([]int32{none}, int(next)+len(h.foreign))
	for c, node := range h.nodes {
		for i, half := range h.half[c] {
			h.others[half] = h.facingHalf(node, i)
		}
	}
}

// node returns the machine that an item is simulated for.
func (h *halves) node(item int) int {
	if at := item - h.folded.connections.count(); at >= 0 {
		return h.nodes[h.foreign[at].class]
	}
	class, _ := h.folded.connections.apart(item)
	return h.nodes[class]
}

func (h *halves) items() int           { return len(h.others) }
func (h *halves) other(item int) int32 { return h.others[item] }

func (h *halves) example(item int) int {
	if at := item - h.folded.connections.count(); at >= 0 {
		return h.foreign[at].number
	}
	return h.folded.connections.first(item)
}

func (h *halves) seen(worker, connection int) int32 {
	node, _ := h.y.workers.at(worker)
	owner, raw := h.y.connections.at(connection)
	if node == owner {
		return h.folded.connections.of(connection)
	}
	at := int32(slices.Index(h.y.neighbours[node], int32(owner)))
	local := h.within[1][h.y.schedule.Like(owner, raw)]
	side := slices.IndexFunc(h.sides[h.y.shape[node]], func(s side) bool { return s.foreign && s.at == at && s.local == local })
	return h.half[h.class[node]][side]
}

func (h *halves) hasWorker(item, worker int) bool {
	node, _ := h.y.workers.at(worker)
	return h.others[item] == none || node == h.node(item)
}

func (h *halves) hasLink(item, link int) bool {
	place, _ := h.y.cluster.Place(link)
	return h.others[item] == none || place == h.node(item)
}

func (h *halves) copies(item int32) int {
	locals := h.folded.connections.locals.count
	if at := int(item) - h.folded.connections.count(); at >= 0 {
		return int(locals[h.foreign[at].local])
	}
	_, local := h.folded.connections.apart(int(item))
	return int(locals[local])
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
			f(node, h.others[half], h.facingHalf(node, i))
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
	h.folded = newFold(h.y, all, h.within)
	h.folded.split = h
	return h.folded
}

// halve prepares for the halves that there are.
func (x *simulation) halve() {
	for i := range x.connections {
		if of := x.fold.split.other(i); of != none {
			if x.listeners == nil {
				x.traces, x.listeners = make([]trace, len(x.connections)), make([][]int32, len(x.connections))
				x.early = make([][]message, len(x.connections))
			}
			x.listeners[of] = append(x.listeners[of], int32(i))
		}
	}
}

// message is what a half tells one that has its other part from it.
type message struct {
	half int32 // that is told
	kind messageKind
	at   units.Time
	size units.Bytes // of an item that comes
}

// messageKind is what happens at one end of a connection.
type messageKind uint8

const (
	comes  messageKind = iota // an item is on the links of the writer's end
	leaves                    // an item has left the links of an end
	frees                     // a slot becomes free
)

// tell has a half tell what happens at its end: those that guess also keep it, and
// shards send it to others.
func (x *simulation) tell(half int32, kind messageKind, at units.Time, size units.Bytes) {
	if x.shard == nil {
		x.traces[half].add(kind, at)
	}
	for _, to := range x.listeners[half] {
		if m := (message{to, kind, at, size}); x.shard == nil {
			x.learn(m)
		} else {
			x.shard.outbox = append(x.shard.outbox, m)
			x.told = min(x.told, at)
		}
	}
}

// learn has a half do what happens at its other end.
func (x *simulation) learn(m message) {
	n := &x.connections[m.half]
	switch m.kind {
	case comes:
		s := &x.slots[n.firstSlot+n.staged%n.slots]
		s.ready, s.last = m.at, int64(m.size)
		n.bytes += int64(m.size)
		if n.staged++; n.staged == n.put+1 {
			x.sendAt(m.half, m.at)
		}
	case leaves:
		n.ahead++
		x.meet(m.half)
	case frees:
		if n.taken == n.put { // the item has not been delivered here, at the same instant
			x.early[m.half] = append(x.early[m.half], m)
			return
		}
		s := &x.slots[n.firstSlot+n.taken%n.slots]
		s.free, s.left = m.at, n.from
		n.taken++
		x.wake(m.half, x.ends[n.firstEnd:n.firstEnd+n.from])
	}
}

// meet delivers an item that has left the links of both ends.
func (x *simulation) meet(half int32) {
	if n := &x.connections[half]; n.crossed && n.ahead > 0 {
		n.crossed = false
		n.ahead--
		x.deliver(half)
		if early := x.early[half]; len(early) > 0 {
			m := early[0]
			m.at = max(m.at, x.now) // before only after a wrong guess, from which no event may come of the past
			x.early[half] = early[1:]
			x.learn(m)
		}
	}
}
