package sim

import (
	"tutti/model/schedule"
	"tutti/model/units"
	"tutti/sim/event"
)

// run carries out the schedule. Steps are worked out ahead of time: a worker
// goes on as soon as it is known when its items and slots will be there, and
// leaves such instants for others. Only what shares links has to be dealt with
// in the order of time, by events.
func (x *simulation) run() {
	x.beginAll()
	x.proceed(never)
}

// beginAll begins all workers, or those of the first calls.
func (x *simulation) beginAll() {
	if len(x.workers) >= manyWorkers {
		x.queue.Soon = x.fetch
	}
	if x.watch != nil {
		x.begins, x.froms = make([]units.Time, len(x.workers)), make([]units.Time, len(x.workers))
		x.sends = make([]units.Time, len(x.connections))
	}
	if x.order != nil {
		x.open()
	} else {
		for i := range x.workers {
			if x.shard == nil || x.shard.has(i) {
				x.begin(int32(i), x.start(i))
				x.able = append(x.able, int32(i))
			}
		}
	}
	x.work()
}

// manyWorkers are more than a core's cache has room for.
const manyWorkers = 1 << 12

// fetch reads what events will need that are to come: links, the flows that end
// first, and whose these are, each for all events before the next, as a processor
// fetches side by side what does not depend on each other.
func (x *simulation) fetch(soon []event.Event) {
	links, sum := x.soon[:0], units.Time(0)
	for _, e := range soon {
		if e.ID < 0 && x.alarms[^e.ID] == (alarm{e.At, e.At}) {
			links = append(links, ^e.ID)
		}
	}
	for _, id := range links {
		sum += x.links[id].asOf
	}
	for _, id := range links {
		l := &x.links[id]
		sum += l.flow(x.flows, 0).at + l.flow(x.flows, l.count).at
	}
	for _, id := range links {
		if owner := x.links[id].flow(x.flows, 0).owner; owner >= 0 {
			sum += x.workers[owner].ready
		} else {
			sum += units.Time(x.connections[^owner].put)
		}
	}
	x.soon, x.fetched = links, sum
}

// proceed goes on up to an instant, and tells whether more is to come.
func (x *simulation) proceed(until units.Time) bool {
	for {
		if !x.queue.Current() {
			x.settle()
		}
		e, ok := x.queue.PopUntil(min(until, x.told))
		if !ok {
			return x.queue.Len() > 0
		}
		x.now = e.At
		x.events++
		switch id := int(e.ID); {
		case id < 0:
			x.tick(^e.ID)
		case id < len(x.connections):
			if x.posts == nil || x.posted(e.ID) {
				x.send(e.ID, x.now)
			}
		case x.shard == nil:
			x.change(x.changes[id-len(x.connections)])
		default:
			x.handle(id - len(x.connections))
		}
		x.work()
	}
}

// work lets all workers that can go on do so.
func (x *simulation) work() {
	for len(x.able) > 0 {
		last := len(x.able) - 1
		id := x.able[last]
		x.able = x.able[:last]
		for x.workers[id].state == ending || x.step(id) {
			x.end(id)
			if x.steady != nil && id == x.steady.worker {
				x.steady.look(x)
			}
		}
	}
}

// begin turns a worker to its next step, at the given instant.
func (x *simulation) begin(id int32, at units.Time) {
	w := &x.workers[id]
	w.state = able
	x.last = max(x.last, at)
	if w.next == w.until {
		if w.next == w.steps {
			w.state = finished
			x.finished++
			if x.order != nil {
				x.ended(id, at)
			}
			return
		}
		r := x.runAt(id, w.next)
		w.first, w.operation, w.period, w.until = r.first, r.first, int8(r.period), r.until
	} else if w.period > 1 {
		if w.operation++; w.operation == w.first+int32(w.period) {
			w.operation = w.first
		}
	}
	w.tried, w.ready = 0, at
	if w.next > 0 {
		w.ready += x.operations[w.operation].turn
	}
}

// step works out when a worker's step begins and, if it can, when it ends, in
// w.ready. It returns false if the end is not known yet. If an item or a slot is
// not in sight, the worker waits to be woken; if the step puts flows on links,
// or takes an item that streams, for these.
func (x *simulation) step(id int32) (ended bool) {
	w := &x.workers[id]
	if w.state == finished {
		return false
	}
	o := &x.operations[w.operation]
	for at := o.first + int32(w.tried); at < o.end; at++ {
		u := &x.uses[at]
		p := &x.ports[w.ports+u.port]
		n := &x.connections[p.connection]
		s := &x.slots[n.firstSlot+p.slot]
		if at < o.sends {
			if n.put <= p.items {
				w.blocked, w.state = p.connection, waiting
				return false
			}
			w.ready = max(w.ready, s.ready)
		} else {
			if n.taken+n.slots <= p.items {
				w.blocked, w.state = p.connection, waiting
				return false
			}
			w.ready = max(w.ready, s.free)
		}
		w.tried++
	}
	overhead, copying := o.overhead, o.copy
	if x.jitter != nil {
		overhead, copying = x.jitter.step(id, w.next, overhead, copying)
	}
	begin := w.ready + overhead
	w.ready = begin + copying
	w.busy += copying - o.beside
	if x.watch != nil {
		x.begins[id] = begin
	}
	for at := o.first; at < o.end; at++ {
		u := &x.uses[at]
		p := &x.ports[w.ports+u.port]
		n := &x.connections[p.connection]
		if n.mover == o.side(at) && u.wire > 0 {
			if n.alone {
				w.ready = max(w.ready, begin+x.crossed(n, u.wire))
			} else {
				w.flows += x.transfer(n, u.wire, id, begin)
			}
		}
		if !n.streams {
			continue
		}
		s := &x.slots[n.firstSlot+p.slot]
		switch {
		case at >= o.sends:
			s.last = unknown
			x.put(n, p.connection, s, begin+x.arrival(n, o))
		case s.last != unknown:
			w.ready = max(w.ready, units.Time(s.last))
		default:
			s.reader = id
			w.flows++
		}
	}
	if w.flows > 0 {
		w.state = running
		return false
	}
	return true
}

// release takes away one of the things that a running step waits for; the step
// does not end before it.
func (x *simulation) release(id int32, at units.Time) {
	w := &x.workers[id]
	w.ready = max(w.ready, at)
	if w.flows--; w.flows == 0 {
		w.state = ending
		x.able = append(x.able, id)
	}
}

// end completes a worker's step, at w.ready: slots become free and items go on
// their way.
func (x *simulation) end(id int32) {
	w := &x.workers[id]
	o := &x.operations[w.operation]
	for at := o.first; at < o.end; at++ {
		u := &x.uses[at]
		p := &x.ports[w.ports+u.port]
		n := &x.connections[p.connection]
		s := &x.slots[n.firstSlot+p.slot]
		p.items++
		if p.slot++; p.slot == n.slots {
			p.slot = 0
		}
		if at >= o.sends {
			n.bytes += int64(u.wire)
		}
		switch {
		case at < o.sends:
			x.take(n, p.connection, s, w.ready)
		case n.remote && n.alone && n.from == 1:
			l := &x.links[x.routes[n.firstLink].link]
			x.sent(p.connection, max(l.asOf, w.ready))
			l.asOf = max(l.asOf, w.ready) + x.crossed(n, u.wire)
			x.got(p.connection, l.asOf)
			n.staged++
			x.put(n, p.connection, s, l.asOf+x.arrival(n, o))
		case n.remote:
			if s.left == n.from {
				s.ready = 0
			}
			s.last, s.ready = int64(u.wire), max(s.ready, w.ready)
			if s.left--; s.left > 0 {
				continue
			}
			if n.staged++; n.staged == n.put+1 {
				x.sendAt(p.connection, s.ready)
			}
		case n.streams:
			s.last = int64(w.ready + x.arrival(n, o))
			if reader := s.reader; reader != none {
				s.reader = none
				x.release(reader, units.Time(s.last))
			}
		case n.from == 1:
			x.put(n, p.connection, s, w.ready+x.arrival(n, o))
		default:
			if s.left == n.from {
				s.last = 0
			}
			s.last = max(s.last, int64(w.ready))
			if s.left--; s.left == 0 {
				x.put(n, p.connection, s, units.Time(s.last)+x.arrival(n, o))
			}
		}
	}
	if x.watch != nil {
		x.watch.Step(x.fold.workers.first(int(id)), int(w.next), x.froms[id], x.begins[id], w.ready)
		x.froms[id] = w.ready
	}
	w.next++
	x.begin(id, w.ready)
}

// arrival returns how long it takes until the reader knows of an item that has
// crossed the links: no time if it need not wait for it.
func (x *simulation) arrival(n *connection, o *operation) units.Time {
	if o.passes && n.streams {
		return 0
	}
	return x.known(n)
}

// known returns how long it takes until the reader knows of the connection's next
// item, once that has crossed the links.
func (x *simulation) known(n *connection) units.Time {
	t := x.ways[n.way].arrival
	if x.jitter != nil {
		t = x.jitter.arrival(n.firstSlot, n.put, t)
	}
	return t
}

// put makes an item available to the readers, which know of it at the given
// instant.
func (x *simulation) put(n *connection, c int32, s *slot, at units.Time) {
	s.left, s.ready, s.free = n.to, at, 0
	n.put++
	x.wake(c, x.ends[n.firstEnd+n.from:n.firstEnd+n.from+n.to])
}

// take has one more reader done with an item; the last one frees the slot.
func (x *simulation) take(n *connection, c int32, s *slot, at units.Time) {
	s.free = max(s.free, at+x.ways[n.way].credit)
	if s.left--; s.left > 0 {
		return
	}
	s.left = n.from
	n.taken++
	if n.half {
		x.tell(c, frees, s.free, 0)
	}
	x.wake(c, x.ends[n.firstEnd:n.firstEnd+n.from])
}

// wake lets those workers go on that wait for a connection.
func (x *simulation) wake(c int32, ids []int32) {
	for _, id := range ids {
		if id == none {
			continue
		}
		if w := &x.workers[id]; w.state == waiting && w.blocked == c {
			w.state = able
			x.able = append(x.able, id)
		}
	}
}

// sendAt has the next item of a remote connection sent at an instant. It is
// announced to its links at once, if there are any, nothing can change that, and
// few others are to come.
func (x *simulation) sendAt(id int32, at units.Time) {
	const few = 16
	n := &x.connections[id]
	ahead := x.posts == nil && len(x.changes) == 0 && n.links > 0 && x.slots[n.firstSlot+n.put%n.slots].last > 0
	for i := n.firstLink; i < n.firstLink+n.links && ahead; i++ {
		ahead = x.links[x.routes[i].link].coming < few
	}
	if ahead {
		x.send(id, at)
	} else {
		x.queue.Push(at, id)
	}
}

// send starts the next item of a remote connection on its way.
func (x *simulation) send(id int32, at units.Time) {
	n := &x.connections[id]
	x.sent(id, at)
	size := units.Bytes(x.slots[n.firstSlot+n.put%n.slots].last)
	n.flows = x.transfer(n, size, ^id, at)
	if n.half && x.ends[n.firstEnd] != none {
		x.tell(id, comes, at, size)
	}
	if n.flows == 0 {
		x.arrive(id)
	}
}

// arrive has an item off its links.
func (x *simulation) arrive(id int32) {
	if x.posts != nil && !x.through(id) {
		return
	}
	if x.connections[id].half {
		x.connections[id].crossed = true
		x.tell(id, leaves, x.now, 0)
		x.meet(id)
	} else {
		x.deliver(id)
	}
}

// deliver hands an item that has crossed the network to the reader, and sends
// the next one once it is there.
func (x *simulation) deliver(id int32) {
	n := &x.connections[id]
	x.got(id, x.now)
	x.put(n, id, &x.slots[n.firstSlot+n.put%n.slots], x.now+x.known(n))
	if n.staged == n.put {
		return
	}
	staged := x.slots[n.firstSlot+n.put%n.slots].ready
	x.sendAt(id, max(x.now, staged))
}

// crossed returns how long an item takes over links that nothing else crosses.
func (x *simulation) crossed(n *connection, size units.Bytes) units.Time {
	r := x.routes[n.firstLink]
	return x.links[r.link].pace.Of(x.moved(n, size)) * units.Time(r.weight)
}

// moved returns the bytes that an item puts on links, in units of what a link
// carries point to point.
func (x *simulation) moved(n *connection, size units.Bytes) units.Bytes {
	if x.switched(n) {
		return units.Bytes(float64(size) / x.multimem)
	}
	return size
}

// switched tells whether an NVSwitch multicasts a connection's items, or adds
// them up.
func (x *simulation) switched(n *connection) bool {
	return n.kind != uint8(schedule.PointToPoint) && !n.remote
}

// transfer has an item come to the links of a connection at an instant, and returns
// to how many.
func (x *simulation) transfer(n *connection, size units.Bytes, owner int32, at units.Time) int32 {
	if size == 0 {
		return 0
	}
	size = x.moved(n, size)
	for _, r := range x.routes[n.firstLink : n.firstLink+n.links] {
		l := &x.links[r.link]
		l.announce(x.flows, flow{at, size, owner, r.weight})
		if at < x.alarms[r.link].due {
			x.touch(l, r.link)
		}
	}
	return n.links
}

// touch has a link's event set at the end of this instant.
func (x *simulation) touch(l *link, id int32) {
	if !l.touched {
		l.touched = true
		x.touched = append(x.touched, id)
	}
}

// settle sets the events of links on which flows have gone, or to which they have
// been announced, unless an earlier one is set: it will see that it is too early.
func (x *simulation) settle() {
	for _, id := range x.touched {
		l := &x.links[id]
		l.touched = false
		a := &x.alarms[id]
		if a.due = l.next(x.flows); a.due < a.set {
			a.set = a.due
			x.queue.Push(a.due, ^id)
		}
	}
	x.touched = x.touched[:0]
}

// tick takes the flows that have ended off a link.
func (x *simulation) tick(id int32) {
	a := &x.alarms[id]
	if x.now != a.set {
		return // an event that an earlier one has replaced
	}
	if x.now < a.due {
		if a.set = a.due; a.set < never {
			x.queue.Push(a.set, ^id)
		}
		return
	}
	*a = alarm{never, never}
	l := &x.links[id]
	x.touch(l, id)
	l.advance(x.flows, x.now)
	for {
		owner, ok := l.done(x.flows)
		switch {
		case !ok:
			return
		case owner >= 0:
			x.release(owner, x.now)
		default:
			if n := &x.connections[^owner]; n.flows == 1 {
				n.flows = 0
				x.arrive(^owner)
			} else {
				n.flows--
			}
		}
	}
}

// sent and got tell the watcher of an item on its way over the network.
func (x *simulation) sent(connection int32, at units.Time) {
	if x.watch != nil {
		x.sends[connection] = at
	}
}

func (x *simulation) got(connection int32, at units.Time) {
	if x.watch != nil {
		x.watch.Crossing(x.fold.connections.first(int(connection)), x.sends[connection], at)
	}
}
