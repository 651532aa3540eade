package sweep

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"

	"golang.org/x/sync/semaphore"

	"tutti/experiments/rows"
	"tutti/model/units"
	"tutti/sim"
)

// large is from how many workers on a job's need of memory is worth estimating.
const large = 1 << 17

// need estimates the memory that the job takes: nothing worth speaking of unless
// it is large.
func (j Job) need() units.Bytes {
	if j.schedule.Workers() < large {
		return 0
	}
	return sim.Need(j.schedule, j.cluster, j.profile, j.options)
}

// MemoryError says that a case needs more memory than there is.
type MemoryError struct {
	Job         Job
	Need, Limit units.Bytes
}

func (e *MemoryError) Error() string {
	return fmt.Sprintf("%v needs about %.1f GiB of memory, and %.1f GiB may be used", e.Job, float64(e.Need)/float64(units.GiB), float64(e.Limit)/float64(units.GiB))
}

// String names the case, as in "allreduce ring over simple on 16 ranks, 1 GiB".
func (j Job) String() string {
	t := j.Task()
	return fmt.Sprintf("%v %v over %v on %d ranks, %v", t.Collective, t.Algorithm, t.Protocol, t.Ranks, t.Bytes())
}

// Done is a case that has been simulated.
type Done struct {
	Job int // its place in the list
	Row rows.Row
}

// Run simulates the jobs, on as many cores as there are and within a limit of
// memory (0: none), and returns those that are done, in the order of the list.
// It calls started, from one goroutine at a time, when a job starts. A
// [*MemoryError] comes before anything runs. When the context ends, or a job
// fails, it returns at once, with what is done and the cause.
func Run(ctx context.Context, jobs []Job, limit units.Bytes, started func(Job)) ([]Done, error) {
	needs := make([]int64, len(jobs))
	for i, j := range jobs {
		need := j.need()
		if limit > 0 && need > limit {
			return nil, &MemoryError{j, need, limit}
		}
		needs[i] = int64(need)
	}
	order := make([]int, len(jobs)) // the longest first, so that none is left to the end alone
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(jobs[b].work, jobs[a].work) })
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	type result struct {
		Done
		err error
	}
	results := make(chan result, len(jobs))
	begin := make(chan int) // jobs that have a core and room
	cores, memory := semaphore.NewWeighted(int64(runtime.GOMAXPROCS(0))), semaphore.NewWeighted(max(1, int64(limit)))
	go func() {
		for _, i := range order {
			weight := min(needs[i], int64(limit))
			if cores.Acquire(ctx, 1) != nil || memory.Acquire(ctx, weight) != nil {
				return
			}
			select {
			case begin <- i:
			case <-ctx.Done():
				return
			}
			go func() {
				defer cores.Release(1)
				defer memory.Release(weight)
				row, err := jobs[i].run()
				results <- result{Done{i, row}, err}
			}()
		}
	}()
	var done []Done
	for len(done) < len(jobs) {
		select {
		case i := <-begin:
			started(jobs[i])
		case r := <-results:
			if r.err != nil {
				cancel(r.err)
				continue
			}
			done = append(done, r.Done)
		case <-ctx.Done():
			sortDone(done)
			return done, context.Cause(ctx)
		}
	}
	sortDone(done)
	return done, nil
}

func sortDone(done []Done) {
	slices.SortFunc(done, func(a, b Done) int { return cmp.Compare(a.Job, b.Job) })
}

// Rows returns the rows of what is done.
func Rows(done []Done) []rows.Row {
	list := make([]rows.Row, len(done))
	for i, d := range done {
		list[i] = d.Row
	}
	return list
}

// run simulates one case.
func (j Job) run() (rows.Row, error) {
	t := j.Task()
	result, err := sim.RunWith(j.schedule, j.cluster, j.profile, j.options)
	if err != nil {
		return rows.Row{}, fmt.Errorf("%v: %w", j, err)
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
