package sim

import "tutti/model/schedule"

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
	f := &fold{
		workers:     newClasses(nodes, within[0], nm, membersOf(within[0]), y.schedule.Like),
		connections: newClasses(nodes, within[1], nm, membersOf(within[1]), y.schedule.Like),
		links:       newClasses(places, within[2], pm, membersOf(within[2]), func(_, local int) int { return local }),
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
