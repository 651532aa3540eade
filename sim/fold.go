package sim

// fold says which parts of a schedule are simulated, each for a class of parts
// that all do the same at the same instants.
type fold struct {
	workers, connections, links classes
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
