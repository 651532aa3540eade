package sim

import (
	"fmt"

	"tutti/model/units"
)

// Straggler is a rank that is late or slow.
type Straggler struct {
	Rank int
	// Delay is how much later than the others it starts.
	Delay units.Time
	// Slow is how many times as long its threads take for everything: what a
	// step costs and what copying does. 0 counts as 1.
	Slow float64
}

// straggle keeps who is late or slow. It fails for a rank that is not there.
func (x *simulation) straggle(stragglers []Straggler, ranks int) error {
	if len(stragglers) == 0 {
		return nil
	}
	x.starts, x.slow = make([]units.Time, len(x.workers)), make([]float64, len(x.workers))
	for _, s := range stragglers {
		if s.Rank < 0 || s.Rank >= ranks {
			return fmt.Errorf("straggler: rank %d: want 0 to %d", s.Rank, ranks-1)
		}
		for id, rank := range x.ranks {
			if int(rank) == s.Rank {
				x.starts[id], x.slow[id] = s.Delay, s.Slow
			}
		}
	}
	return nil
}

// start returns when a worker begins.
func (x *simulation) start(id int) units.Time {
	if x.starts == nil {
		return 0
	}
	return x.starts[id]
}

// slowness returns how many times as long a worker takes, 1 or more.
func (x *simulation) slowness(id int32) float64 {
	if x.slow == nil {
		return 1
	}
	return max(1, x.slow[id])
}

// slowed returns the operation for threads that take so many times as long.
func (o operation) slowed(times float64) operation {
	if times > 1 {
		for _, t := range []*units.Time{&o.turn, &o.overhead, &o.copy, &o.beside} {
			*t = units.Time(float64(*t) * times)
		}
	}
	return o
}
