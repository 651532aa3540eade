package sim

import (
	"tutti/model/splitmix"
	"tutti/model/units"
)

// Jitter varies how long things take: each step of each worker (what the step
// costs, and its copying), and the time from the end of each item's way until
// its reader knows of it. Each takes its time by a factor of its own, from a
// normal distribution of mean 1, never below 0. What links carry does not vary.
//
// A factor is a hash of the seed, the worker or connection, and the step or item:
// it does not depend on the order in which the simulation goes on.
type Jitter struct {
	// Deviation is the standard deviation of the factors, as in 0.05; 0 is none.
	Deviation float64
	Seed      uint64
}

// factor draws one: the sum of twelve uniform numbers, less 6, is close to normal
// with a deviation of 1, and takes no function that differs between machines.
func (j *Jitter) factor(of uint64, entity, at int32) float64 {
	h := splitmix.Mix(j.Seed ^ splitmix.Mix(of<<62^uint64(uint32(entity))<<31^uint64(uint32(at))))
	sum := uint64(0)
	for range 3 {
		h = splitmix.Mix(h)
		sum += h&0xffff + h>>16&0xffff + h>>32&0xffff + h>>48
	}
	normal := float64(sum)/(1<<16) - 6
	return max(0, 1+float64(j.Deviation*normal))
}

// What is varied.
const (
	ofStep = iota + 1
	ofArrival
)

// step varies the overhead and the copying of a worker's step.
func (j *Jitter) step(worker, step int32, overhead, copying units.Time) (units.Time, units.Time) {
	f := j.factor(ofStep, worker, step)
	return units.Time(float64(overhead) * f), units.Time(float64(copying) * f)
}

// arrival varies the arrival of an item, of the connection with the given first
// slot.
func (j *Jitter) arrival(slot, item int32, t units.Time) units.Time {
	return units.Time(float64(t) * j.factor(ofArrival, slot, item))
}
