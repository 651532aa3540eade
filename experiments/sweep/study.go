// Package sweep simulates many cases and gives a result row for each: clusters
// by algorithms by protocols by channels by sizes, on all cores. A study can be
// divided into shards that run apart, on any machines, and whose rows [Merge]
// brings together.
package sweep

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"tutti/experiments/traffic"
	"tutti/model"
	"tutti/model/profile"
	"tutti/model/schedule"
	"tutti/model/units"
	"tutti/sim"
	"tutti/topo"
)

// Study says what to simulate.
type Study struct {
	Clusters   []*topo.Cluster
	Collective model.Collective
	// Root is the rank that Broadcast starts from and Reduce ends at.
	Root int
	// Algorithms are those wanted. Without any, tuning picks one for each size.
	Algorithms []model.Algorithm
	// Protocols are those wanted. Without any, tuning picks one for each
	// algorithm and size.
	Protocols []model.Protocol
	// Channels are the numbers of channels to use; 0, or none at all, is as many
	// as NCCL does.
	Channels []int
	// Sizes are those of each rank's buffer, whole elements and not zero.
	Sizes    []units.Bytes
	Datatype model.Datatype
	Redop    model.Redop
	// Named are those of the algorithms that the user names (see [NewMaker]).
	Named []model.Algorithm
	// Profile has the constants, or is nil for those of the machine's GPUs.
	Profile *profile.Profile
	Options sim.Options
	// Seeds, above 1, is with how many seeds each case is simulated, from that of
	// Options.Jitter on.
	Seeds int
	// Beside are calls that run beside each case's own.
	Beside []Beside
	// Links, unless nil, lists what a case puts on links: [traffic.Links] or
	// [traffic.Each]. Map asks for a map of it.
	Links func(sim.Result, *topo.Cluster) []traffic.Link
	Map   bool
}

// Place is where in a study a case stands: the indices of its choices.
type Place struct{ Cluster, Algorithm, Protocol, Channels, Size int }

// Job is one case of a study.
type Job struct {
	// Place tells the case apart from the study's others, and finds its
	// counterpart in another study.
	Place Place

	cluster  *topo.Cluster
	schedule schedule.Schedule
	beside   []sim.Call
	profile  *profile.Profile
	options  sim.Options
	seeds    int
	links    func(sim.Result, *topo.Cluster) []traffic.Link
	mapped   bool
	work     int64     // steps, about
	plan     *sim.Plan // or nil: it is made when the job runs
}

// Task returns the call that the job simulates.
func (j Job) Task() schedule.Task { return j.schedule.Task() }

// Seeds is with how many seeds the job is simulated: 1 unless jitter varies.
func (j Job) Seeds() int { return j.seeds }

// Seeds sums up those of jobs: how many simulations they are.
func Seeds(jobs []Job) (sum int) {
	for _, j := range jobs {
		sum += j.seeds
	}
	return sum
}

// Jobs lists the cases of a study: cluster by cluster, and there by algorithm,
// protocol, channels and size. What a cluster cannot run is left out, each with a
// note that says why. It fails when no case is left.
func (s Study) Jobs() (jobs []Job, notes []string, err error) {
	for i, c := range s.Clusters {
		more, why := s.on(i, c)
		jobs = append(jobs, more...)
		notes = append(notes, why...)
	}
	if len(jobs) == 0 {
		return nil, nil, fmt.Errorf("nothing to simulate: %s", strings.Join(notes, "; "))
	}
	return jobs, notes, nil
}

// on lists the cases on one cluster.
func (s Study) on(at int, c *topo.Cluster) (jobs []Job, notes []string) {
	maker := NewMaker(c, s.Named...)
	constants := s.Profile
	if constants == nil {
		constants = profile.ForGPU(c.Machine.SM())
	}
	place := Place{Cluster: at}
	for i, a := range orElse(s.Algorithms, Auto) {
		place.Algorithm = i
		for i, p := range orElse(s.Protocols, Auto) {
			place.Protocol = i
			for i, channels := range orElse(s.Channels, 0) {
				place.Channels = i
				for i, size := range s.Sizes {
					place.Size = i
					made, err := maker.Schedule(schedule.Task{
						Collective: s.Collective, Root: s.Root, Algorithm: a, Protocol: p, Datatype: s.Datatype, Redop: s.Redop, Channels: channels,
					}, size)
					var beside []sim.Call
					if err == nil {
						beside, err = maker.beside(s.Beside)
					}
					if err != nil {
						if note := fmt.Sprintf("%s: %v", c.Title(), err); !slices.Contains(notes, note) {
							notes = append(notes, note)
						}
						continue
					}
					jobs = append(jobs, Job{place, c, made, beside, constants, s.Options, max(1, s.Seeds), s.Links, s.Map, work(made), nil})
				}
			}
		}
	}
	return jobs, notes
}

// orElse returns the choices or, if there are none, one.
func orElse[T any](choices []T, one T) []T {
	if len(choices) == 0 {
		return []T{one}
	}
	return choices
}

// work estimates the steps of a schedule from a few of its workers.
func work(s schedule.Schedule) (steps int64) {
	const looked = 64
	every := max(1, s.Workers()/looked)
	for w := 0; w < s.Workers(); w += every {
		steps += int64(s.Worker(w).Steps) * int64(every)
	}
	return steps
}

// Compare orders places as [Study.Jobs] lists them.
func (p Place) Compare(other Place) int {
	return cmp.Or(
		cmp.Compare(p.Cluster, other.Cluster), cmp.Compare(p.Algorithm, other.Algorithm), cmp.Compare(p.Protocol, other.Protocol),
		cmp.Compare(p.Channels, other.Channels), cmp.Compare(p.Size, other.Size),
	)
}
