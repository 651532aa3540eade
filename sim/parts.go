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

// parts is the split of a fold among cores.
type parts struct {
	*fold
	cluster *topo.Cluster
	count   int
	part    []int32       // by class of places
	others  []int32       // by item
	home    []int32       // by item: the part
	after   []int32       // readers' halves, which come after: the connections, as which the writers' count
	sides   map[int][]int // by half: the links of its end
}

// leastPart is how many classes of machines a core needs to be worth it, and
// mostHalves how many connections may be halved for each of them.
const (
	leastPart  = 256
	mostHalves = 1. / 16
)

// newParts shares out a fold, or returns nil if that is not worth it.
func newParts(y *symmetry, f *fold, cores int, o Options) *parts {
	nodes := len(f.workers.places.first)
	count, most := min(cores, nodes/leastPart), int(float64(nodes)*mostHalves)
	if o.anyParts {
		count, most = min(3, nodes), math.MaxInt
	}
	p := &parts{fold: f, cluster: y.cluster, count: count, part: make([]int32, nodes), sides: map[int][]int{}}
	if p.count < 2 {
		return nil
	}
	for i := range nodes {
		p.part[i] = int32(i * p.count / nodes)
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
		if c.Kind != schedule.PointToPoint || len(p.after) == most {
			return nil
		}
		p.others[i] = int32(len(p.others))
		p.sides[i], p.sides[len(p.others)] = ends(y.cluster, routeOf(y.cluster, y.schedule, c))
		p.others, p.home, p.after = append(p.others, int32(i)), append(p.home, to), append(p.after, int32(i))
	}
	f.split = p
	return p
}

// at returns the part of a worker of the schedule.
func (p *parts) at(worker int) int32 {
	return p.part[p.workers.place[worker/p.workers.perPlace]]
}

// whole returns the connection that an item is, or is a half of.
func (p *parts) whole(item int) int {
	if at := item - p.connections.count(); at >= 0 {
		return int(p.after[at])
	}
	return item
}

func (p *parts) items() int            { return len(p.others) }
func (p *parts) example(item int) int  { return p.connections.first(p.whole(item)) }
func (p *parts) other(item int) int32  { return p.others[item] }
func (p *parts) copies(item int32) int { return p.connections.size(int32(p.whole(int(item)))) }

func (p *parts) seen(worker, connection int) int32 {
	item := p.connections.of(connection)
	if p.others[item] != none && p.home[item] != p.at(worker) {
		return p.others[item]
	}
	return item
}

func (p *parts) hasWorker(item, worker int) bool {
	return p.others[item] == none || p.home[item] == p.at(worker)
}

func (p *parts) hasLink(item, link int) bool {
	return p.others[item] == none || slices.Contains(p.sides[item], link)
}

// ends divides a route between machines: the links up to the top of the fabric,
// and those from there.
func ends(c *topo.Cluster, route []int) (up, down []int) {
	node, _ := c.Place(route[0])
	far, _ := c.Place(route[len(route)-1])
	first := slices.IndexFunc(route, func(link int) bool { place, _ := c.Place(link); return place != node })
	last := slices.IndexFunc(route, func(link int) bool { place, _ := c.Place(link); return place == far })
	top := first + (last-first)/2
	return route[:top], route[top:]
}

// apart tells whether no link is shared by items of different parts.
func (p *parts) apart(w *wires) bool {
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

// share is what one core does.
type share struct {
	*parts
	number int32
	halves []int32 // its own
	heard  []news  // so far, to happen at events
	done   int     // of these
	out    []news  // in this turn
}

// has tells whether a worker that is simulated is in the part.
func (p *share) has(worker int) bool {
	return p.parts.part[worker/len(p.workers.locals.first)] == p.number
}

// hear has something happen that another part told.
func (x *simulation) hear(n int) {
	x.share.done++
	x.learn(x.share.heard[n])
}

// runParts runs a simulation on several cores, turn by turn.
func (x *simulation) runParts(p *parts) {
	cores := make([]*simulation, p.count)
	for i := range cores {
		core := *x // what it shares with the others it only reads, or has parts of its own in
		core.forms, core.patterns = map[form]int32{}, map[[maxPeriod]int32]int32{}
		core.share = &share{parts: p, number: int32(i)}
		for item, other := range p.others {
			if other != none && p.home[item] == int32(i) {
				core.share.halves = append(core.share.halves, int32(item))
			}
		}
		cores[i] = &core
	}
	limits, turn := make([]units.Time, p.count), make([]chan bool, p.count)
	var others sync.WaitGroup
	for i, core := range cores {
		core.beginAll()
		turn[i] = make(chan bool)
		go func() {
			for range turn[i] {
				core.proceed(limits[i])
				others.Done()
			}
		}()
	}
	for first, ready := make([]units.Time, p.count), []int(nil); ; others.Wait() {
		for _, core := range cores {
			for _, n := range core.share.out {
				cores[p.home[n.half]].receive(n)
			}
			core.share.out, core.told = core.share.out[:0], never
		}
		next := never
		for i, core := range cores {
			core.work()
			core.settle()
			first[i] = min(core.told, core.earliest())
			next = min(next, first[i], core.queue.Next())
		}
		if next == never {
			break
		}
		ready = ready[:0]
		for i, core := range cores {
			limits[i] = never
			for j, at := range first {
				if j != i {
					limits[i] = min(limits[i], at)
				}
			}
			if core.queue.Next() <= min(limits[i], core.told) {
				ready = append(ready, i)
			}
		}
		for at, i := range ready {
			if at == 0 {
				continue // this core does it
			}
			others.Add(1)
			turn[i] <- true
		}
		if len(ready) > 0 {
			cores[ready[0]].proceed(limits[ready[0]])
		}
	}
	for i, core := range cores {
		close(turn[i])
		x.events += core.events
		x.finished += core.finished
		x.last = max(x.last, core.last)
	}
}

// receive takes in what another part tells.
func (x *simulation) receive(n news) {
	if n.what == frees {
		x.learn(n)
		return
	}
	x.queue.Push(n.at, int32(len(x.workers)+len(x.connections)+len(x.share.heard)))
	x.share.heard = append(x.share.heard, n)
}

// earliest returns an instant before which nothing is told to others, unless they
// tell something first.
func (x *simulation) earliest() units.Time {
	first, next := never, x.queue.Next()
	if next == never || x.share.done < len(x.share.heard) {
		return next
	}
	for _, half := range x.share.halves {
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

// leaving returns an instant before which an item is not off its links.
func (x *simulation) leaving(n *connection, owner int32) (at units.Time) {
	for _, r := range x.routes[n.firstLink : n.firstLink+n.links] {
		l := &x.links[r.link]
		for i := range l.count {
			if f := &x.flows[l.first+l.wrap(l.head+i)]; f.owner == owner {
				served := (x.now - l.asOf + units.Time(l.rest)) / units.Time(l.load)
				at = max(at, x.now+(f.end-l.clock-served-1)*units.Time(f.weight))
			}
		}
	}
	return at
}
