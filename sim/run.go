package sim

import "tutti/model/units"

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
