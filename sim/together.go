package sim

import (
	"fmt"
	"slices"

	"tutti/model/profile"
	"tutti/model/schedule"
	"tutti/model/units"
	"tutti/topo"
)

// Call is one of several calls that share a cluster.
type Call struct {
	Schedule schedule.Schedule
	// Start is when it begins, unless it has to wait for others.
	Start units.Time
	// After are calls before it, by their place, that it follows as on a stream:
	// on each rank it begins when these have ended there.
	After []int
}

// Span is when a call began, on the first of its ranks, and when its kernel
// ended on the last.
type Span struct{ Begin, End units.Time }

// RunTogether simulates several calls at once. They share links, but not the
// GPUs' threads: each has blocks of its own. The result's time is from 0 to the
// end of the last call; its base is 0. It fails as [RunWith] does, and for calls
// that follow none before them.
func RunTogether(calls []Call, c *topo.Cluster, p *profile.Profile, o Options) (Result, []Span, error) {
	all := make(joined, len(calls))
	for i, call := range calls {
		all[i].Schedule = call.Schedule
		if i > 0 {
			all[i].workers = all[i-1].workers + all[i-1].Workers()
			all[i].connections = all[i-1].connections + all[i-1].Connections()
		}
		if task := call.Schedule.Task(); task.Ranks != c.Ranks() {
			return Result{}, nil, fmt.Errorf("call %d: a schedule for %d ranks does not run on %d", i, task.Ranks, c.Ranks())
		}
		for _, before := range call.After {
			if before < 0 || before >= i {
				return Result{}, nil, fmt.Errorf("call %d: it is to follow call %d, and want one before it", i, before)
			}
		}
	}
	x, err := newSimulation(all, c, p, unfolded(all), o)
	if err != nil {
		return Result{}, nil, err
	}
	x.order = newOrder(calls, x.calls, c.Ranks())
	x.run()
	result, err := x.result()
	if err != nil {
		return Result{}, nil, err
	}
	result.Base = 0
	for _, s := range x.order.spans {
		result.Time = max(result.Time, s.End)
	}
	return result, x.order.spans, nil
}

// BackToBack simulates calls that are issued one behind the other, as benchmarks do,
// and returns how far they follow each other. Where every rank waits for all others
// that is what a call takes. In Broadcast and Reduce no rank waits for those behind it:
// ranks are at work on calls of their own, and the busiest counts.
func BackToBack(s schedule.Schedule, c *topo.Cluster, p *profile.Profile) (units.Time, error) {
	if !s.Task().Collective.Rooted() {
		result, err := Run(s, c, p)
		return result.Time, err
	}
	_, spans, err := RunTogether([]Call{{Schedule: s}, {Schedule: s, After: []int{0}}, {Schedule: s, After: []int{1}}}, c, p, Options{})
	if err != nil {
		return 0, err
	}
	return spans[2].End - spans[1].End, nil
}

// joined is several schedules as one, with the numbers of their workers and
// connections one after another.
type joined []part

type part struct {
	schedule.Schedule
	workers, connections int // the first
}

func (j joined) Task() schedule.Task { return j[0].Task() }
func (j joined) Workers() int        { return j[len(j)-1].workers + j[len(j)-1].Schedule.Workers() }
func (j joined) Connections() int {
	return j[len(j)-1].connections + j[len(j)-1].Schedule.Connections()
}

// of returns the part that a worker belongs to.
func (j joined) of(worker int) *part {
	i, found := slices.BinarySearchFunc(j, worker, func(p part, w int) int { return p.workers - w })
	if !found {
		i--
	}
	return &j[i]
}

func (j joined) Worker(w int) schedule.Worker {
	p := j.of(w)
	described := p.Schedule.Worker(w - p.workers)
	described.In, described.Out = shifted(described.In, p.connections), shifted(described.Out, p.connections)
	return described
}

func (j joined) Step(w, i int) schedule.Step {
	p := j.of(w)
	return p.Schedule.Step(w-p.workers, i)
}

// Repeats is that of [schedule.Repeating], as far as the parts have it.
func (j joined) Repeats(w, i int) (period, until int) {
	p := j.of(w)
	if r, ok := p.Schedule.(schedule.Repeating); ok {
		return r.Repeats(w-p.workers, i)
	}
	return 1, i + 1
}

func (j joined) Connection(c int) schedule.Connection {
	i, found := slices.BinarySearchFunc(j, c, func(p part, c int) int { return p.connections - c })
	if !found {
		i--
	}
	p := &j[i]
	described := p.Schedule.Connection(c - p.connections)
	described.From, described.To = shifted(described.From, p.workers), shifted(described.To, p.workers)
	return described
}

func shifted(numbers []int, by int) []int {
	list := make([]int, len(numbers))
	for i, n := range numbers {
		list[i] = n + by
	}
	return list
}

// order begins calls when those before them have ended, rank by rank.
type order struct {
	calls  []Call
	bases  []units.Time
	spans  []Span
	ranks  int
	left   []int // workers, by call and rank, that have not ended
	before []int // calls, by call and rank, that have not
	from   []units.Time
	until  []units.Time
	after  [][]int // of each call, those that follow it
	member [][]int32
}

func newOrder(list []Call, constants []call, ranks int) *order {
	n := len(list) * ranks
	s := &order{
		calls: list, ranks: ranks, spans: make([]Span, len(list)), after: make([][]int, len(list)), bases: make([]units.Time, len(list)),
		left: make([]int, n), before: make([]int, n), from: make([]units.Time, n), until: make([]units.Time, n), member: make([][]int32, n),
	}
	first := 0
	for i, c := range list {
		s.bases[i], s.spans[i].Begin = constants[i].base, never
		for _, before := range c.After {
			s.after[before] = append(s.after[before], i)
		}
		for w := range c.Schedule.Workers() {
			at := i*ranks + c.Schedule.Worker(w).Rank
			s.left[at]++
			s.member[at] = append(s.member[at], int32(first+w))
		}
		for rank := range ranks {
			s.before[i*ranks+rank], s.from[i*ranks+rank] = len(c.After), c.Start
		}
		first += c.Schedule.Workers()
	}
	return s
}

// open begins the calls that follow none.
func (x *simulation) open() {
	for at := range x.order.before {
		if len(x.order.calls[at/x.order.ranks].After) == 0 {
			x.launch(at)
		}
	}
}

// launch begins a call on a rank.
func (x *simulation) launch(at int) {
	s := x.order
	from := s.from[at]
	span := &s.spans[at/s.ranks]
	span.Begin = min(span.Begin, from)
	if len(s.member[at]) == 0 {
		x.closed(at)
	}
	for _, id := range s.member[at] {
		x.able = append(x.able, id)
		x.begin(id, from+x.start(int(id)))
	}
}

// ended counts a worker that has done its last step, at the given instant.
func (x *simulation) ended(id int32, end units.Time) {
	s, call := x.order, x.callOf(id)
	at := call*s.ranks + int(x.ranks[id])
	s.until[at] = max(s.until[at], end)
	if s.left[at]--; s.left[at] == 0 {
		x.closed(at)
	}
}

// closed ends a call on a rank, and begins there what follows it.
func (x *simulation) closed(at int) {
	s, call := x.order, at/x.order.ranks
	end := max(s.from[at], s.until[at]) + s.bases[call]
	s.spans[call].End = max(s.spans[call].End, end)
	for _, next := range s.after[call] {
		follower := next*s.ranks + at%s.ranks
		s.from[follower] = max(s.from[follower], end)
		if s.before[follower]--; s.before[follower] == 0 {
			x.launch(follower)
		}
	}
}
