package sim

import (
	"sort"

	"tutti/model/schedule"
)

// fold says which parts of a schedule are simulated, each for a class of parts
// that all do the same at the same instants.
type fold struct {
	workers, connections, links classes
	split                       split
}

// newFold returns the fold that has places, and what is within them, in the given
// classes.
func newFold(y *symmetry, places []int32, within [3][]int32) *fold {
	nodes := places[:y.cluster.Nodes]
	pm, nm := membersOf(places), membersOf(nodes)
	perPlace := len(within[2])
	f := &fold{
		workers:     newClasses(y.workers, nodes, within[0], nm, y.schedule.Like),
		connections: newClasses(y.connections, nodes, within[1], nm, y.schedule.Like),
		links: newClasses(newBlocks(len(places), func(place int) int { return place * perPlace }), places, within[2], pm,
			func(_, local int) int { return local }),
	}
	f.split = unsplit{f}
	return f
}

// unfolded returns the fold that has each entity in a class of its own.
func unfolded(s schedule.Schedule) *fold {
	f := &fold{workers: classes{total: s.Workers()}, connections: classes{total: s.Connections()}}
	f.split = unsplit{f}
	return f
}

// split says which connections are simulated as two halves, one for either end,
// and what belongs to which of them. Halves have numbers like connections that
// are whole; some come after all of these.
type split interface {
	// items returns how many connections and halves are simulated.
	items() int
	// example returns the connection that an item is an example of.
	example(item int) int
	// other returns the half that does what a half's other end does, or none if the
	// item is whole.
	other(item int) int32
	// seen returns which item a worker that is an example has for one of its
	// connections.
	seen(worker, connection int) int32
	// hasWorker and hasLink tell whether a half is simulated with a worker at its
	// ends and a link that it crosses.
	hasWorker(item, worker int) bool
	hasLink(item, link int) bool
	// copies returns how many connections an item stands for, on one machine or on
	// as many as the links stand for that it crosses.
	copies(item int32) int
}

// unsplit is the split of a fold that has no halves.
type unsplit struct{ *fold }

func (w unsplit) items() int                   { return w.connections.count() }
func (w unsplit) example(item int) int         { return w.connections.first(item) }
func (w unsplit) other(int) int32              { return none }
func (w unsplit) seen(_, connection int) int32 { return w.connections.of(connection) }
func (w unsplit) hasWorker(_, _ int) bool      { return true }
func (w unsplit) hasLink(_, _ int) bool        { return true }
func (w unsplit) copies(item int32) int        { return w.connections.size(item) }

// classes divides entities, which are numbered place by place, into classes:
// two are in one class if their places are, and they are within their places.
// Without places, each entity is a class of its own. Within a place that has fewer
// entities than others, the last classes are missing.
type classes struct {
	total          int
	blocks         blocks
	place, local   []int32                    // the class of each
	like           func(place, local int) int // of a place, to be looked up for one within it: an involution
	places, locals members
	base           []int32 // by class of places, and in all: the first class of entities
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

func newClasses(b blocks, place, local []int32, places members, like func(place, local int) int) classes {
	c := classes{blocks: b, place: place, local: local, like: like, places: places, locals: membersOf(local)}
	c.base = bases(b, places.first, c.locals)
	return c
}

// bases returns the first class of entities of each class of places, of which
// examples are given, and how many there are in all. What is within a place at all
// is so within all places of its class, and comes before what is not.
func bases[T int | int32](b blocks, examples []T, locals members) []int32 {
	base := make([]int32, len(examples)+1)
	for i, example := range examples {
		n := sort.Search(len(locals.first), func(class int) bool { return int(locals.first[class]) >= b.size(int(example)) })
		base[i+1] = base[i] + int32(n)
	}
	return base
}

func (c *classes) count() int {
	if c.place == nil {
		return c.total
	}
	return int(c.base[len(c.base)-1])
}

// of returns the class of an entity.
func (c *classes) of(entity int) int32 {
	if c.place == nil {
		return int32(entity)
	}
	return c.at(c.blocks.at(entity))
}

// at returns the class of an entity by its place.
func (c *classes) at(place, local int) int32 {
	return c.base[c.place[place]] + c.local[c.like(place, local)]
}

// apart returns the class of places that a class has, and that within them.
func (c *classes) apart(class int) (place, local int) {
	if each := len(c.locals.first); c.blocks.even {
		return class / each, class % each
	}
	place = sort.Search(len(c.base), func(i int) bool { return int(c.base[i]) > class }) - 1
	return place, class - int(c.base[place])
}

// first returns the first entity of a class.
func (c *classes) first(class int) int {
	if c.place == nil {
		return class
	}
	of, local := c.apart(class)
	place := int(c.places.first[of])
	return c.blocks.first[place] + c.like(place, int(c.locals.first[local]))
}

// size returns how many entities a class has.
func (c *classes) size(class int32) int {
	if c.place == nil {
		return 1
	}
	place, local := c.apart(int(class))
	return int(c.places.count[place]) * int(c.locals.count[local])
}
