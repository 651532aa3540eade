package sweep

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"tutti/experiments/rows"
	"tutti/sim"
)

// Shard is one part of a study: the Index-th of Count, from 1.
type Shard struct{ Index, Count int }

// Of returns the shard's part of a study's cases, as their places in the list:
// longest first, each case goes to the shard that has the least to do so far, so
// that all take about as long. Shards of one count have all cases, each once,
// whoever computes them.
func (s Shard) Of(jobs []Job) (part []int) {
	costs, order := make([]int64, len(jobs)), make([]int, len(jobs))
	for i, j := range jobs {
		costs[i], order[i] = j.cost(), i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(costs[b], costs[a]) })
	loads := make([]int64, s.Count)
	for _, i := range order {
		least := slices.Index(loads, slices.Min(loads))
		loads[least] += costs[i]
		if least == s.Index-1 {
			part = append(part, i)
		}
	}
	slices.Sort(part)
	return part
}

// cost estimates how long the job takes, in steps that are simulated, once for
// all workers that do the same.
func (j Job) cost() int64 {
	const start = 1000 // that a case costs anyhow, about
	steps := int64(start)
	for _, c := range j.calls() {
		steps += sim.NewPlan(c.Schedule, j.cluster, j.profile, j.options).Work()
		if len(j.beside) > 0 { // each runs alone, too, and all at once without symmetry
			steps += work(c.Schedule)
		}
	}
	return steps * int64(j.seeds)
}

// digest returns what tells a study apart: a digest of its cases, with their
// machines, fabrics and constants.
func digest(jobs []Job) string {
	h := sha256.New()
	var last Job
	for _, j := range jobs {
		if j.cluster != last.cluster {
			fmt.Fprint(h, j.cluster.Machine.Name)
			for kind, m := range j.cluster.Machines() {
				fmt.Fprintf(h, " %+v %+v %v", m.Nodes, m.Links, j.cluster.Rails(kind))
			}
			fmt.Fprintf(h, " %+v %v\n", j.cluster.Fabric, j.cluster.ThroughHost)
		}
		if j.profile != last.profile {
			fmt.Fprintf(h, "%+v\n", *j.profile)
		}
		fmt.Fprintf(h, "%+v\n", j.Task())
		for _, b := range j.beside {
			fmt.Fprintf(h, "%+v %v %v\n", b.Schedule.Task(), b.Start, b.After)
		}
		if o := j.options; len(o.Faults)+len(o.Stragglers) > 0 || o.Jitter.Deviation > 0 || o.NIC != (sim.NIC{}) {
			fmt.Fprintf(h, "%+v %+v %+v %+v %d\n", o.Faults, o.Stragglers, o.Jitter, o.NIC, j.seeds)
		}
		last = j
	}
	return hex.EncodeToString(h.Sum(nil)[:6])
}

// Number writes the cases' numbers into the rows of a part of a study.
func Number(list []Done, part []int, jobs []Job) {
	study := digest(jobs)
	for i := range list {
		list[i].Row.Case = rows.Case{Study: study, Number: part[list[i].Job] + 1, Of: len(jobs)}
	}
}
