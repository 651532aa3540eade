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
// Assumptions: a transfer is held up by its slowest link, and takes an even
// share of every link it crosses; switches have no limit but their ports'; an
// item that is read from the switch (NVLS) crosses all links at once. All
// constants come from a [profile.Profile].
package sim

import (
	"fmt"

	"tutti/model/profile"
	"tutti/model/schedule"
	"tutti/model/units"
	"tutti/topo"
)

// Result is what a simulation found.
type Result struct {
	// Time is from the call to the end of the last rank's kernel.
	Time units.Time
	// Events is how many events the simulation took.
	Events int64
}

// Run simulates a schedule on a cluster. The schedule's ranks must be the
// cluster's. It fails for a schedule that stops before its end, as one does
// that [schedule.Verify] refuses.
func Run(s schedule.Schedule, c *topo.Cluster, p *profile.Profile) (Result, error) {
	if task := s.Task(); task.Ranks != c.Ranks() {
		return Result{}, fmt.Errorf("a schedule for %d ranks does not run on %d", task.Ranks, c.Ranks())
	}
	x := newSimulation(s, c, p, findFold(s, c, p))
	x.run()
	if x.finished < len(x.workers) {
		return Result{}, fmt.Errorf("deadlock after %v: %d of %d workers cannot go on", x.last, len(x.workers)-x.finished, len(x.workers))
	}
	task := s.Task()
	return Result{Time: p.Base[task.Algorithm][task.Protocol] + x.last, Events: x.events}, nil
}
