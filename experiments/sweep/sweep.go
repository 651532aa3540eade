// Package sweep simulates many cases and gives a result row for each: clusters
// by algorithms by protocols by sizes, on all cores.
package sweep

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

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
}

// Job is one case of a study.
type Job struct {
	cluster  *topo.Cluster
	schedule schedule.Schedule
	profile  *profile.Profile
	work     int // steps, about
}

// Task returns the call that the job simulates.
func (j Job) Task() schedule.Task { return j.schedule.Task() }

// Jobs lists the cases of a study: cluster by cluster, and there by algorithm,
// protocol and size. Algorithms and protocols that a cluster cannot run are left
// out, each with a note that says why. It fails for a cluster that cannot be
// and when no case is left.
func (s Study) Jobs() (jobs []Job, notes []string, err error) {
	for _, nodes := range s.Nodes {
		c, err := topo.NewCluster(s.Machine, nodes, s.GPUs, topo.RailOptimised)
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
	constants := profile.ForGPU(c.Machine.SM())
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
				jobs = append(jobs, Job{c, made, constants, made.Workers() * made.Worker(0).Steps})
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
// job starts.
func Run(jobs []Job, started func(Job)) ([]rows.Row, error) {
	results := make([]rows.Row, len(jobs))
	order := make([]int, len(jobs)) // the longest first, so that none is left to the end alone
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(jobs[b].work, jobs[a].work) })
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, i := range order {
		// The call waits for a free core, so that this is when the job starts.
		group.Go(func() (err error) {
			results[i], err = jobs[i].run()
			return err
		})
		started(jobs[i])
	}
	return results, group.Wait()
}

// run simulates one case.
func (j Job) run() (rows.Row, error) {
	t := j.schedule.Task()
	result, err := sim.Run(j.schedule, j.cluster, j.profile)
	if err != nil {
		return rows.Row{}, fmt.Errorf("%v %v over %v on %d ranks, %v: %w", t.Collective, t.Algorithm, t.Protocol, t.Ranks, t.Bytes(), err)
	}
	return rows.Row{
		Source: "sim", Machine: j.cluster.Machine.Name, Collective: t.Collective, Algorithm: t.Algorithm, Protocol: t.Protocol,
		Nodes: t.Nodes, Ranks: t.Ranks, Channels: t.Channels, Datatype: t.Datatype, Redop: t.Redop, Bytes: t.Bytes(), Time: result.Time,
	}, nil
}
