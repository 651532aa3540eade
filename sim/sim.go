// Package sim runs schedules in simulated time: a discrete-event simulation at
// the grain of slices, in integer picoseconds.
//
// Workers follow the rules of package schedule: a step begins when each inbound
// connection holds an item and each outbound one a free slot. The data of a
// step then crosses the links between the two GPUs, or the switch, while the
// worker copies at the rate of its threads; a step ends when both are done. Over
// a network the worker only fills the slot, and the NIC sends it later, one
// item of a connection at a time.
//
// The items that are on a link at one time share it evenly, as packets of many
// senders do. What happens is the same from run to run and from machine to
// machine, as all arithmetic is on integers.
//
// Only flows that share a link need to be gone through in the order of time, by
// events, and of these only that they leave it: when they come is told ahead
// (link.go). Everything else is worked out as soon as it is known, ahead of time:
// instants of items and slots travel with them, and the network of workers gives
// the same result in whatever order they go on (Kahn, 1974). Links that can hold
// nothing up are left out, those that are always crossed together are one, and
// workers, connections and links that nothing tells apart are simulated once
// (symmetry.go), or those that a guess finds to do the same (guess.go). What
// repeats itself is skipped (steady.go), and many machines are shared out among the
// cores (shards.go). None of this changes a time by a picosecond.
//
// Assumptions: a transfer is held up by its slowest link, and takes an even
// share of every link it crosses; switches have no limit but their ports'; an
// item that is read from the switch (NVLS), or added up by the network (SHARP),
// crosses all links at once. All constants come from a [profile.Profile]; in a
// mixed cluster it is that of the slowest GPUs, and the others copy at the rates
// of their own generation.
package sim

import (
	"fmt"

	"tutti/model/profile"
	"tutti/model/schedule"
	"tutti/model/units"
	"tutti/topo"
)

// Options change how a simulation is done and, but for faults, stragglers and
// jitter, not what it finds.
type Options struct {
	// NoSymmetry simulates every worker, even where many do the same.
	NoSymmetry bool
	// Watch, unless nil, is told of every step.
	Watch Watcher
	// Faults slow links down, Stragglers some ranks, and Jitter varies what takes
	// how long. With any of them, every worker is simulated.
	Faults     []Fault
	Stragglers []Straggler
	Jitter     Jitter
	// NIC says how items get onto the network; with any costs of its own, every
	// worker is simulated, too.
	NIC NIC

	everyLink bool // for tests: leave out none, even if it never holds anything up
	anyGuess  bool // for tests: guess what is alike, however little that spares
	anyShards bool // for tests: share out few machines, too, and guess nothing
}

// alike tells whether workers that do the same need be simulated once only. Where
// items are served in turn, those that come at one instant have different ends.
func (o Options) alike(c *topo.Cluster) bool {
	return c.Fabric.Sharing == topo.Fair && !o.NoSymmetry && o.Watch == nil && len(o.Faults) == 0 && len(o.Stragglers) == 0 && o.Jitter.Deviation == 0 && o.NIC == (NIC{})
}

// Watcher follows a simulation. Steps of one worker come in order, those of
// different workers as they become known.
type Watcher interface {
	// Step tells of a step of a worker, by their numbers in the schedule: when the
	// worker was done with the one before, when its items and slots were there,
	// and when it ended.
	Step(worker, step int, from, begin, end units.Time)
	// Crossing tells of an item of a remote connection on its links.
	Crossing(connection int, begin, end units.Time)
}

// Result is what a simulation found.
type Result struct {
	// Time is from the call to the end of the last rank's kernel.
	Time units.Time
	// Base is the part of Time that the launch and the end of the kernel take.
	Base units.Time
	// Events is how many events the simulation took, and Steps how many steps.
	Events, Steps int64
	// Workers is how many workers were simulated, and Of how many there are.
	Workers, Of int

	simulation *simulation
	wires      *wires
}

// Run simulates a schedule on a cluster. The schedule's ranks must be the
// cluster's. It fails for a schedule that stops before its end, as one does
// that [schedule.Verify] refuses.
func Run(s schedule.Schedule, c *topo.Cluster, p *profile.Profile) (Result, error) {
	return RunWith(s, c, p, Options{})
}

// RunWith is [Run] with options.
func RunWith(s schedule.Schedule, c *topo.Cluster, p *profile.Profile, o Options) (Result, error) {
	return NewPlan(s, c, p, o).Run()
}

// result says what a simulation that has run found.
func (x *simulation) result() (Result, error) {
	if x.finished < len(x.workers) {
		if err := x.stranded(); err != nil {
			return Result{}, err
		}
		return Result{}, fmt.Errorf("deadlock after %v: %d of %d workers cannot go on", x.last, len(x.workers)-x.finished, len(x.workers))
	}
	base := x.calls[0].base
	result := Result{Time: base + x.last, Base: base, Events: x.events, Workers: len(x.workers), Of: len(x.workers), simulation: x, wires: x.wires}
	for i := range x.workers {
		result.Steps += int64(x.workers[i].steps)
	}
	return result, nil
}
