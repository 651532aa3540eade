package schedule

import "slices"

// clock is a vector clock: how many steps of each worker are certain to have
// come before.
type clock []int32

// join moves the clock on to come after all that the other comes after.
func (c clock) join(other clock) {
	for i, steps := range other {
		c[i] = max(c[i], steps)
	}
}

// joined returns the earliest clock that comes after both; it may be b.
func joined(a, b clock) clock {
	if a == nil {
		return b
	}
	sum := slices.Clone(a)
	sum.join(b)
	return sum
}

// after tells whether an access is certain to have come before.
func (c clock) after(a access) bool { return c[a.worker] > int32(a.step) }
