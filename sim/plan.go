package sim

import (
	"fmt"
	"runtime"

	"tutti/model/profile"
	"tutti/model/schedule"
	"tutti/model/splitmix"
	"tutti/model/units"
	"tutti/topo"
)

// Plan is a simulation that has not run. It finds what is alike when that is first
// asked for, and once, as it may take as long as to run.
type Plan struct {
	schedule schedule.Schedule
	cluster  *topo.Cluster
	profile  *profile.Profile
	options  Options

	fold     *fold // or nil: not found yet, or run
	within   [3][]int32
	symmetry *symmetry // or nil: nothing more can come of it than the fold
}

// NewPlan plans what [RunWith] does.
func NewPlan(s schedule.Schedule, c *topo.Cluster, p *profile.Profile, o Options) *Plan {
	return &Plan{schedule: s, cluster: c, profile: p, options: o}
}

// find finds the fold.
func (l *Plan) find() *fold {
	if l.fold != nil {
		return l.fold
	}
	l.fold = unfolded(l.schedule)
	if !l.options.alike(l.cluster) {
		return l.fold
	}
	if y := newSymmetry(l.schedule, l.cluster, l.profile); y != nil {
		l.within = y.within()
		l.fold = newFold(y, y.among(), l.within)
		if len(l.fold.workers.places.first) >= leastSure || l.options.anyGuess || l.options.anyShards {
			l.symmetry = y
		}
	}
	return l.fold
}

// Run simulates it. What was found is then given up.
func (l *Plan) Run() (Result, error) {
	if ranks := l.schedule.Task().Ranks; ranks != l.cluster.Ranks() {
		return Result{}, fmt.Errorf("a schedule for %d ranks does not run on %d", ranks, l.cluster.Ranks())
	}
	x, err := l.simulate()
	if err != nil {
		return Result{}, err
	}
	result, err := x.result()
	result.Of = l.schedule.Workers()
	return result, err
}

// simulate lays a simulation out and runs it.
func (l *Plan) simulate() (*simulation, error) {
	s, c, p, o := l.schedule, l.cluster, l.profile, l.options
	f, y := l.find(), l.symmetry
	l.fold, l.symmetry = nil, nil
	var sharded *shards
	if y != nil {
		if x := y.guess(l.within, len(f.workers.places.first), o); x != nil {
			return x, nil
		}
		sharded = newShards(y, f, runtime.GOMAXPROCS(0), o)
	}
	x, err := newSimulation(s, c, p, f, o)
	if err == nil && sharded != nil && !sharded.apart(x.wires) {
		f.split, sharded = unsplit{f}, nil
		x, err = newSimulation(s, c, p, f, o)
	}
	switch {
	case err != nil:
	case sharded != nil:
		x.runShards(sharded)
	default:
		if o.alike(c) {
			x.steady = newSteady(x)
		}
		x.run()
	}
	return x, err
}

// Work estimates how many steps the simulation goes through: a measure of how long
// it takes, beside that of others.
func (l *Plan) Work() (steps int64) {
	const samples = 64
	workers := &l.find().workers
	count := workers.count()
	every := max(1, count/samples)
	for i := 0; i < count; i += every {
		steps += int64(l.schedule.Worker(workers.first(i)).Steps) * int64(min(every, count-i))
	}
	return steps
}

// Need estimates the memory that the simulation takes.
func (l *Plan) Need() units.Bytes {
	const perWorker, perConnection, perSlot, perCrossing = 160, 180, 40, 60 // bytes, with what stands beside each
	const garbage = 1.75                                                    // until it is collected
	f := l.find()
	count := f.connections.count()
	samples, slots, crossings := min(count, 512), 0, 0
	for i := range samples {
		at := i
		if samples < count { // anywhere, as what a period has would be like each other
			at = int(splitmix.Mix(uint64(i)) % uint64(count))
		}
		n := l.schedule.Connection(f.connections.first(at))
		slots += n.Slots
		crossings += 2 * (len(n.From) + len(n.To))
	}
	each := perConnection + float64(perSlot*slots+perCrossing*crossings)/float64(max(1, samples))
	return units.Bytes((float64(f.workers.count()*perWorker) + float64(float64(count)*each)) * garbage)
}
