package sweep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"golang.org/x/sync/semaphore"

	"tutti/experiments/rows"
	"tutti/experiments/traffic"
	"tutti/model/units"
	"tutti/sim"
)

// large is from how many workers and connections on a job's need of memory is
// worth estimating.
const large = 1 << 17

// need estimates the memory that the job takes: nothing worth speaking of unless
// it is large. If it is of one call, its plan is kept.
func (j *Job) need() (sum units.Bytes) {
	calls, parts := j.calls(), 0
	for _, c := range calls {
		parts += c.Schedule.Workers() + c.Schedule.Connections()
	}
	if parts < large {
		return 0
	}
	o := j.options
	o.NoSymmetry = o.NoSymmetry || len(calls) > 1
	for _, c := range calls {
		plan := sim.NewPlan(c.Schedule, j.cluster, j.profile, o)
		sum += plan.Need()
		if len(calls) == 1 {
			j.plan = plan
		}
	}
	return sum
}

// MemoryError says that a case needs more memory than there is.
type MemoryError struct {
	// What is the case.
	What        string
	Need, Limit units.Bytes
}

func (e *MemoryError) Error() string {
	return fmt.Sprintf("%s needs about %s of memory, and %s may be used", e.What, about(e.Need), about(e.Limit))
}

func about(b units.Bytes) string {
	if b < units.GiB {
		return fmt.Sprintf("%.1f MiB", float64(b)/float64(units.MiB))
	}
	return fmt.Sprintf("%.1f GiB", float64(b)/float64(units.GiB))
}

// String names the case, as in "allreduce ring over simple on 16 ranks, 1 GiB".
func (j Job) String() string {
	t := j.Task()
	text := fmt.Sprintf("%v %v over %v on %d ranks, %v", t.Collective, t.Algorithm, t.Protocol, t.Ranks, t.Bytes())
	if len(j.beside) > 0 {
		text += fmt.Sprintf(", and %d beside it", len(j.beside))
	}
	return text
}

// Done is a case that has been simulated.
type Done struct {
	Job int // its place in the list
	Row rows.Row
	// Calls are the case's and those beside it; none where nothing is.
	Calls []Shared
	// Links and Map are what the case put on links, where the study asks for that:
	// with several seeds, the one with the median time did.
	Links []traffic.Link
	Map   traffic.Map

	seed int
}

// Run simulates the jobs, on as many cores as there are and within a limit of
// memory (0: none), and returns those that are done, in the order of the list.
// It calls started, from one goroutine at a time, when a job starts, for each of
// its seeds. A [*MemoryError] comes before anything runs. When the context ends,
// or a job fails, it returns at once, with what is done and the cause; a job has
// then the seeds that are done ([rows.Spread]).
func Run(ctx context.Context, jobs []Job, limit units.Bytes, started func(Job)) ([]Done, error) {
	jobs = slices.Clone(jobs) // to keep plans in
	needs := make([]int64, len(jobs))
	for i := range jobs {
		need := jobs[i].need()
		if limit > 0 && need > limit {
			return nil, &MemoryError{jobs[i].String(), need, limit}
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
	results := make(chan result)
	begin := make(chan int) // jobs that have a core and room
	cores, memory := semaphore.NewWeighted(int64(runtime.GOMAXPROCS(0))), semaphore.NewWeighted(max(1, int64(limit)))
	launch := func(i, seed int) error {
		weight := min(needs[i], int64(limit))
		if err := errors.Join(cores.Acquire(ctx, 1), memory.Acquire(ctx, weight)); err != nil {
			return err
		}
		select {
		case begin <- i:
		case <-ctx.Done():
			return ctx.Err()
		}
		go func() {
			defer cores.Release(1)
			defer memory.Release(weight)
			done, err := jobs[i].run(seed)
			done.Job = i
			select {
			case results <- result{done, err}:
			case <-ctx.Done():
			}
		}()
		return nil
	}
	go func() {
		for _, i := range order {
			for seed := range jobs[i].seeds {
				if launch(i, seed) != nil {
					return
				}
			}
		}
	}()
	finished := make([][]Done, len(jobs)) // by seed
	for left := Seeds(jobs); left > 0; {
		select {
		case i := <-begin:
			started(jobs[i])
		case r := <-results:
			if r.err != nil {
				return medians(jobs, finished), r.err
			}
			finished[r.Job] = append(finished[r.Job], r.Done)
			left--
		case <-ctx.Done():
			return medians(jobs, finished), context.Cause(ctx)
		}
	}
	return medians(jobs, finished), nil
}

// medians returns of each job that has any the seed with the median time and, of
// jobs with several, the least and greatest time.
func medians(jobs []Job, finished [][]Done) (list []Done) {
	for i, seeds := range finished {
		if len(seeds) == 0 {
			continue
		}
		slices.SortFunc(seeds, func(a, b Done) int {
			return cmp.Or(cmp.Compare(a.Row.Time, b.Row.Time), cmp.Compare(a.seed, b.seed))
		})
		last := len(seeds) - 1
		median := seeds[last/2]
		if jobs[i].seeds > 1 {
			median.Row.Why.Spread = &rows.Spread{Seeds: len(seeds), Least: seeds[0].Row.Time, Greatest: seeds[last].Row.Time}
		}
		list = append(list, median)
	}
	return list
}

// Rows returns the rows of what is done.
func Rows(done []Done) []rows.Row {
	list := make([]rows.Row, len(done))
	for i, d := range done {
		list[i] = d.Row
	}
	return list
}

// run simulates one case with one of its seeds, counted from 0.
func (j Job) run(seed int) (done Done, err error) {
	t, o := j.Task(), j.options
	o.Jitter.Seed += uint64(seed)
	var result sim.Result
	switch {
	case len(j.beside) > 0:
		result, done.Calls, err = j.together(o)
	case j.plan != nil && seed == 0:
		result, err = j.plan.Run()
	default:
		result, err = sim.RunWith(j.schedule, j.cluster, j.profile, o)
	}
	if err != nil {
		return done, fmt.Errorf("%v: %w", j, err)
	}
	cause := result.Cause()
	why := &rows.Why{Bound: sim.Bound(t, j.cluster), Bottleneck: cause.Name, Share: cause.Share, Workers: result.Workers, Of: result.Of}
	if t.Nodes > 1 {
		why.Fabric = j.cluster.Fabric.Name
	}
	done.seed = seed
	done.Row = rows.Row{
		Source: "sim", Machine: j.cluster.Machine.Name, Collective: t.Collective, Algorithm: t.Algorithm, Protocol: t.Protocol,
		Nodes: t.Nodes, Ranks: t.Ranks, Channels: t.Channels, Datatype: t.Datatype, Redop: t.Redop, Bytes: t.Bytes(), Time: result.Time,
		Why: why,
	}
	if j.links != nil {
		done.Links = j.links(result, j.cluster)
	}
	if j.mapped {
		done.Map = traffic.NewMap(result, j.cluster)
	}
	return done, nil
}
