// Package sweep simulates many cases and gives a result row for each: clusters
// by algorithms by protocols by sizes, on all cores.
package sweep

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"tutti/experiments/rows"
	"tutti/model"
	"tutti/model/profile"
	"tutti/model/schedule"
	"tutti/model/units"
	"tutti/sim"
	"tutti/topo"
)

// Study says what to simulate.
type Study struct {
	Machine *topo.System
	// Nodes are the cluster sizes.
	Nodes []int
	// Join returns a cluster of so many of the machines: on a rail-optimised fabric
	// if it is nil.
	Join func(nodes int) (*topo.Cluster, error)
	// GPUs is how many of each machine's GPUs take part; 0 for all.
	GPUs       int
	Collective model.Collective
	// Algorithms are those wanted. Without any, tuning picks one for each size.
	Algorithms []model.Algorithm
	// Protocols are those wanted. Without any, tuning picks one for each
	// algorithm and size.
	Protocols []model.Protocol
	// Sizes are those of each rank's buffer, whole elements and not zero.
	Sizes    []units.Bytes
	Datatype model.Datatype
	Redop    model.Redop
	// Channels is the number of channels to use, or 0 for as many as NCCL does.
	Channels int
	// NoSymmetry simulates every worker.
	NoSymmetry bool
	// Profile has the constants, or is nil for those of the machine's GPUs.
	Profile *profile.Profile
}

// Job is one case of a study.
type Job struct {
	cluster  *topo.Cluster
	schedule schedule.Schedule
	profile  *profile.Profile
	work     int // steps, about
	options  sim.Options
}

// Task returns the call that the job simulates.
func (j Job) Task() schedule.Task { return j.schedule.Task() }

// Jobs lists the cases of a study: cluster by cluster, and there by algorithm,
// protocol and size. Algorithms and protocols that a cluster cannot run are left
// out, each with a note that says why. It fails for a cluster that cannot be
// and when no case is left.
func (s Study) Jobs() (jobs []Job, notes []string, err error) {
	for _, nodes := range s.Nodes {
		join := s.Join
		if join == nil {
			join = func(nodes int) (*topo.Cluster, error) {
				return topo.NewCluster(s.Machine, nodes, s.GPUs, topo.RailOptimised)
			}
		}
		c, err := join(nodes)
		if err != nil {
			return nil, nil, err
		}
		more, why := s.on(c)
		jobs = append(jobs, more...)
		notes = append(notes, why...)
	}
	if len(jobs) == 0 {
		return nil, nil, fmt.Errorf("nothing to simulate: %s", strings.Join(notes, "; "))
	}
	return jobs, notes, nil
}

// on lists the cases on one cluster.
func (s Study) on(c *topo.Cluster) (jobs []Job, notes []string) {
	maker := NewMaker(c)
	constants := s.Profile
	if constants == nil {
		constants = profile.ForGPU(c.Machine.SM())
	}
	for _, a := range orAuto(s.Algorithms) {
		for _, p := range orAuto(s.Protocols) {
			for _, size := range s.Sizes {
				made, err := maker.Schedule(schedule.Task{
					Collective: s.Collective, Algorithm: a, Protocol: p, Datatype: s.Datatype, Redop: s.Redop, Channels: s.Channels,
				}, size)
				if err != nil {
					if note := fmt.Sprintf("%d x %s: %v", c.Nodes, c.Machine.Name, err); !slices.Contains(notes, note) {
						notes = append(notes, note)
					}
					continue
				}
				jobs = append(jobs, Job{c, made, constants, made.Workers() * made.Worker(0).Steps, sim.Options{NoSymmetry: s.NoSymmetry}})
			}
		}
	}
	return jobs, notes
}

// orAuto returns the choices or, if there are none, [Auto].
func orAuto[T ~int](choices []T) []T {
	if len(choices) == 0 {
		return []T{Auto}
	}
	return choices
}

// Run simulates the jobs, on as many cores as there are, and returns a row for
// each, in their order. It calls started, from one goroutine at a time, when a
// job starts. When the context ends it returns at once, with the rows that are
// finished and the context's error.
func Run(ctx context.Context, jobs []Job, started func(Job)) ([]rows.Row, error) {
	order := make([]int, len(jobs)) // the longest first, so that none is left to the end alone
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(jobs[b].work, jobs[a].work) })
	type result struct {
		job int
		row rows.Row
		err error
	}
	done, free := make(chan result, len(jobs)), make(chan struct{}, runtime.GOMAXPROCS(0))
	go func() {
		for _, i := range order {
			select {
			case <-ctx.Done():
				return
			case free <- struct{}{}:
			}
			started(jobs[i])
			go func() {
				row, err := jobs[i].run()
				done <- result{i, row, err}
				<-free
			}()
		}
	}()
	results, finished := make([]rows.Row, len(jobs)), make([]bool, len(jobs))
	for range jobs {
		select {
		case r := <-done:
			if r.err != nil {
				return nil, r.err
			}
			results[r.job], finished[r.job] = r.row, true
		case <-ctx.Done():
			var some []rows.Row
			for i, row := range results {
				if finished[i] {
					some = append(some, row)
				}
			}
			return some, ctx.Err()
		}
	}
	return results, nil
}

// Large tells whether the job has so many workers that its need of memory is
// worth estimating.
func (j Job) Large() bool { return j.schedule.Workers() > 1<<20 }

// Need estimates the memory that simulating the job takes.
func (j Job) Need() units.Bytes { return sim.Need(j.schedule, j.cluster, j.profile, j.options) }

// run simulates one case.
func (j Job) run() (rows.Row, error) {
	t := j.schedule.Task()
	result, err := sim.RunWith(j.schedule, j.cluster, j.profile, j.options)
	if err != nil {
		return rows.Row{}, fmt.Errorf("%v %v over %v on %d ranks, %v: %w", t.Collective, t.Algorithm, t.Protocol, t.Ranks, t.Bytes(), err)
	}
	cause := result.Cause()
	why := &rows.Why{Bound: sim.Bound(t, j.cluster), Bottleneck: cause.Name, Share: cause.Share, Workers: result.Workers, Of: result.Of}
	if t.Nodes > 1 {
		why.Fabric = j.cluster.Fabric.Name
	}
	return rows.Row{
		Source: "sim", Machine: j.cluster.Machine.Name, Collective: t.Collective, Algorithm: t.Algorithm, Protocol: t.Protocol,
		Nodes: t.Nodes, Ranks: t.Ranks, Channels: t.Channels, Datatype: t.Datatype, Redop: t.Redop, Bytes: t.Bytes(), Time: result.Time,
		Why: why,
	}, nil
}
