package sim

import (
	"math"
	"slices"
	"sync"

	"tutti/model/schedule"
	"tutti/model/units"
	"tutti/topo"
)

// A simulation of many machines is shared out among the cores: each has the
// machines of a range, and connections between two ranges become halves. In turns,
// each core finds out before which instant its machines cannot let the others know
// anything, and then goes on up to the earliest of the others' instants, or to
// where it has something to tell itself; what happens in between cannot depend on
// the others (Chandy and Misra, "Distributed simulation", 1979; Lubachevsky,
// "Efficient distributed event-driven simulations of multiple-loop networks",
// 1989). So the result does not depend on the number of cores.

// shards is the split of a fold among cores. Of a connection between two shards,
// the writer's half has its number, and the reader's comes after all connections.
type shards struct {
	*fold
	count   int
	of      []int32       // by class of machines: its shard
	home    []int32       // by item: its shard
	others  []int32       // by item: the half at the other end, or none
	readers []int32       // by reader's half: the connection
	links   map[int][]int // by half: the links of its end
}

// leastShard is how many classes of machines a core needs to be worth it, and
// mostHalves how many connections may be halved for each of them.
const (
	leastShard = 256
	mostHalves = 1. / 16
)

// newShards shares out a fold, or returns nil if that is not worth it.
func newShards(y *symmetry, f *fold, cores int, o Options) *shards {
	nodes := len(f.workers.places.first)
	count, most := min(cores, nodes/leastShard), int(float64(nodes)*mostHalves)
	if o.anyShards {
		count, most = min(3, nodes), math.MaxInt
	}
	p := &shards{fold: f, count: count, of: make([]int32, nodes), links: map[int][]int{}}
	if p.count < 2 {
		return nil
	}
	for i := range nodes {
		p.of[i] = int32(i * p.count / nodes)
	}
	p.others = slices.Repeat([]int32{none}, f.connections.count())
	p.home = make([]int32, len(p.others))
	for i := range f.connections.count() {
		c := y.schedule.Connection(f.connections.first(i))
		if len(c.From) == 0 {
			continue
		}
		to := p.at(c.To[0])
		if p.home[i] = p.at(c.From[0]); p.home[i] == to {
			continue
		}
		if c.Kind != schedule.PointToPoint || len(p.readers) == most {
			return nil
		}
		p.others[i] = int32(len(p.others))
		p.links[i], p.links[len(p.others)] = upAndDown(y.cluster, routeOf(y.cluster, y.schedule, c))
		p.others, p.home, p.readers = append(p.others, int32(i)), append(p.home, to), append(p.readers, int32(i))
	}
	f.split = p
	return p
}

// at returns the shard of a worker of the schedule.
func (p *shards) at(worker int) int32 {
	node, _ := p.workers.blocks.at(worker)
	return p.of[p.workers.place[node]]
}

// connection returns the class of connections that an item is, or is a half of.
func (p *shards) connection(item int) int {
	if at := item - p.connections.count(); at >= 0 {
		return int(p.readers[at])
	}
	return item
}

func (p *shards) items() int            { return len(p.others) }
func (p *shards) example(item int) int  { return p.connections.first(p.connection(item)) }
func (p *shards) other(item int) int32  { return p.others[item] }
func (p *shards) copies(item int32) int { return p.connections.size(int32(p.connection(int(item)))) }

func (p *shards) seen(worker, connection int) int32 {
	item := p.connections.of(connection)
	if p.others[item] != none && p.home[item] != p.at(worker) {
		return p.others[item]
	}
	return item
}

func (p *shards) hasWorker(item, worker int) bool {
	return p.others[item] == none || p.home[item] == p.at(worker)
}

func (p *shards) hasLink(item, link int) bool {
	return p.others[item] == none || slices.Contains(p.links[item], link)
}

// upAndDown divides a route between machines: the links up to the top of the
// fabric, and those from there.
func upAndDown(c *topo.Cluster, route []int) (up, down []int) {
	node, _ := c.Place(route[0])
	far, _ := c.Place(route[len(route)-1])
	first := slices.IndexFunc(route, func(link int) bool { place, _ := c.Place(link); return place != node })
	last := slices.IndexFunc(route, func(link int) bool { place, _ := c.Place(link); return place == far })
	top := first + (last-first)/2
	return route[:top], route[top:]
}

// apart tells whether no link is shared by items of different shards.
func (p *shards) apart(w *wires) bool {
	homes := slices.Repeat([]int32{none}, len(w.used))
	for item, route := range w.all {
		for _, r := range route {
			if home := &homes[r.link]; *home == none {
				*home = p.home[item]
			} else if *home != p.home[item] {
				return false
			}
		}
	}
	return true
}

// shard is what one core does.
type shard struct {
	*shards
	number  int32
	halves  []int32   // its own
	inbox   []message // so far, each with an event
	handled int       // of these, at the front
	outbox  []message // in this turn
}

// has tells whether a worker that is simulated is in the shard.
func (p *shard) has(worker int) bool {
	place, _ := p.workers.apart(worker)
	return p.of[place] == p.number
}

// runShards runs a simulation on several cores, turn by turn.
func (x *simulation) runShards(p *shards) {
	cores := make([]*simulation, p.count)
	for i := range cores {
		cores[i] = x.core(p, int32(i))
		cores[i].beginAll()
	}
	limits := make([]units.Time, p.count)
	var others sync.WaitGroup
	for nextTurn(cores, limits) {
		var ready []int
		furthest := units.Time(0)
		for i, core := range cores {
			if next := core.queue.Next(); next <= min(limits[i], core.told) {
				ready = append(ready, i)
			} else if next < never {
				furthest = max(furthest, next)
			}
		}
		if len(ready) == 1 && furthest > cores[ready[0]].queue.Next() {
			limits[ready[0]] = min(limits[ready[0]], furthest) // it catches up; then they go on side by side
		}
		for at, i := range ready {
			if at > 0 {
				others.Go(func() { cores[i].proceed(limits[i]) })
			}
		}
		if len(ready) > 0 {
			cores[ready[0]].proceed(limits[ready[0]])
		}
		others.Wait()
	}
	for _, core := range cores {
		x.events += core.events
		x.finished += core.finished
		x.last = max(x.last, core.last)
	}
}

// core returns the simulation of a shard. What it shares with the others it only
// reads, or has parts of its own in.
func (x *simulation) core(p *shards, number int32) *simulation {
	core := *x
	core.forms, core.patterns = map[form]int32{}, map[[maxPeriod]int32]int32{}
	core.shard = &shard{shards: p, number: number}
	for item, other := range p.others {
		if other != none && p.home[item] == number {
			core.shard.halves = append(core.shard.halves, int32(item))
		}
	}
	return &core
}

// nextTurn hands over what the cores have told, and sets up to which instant each
// can go on without hearing from the others. It returns false at the end.
func nextTurn(cores []*simulation, limits []units.Time) bool {
	for i, core := range cores {
		for _, m := range core.shard.outbox {
			cores[core.shard.home[m.half]].receive(m)
		}
		core.shard.outbox, core.told, limits[i] = core.shard.outbox[:0], never, never
	}
	next := never
	for i, core := range cores {
		core.work()
		core.settle()
		first := min(core.told, core.earliest())
		next = min(next, first, core.queue.Next())
		for other := range limits {
			if other != i {
				limits[other] = min(limits[other], first)
			}
		}
	}
	return next < never
}

// receive takes in a message: free slots are for workers that work ahead of time,
// items for an event.
func (x *simulation) receive(m message) {
	if m.kind == frees {
		x.learn(m)
		return
	}
	x.queue.Push(m.at, int32(len(x.connections)+len(x.shard.inbox)))
	x.shard.inbox = append(x.shard.inbox, m)
}

// handle has a message of the inbox happen.
func (x *simulation) handle(number int) {
	s := x.shard
	x.learn(s.inbox[number])
	for s.inbox[number].half = none; s.handled < len(s.inbox) && s.inbox[s.handled].half == none; {
		s.handled++
	}
}

// earliest returns an instant before which nothing is told to others, unless they
// tell something first.
func (x *simulation) earliest() units.Time {
	first, next := never, x.queue.Next()
	if next == never {
		return never
	}
	for _, m := range x.shard.inbox[x.shard.handled:] {
		if m.half != none {
			first = min(first, m.at)
		}
	}
	for _, half := range x.shard.halves {
		n := &x.connections[half]
		writer, reader := x.ends[n.firstEnd], x.ends[n.firstEnd+n.from]
		switch {
		case n.crossed: // until the other end says so
		case n.flows > 0:
			first = min(first, max(next, x.leaving(n, ^half)))
		case n.staged > n.put:
			first = min(first, max(next, x.slots[n.firstSlot+n.put%n.slots].ready))
		case writer != none:
			first = min(first, x.ending(writer, next))
		}
		if reader != none {
			first = min(first, x.ending(reader, next)+x.ways[n.way].credit)
		}
	}
	return first
}

// ending returns an instant before which a worker's step does not end.
func (x *simulation) ending(id int32, next units.Time) units.Time {
	switch w := &x.workers[id]; w.state {
	case finished:
		return never / 2 // so that a latency can be added
	case running, ending:
		at := max(next, w.ready)
		o := &x.operations[w.operation]
		for _, u := range x.uses[o.first:o.end] {
			at = max(at, x.leaving(&x.connections[x.ports[w.ports+u.port].connection], id))
		}
		return at
	default:
		o := &x.operations[w.operation]
		return next + o.overhead + o.copy
	}
}

// leaving returns the instant at which an item is off its links, if no other comes
// on them: it can only be later.
func (x *simulation) leaving(n *connection, owner int32) (last units.Time) {
	for _, r := range x.routes[n.firstLink : n.firstLink+n.links] {
		l := &x.links[r.link]
		l.advance(x.flows, x.now)
		at, clock, load := l.asOf-units.Time(l.rest), l.clock, l.load
		for i := range l.count + l.coming {
			f := l.flow(x.flows, i)
			if i >= l.count {
				if f.owner == owner {
					last = max(last, f.at+l.pace.Of(f.size))
				}
				continue
			}
			at += (f.at - clock) * units.Time(load)
			if f.owner == owner {
				last = max(last, at)
				break
			}
			clock, load = f.at, load-f.weight
		}
	}
	return last
}
