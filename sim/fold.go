package sim

// fold says which parts of a schedule are simulated, each for a class of parts
// that all do the same at the same instants.
type fold struct {
	workers, connections classes
}

// classes divides entities, which are numbered, into classes.
type classes struct {
	total int
	// class is that of each entity, and member the first of each class. Without
	// them, each entity is a class of its own.
	class, member []int32
}

func (c *classes) count() int {
	if c.class == nil {
		return c.total
	}
	return len(c.member)
}

// of returns the class of an entity.
func (c *classes) of(entity int) int32 {
	if c.class == nil {
		return int32(entity)
	}
	return c.class[entity]
}

// first returns the first entity of a class.
func (c *classes) first(class int) int {
	if c.class == nil {
		return class
	}
	return int(c.member[class])
}
