package sim

import (
	"tutti/model/schedule"
	"tutti/topo"
)

// fold says which parts of a schedule are simulated, each for a class of parts
// that all do the same at the same instants.
type fold struct {
	workers, connections, links classes
	halves                      *halves // or nil: neighbours of a class are of one class
}

// newFold returns the fold that has places, and what is within them, in the given
// classes.
func newFold(y *symmetry, places []int32, within [3][]int32) *fold {
	nodes := places[:y.cluster.Nodes]
	pm, nm := membersOf(places), membersOf(nodes)
	return &fold{
		workers:     newClasses(nodes, within[0], nm, membersOf(within[0]), y.schedule.Like),
		connections: newClasses(nodes, within[1], nm, membersOf(within[1]), y.schedule.Like),
		links:       newClasses(places, within[2], pm, membersOf(within[2]), func(_, local int) int { return local }),
	}
}

// unfolded returns the fold that has each entity in a class of its own.
func unfolded(s schedule.Schedule) *fold {
	return &fold{workers: classes{total: s.Workers()}, connections: classes{total: s.Connections()}}
}

// items returns how many connections are simulated.
func (f *fold) items() int {
	if f.halves != nil {
		return len(f.halves.other)
	}
	return f.connections.count()
}

// example returns the connection that one of those simulated is an example of.
func (f *fold) example(i int) int {
	if at := i - f.connections.count(); at >= 0 {
		return f.halves.after[at].number
	}
	return f.connections.first(i)
}

// seen returns which of the connections that are simulated a worker that is an
// example has for one of its own.
func (f *fold) seen(worker, connection int) int32 {
	if f.halves != nil {
		if node := worker / f.workers.perPlace; node != connection/f.connections.perPlace {
			return f.halves.from(node, connection)
		}
	}
	return f.connections.of(connection)
}

// end returns the class of a worker at the end of a connection that is simulated,
// or none if it is at the other end of a half.
func (f *fold) end(i, worker int) int32 {
	if f.halves != nil && f.halves.other[i] != none && worker/f.workers.perPlace != f.halves.node(i) {
		return none
	}
	return f.workers.of(worker)
}

// here tells whether a link is simulated with a connection that crosses it: one
// of a half is not if it is at the other end or in between.
func (f *fold) here(i int, c *topo.Cluster, link int) bool {
	if f.halves == nil || f.halves.other[i] == none {
		return true
	}
	place, _ := c.Place(link)
	return place == f.halves.node(i)
}

// copies returns how many connections of one machine, or of all if there are no
// halves, one that is simulated stands for.
func (f *fold) copies(i int32) int {
	if f.halves == nil {
		return f.connections.size(i)
	}
	return int(f.connections.locals.count[f.halves.local(i)])
}

// classes divides entities, which are numbered place by place, into classes:
// two are in one class if their places are, and they are within their places.
// Without places, each entity is a class of its own.
type classes struct {
	total, perPlace int
	place, local    []int32                    // the class of each
	like            func(place, local int) int // of a place, to be looked up for one within it: an involution
	places, locals  members
}

// members tells of each class its first member, and how many it has.
type members struct{ first, count []int32 }

func membersOf(class []int32) (m members) {
	for i, c := range class {
		if int(c) == len(m.first) {
			m.first, m.count = append(m.first, int32(i)), append(m.count, 0)
		}
		m.count[c]++
	}
	return m
}

func newClasses(place, local []int32, places, locals members, like func(place, local int) int) classes {
	return classes{
		total: len(place) * len(local), perPlace: len(local), place: place, local: local, like: like,
		places: places, locals: locals,
	}
}

func (c *classes) count() int {
	if c.place == nil {
		return c.total
	}
	return len(c.places.first) * len(c.locals.first)
}

// of returns the class of an entity.
func (c *classes) of(entity int) int32 {
	if c.place == nil {
		return int32(entity)
	}
	return c.at(entity/c.perPlace, entity%c.perPlace)
}

// at returns the class of an entity by its place.
func (c *classes) at(place, local int) int32 {
	return c.place[place]*int32(len(c.locals.first)) + c.local[c.like(place, local)]
}

// first returns the first entity of a class.
func (c *classes) first(class int) int {
	if c.place == nil {
		return class
	}
	n := len(c.locals.first)
	place := int(c.places.first[class/n])
	return place*c.perPlace + c.like(place, int(c.locals.first[class%n]))
}

// size returns how many entities a class has.
func (c *classes) size(class int32) int {
	if c.place == nil {
		return 1
	}
	n := int32(len(c.locals.first))
	return int(c.places.count[class/n]) * int(c.locals.count[class%n])
}
