package sim

import (
	"tutti/model/schedule"
	"tutti/model/units"
)

// run goes through events until none is left.
func (x *simulation) run() {
	for i := range x.workers {
		x.begin(int32(i))
	}
	for x.queue.Len() > 0 {
		e := x.queue.Pop()
		x.now = e.At
		x.events++
		switch {
		case e.ID < 0:
			x.tick(^e.ID)
		case x.workers[e.ID].state == scheduled:
			x.start(e.ID)
		default:
			x.end(e.ID)
		}
	}
}

// begin turns a worker to its next step.
func (x *simulation) begin(id int32) {
	w := &x.workers[id]
	if w.next == w.steps {
		w.state = finished
		x.finished++
		return
	}
	w.step = x.schedule.Step(int(id), w.next)
	w.recv, w.send, w.ready = w.step.Recv, w.step.Send, x.now
	w.state = waiting
	x.try(id)
}

// try finds out when a waiting worker's step can begin: not before w.ready, as
// far as is known. If an item or a slot is not in sight, the worker waits to be
// tried again.
func (x *simulation) try(id int32) {
	w := &x.workers[id]
	for i := range w.recv.All() {
		p := &x.ports[w.in+int32(i)]
		n := &x.connections[p.connection]
		if n.put <= p.items {
			w.blocked = p.connection
			return
		}
		w.ready = max(w.ready, x.slots[n.firstSlot+p.slot].ready)
		w.recv.From++
	}
	for i := range w.send.All() {
		p := &x.ports[w.out+int32(i)]
		n := &x.connections[p.connection]
		if n.taken+n.slots <= p.items {
			w.blocked = p.connection
			return
		}
		w.ready = max(w.ready, x.slots[n.firstSlot+p.slot].free)
		w.send.From++
	}
	w.state = scheduled
	x.queue.Push(max(w.ready, x.now)+x.overhead, id)
}

// start lets a worker move the data of its step.
func (x *simulation) start(id int32) {
	w := &x.workers[id]
	w.state = running
	w.ready = x.now
	if keeps := w.step.Send.Len() == 0 && !w.step.Input; !keeps || !x.direct(w) {
		w.ready += w.pace.Of(x.size(w.step.Total()))
	}
	for i := range w.step.Send.All() {
		p := &x.ports[w.out+int32(i)]
		n := &x.connections[p.connection]
		if !n.remote && n.kind != schedule.Reduction {
			w.flows += x.transfer(n, x.wire(w, i), id)
		}
		if n.streams {
			s := &x.slots[n.firstSlot+p.slot]
			s.last = 0
			x.put(n, p.connection, s)
		}
	}
	for i := range w.step.Recv.All() {
		p := &x.ports[w.in+int32(i)]
		n := &x.connections[p.connection]
		if n.kind == schedule.Reduction {
			w.flows += x.transfer(n, x.wire(w, i), id)
		}
		if n.streams {
			if s := &x.slots[n.firstSlot+p.slot]; s.last > 0 {
				w.ready = max(w.ready, s.last)
			} else {
				s.reader = id
				w.flows++
			}
		}
	}
	if w.flows == 0 {
		x.queue.Push(w.ready, id)
	}
}

// direct tells whether the writers of a worker's items have put the data where
// it belongs.
func (x *simulation) direct(w *worker) bool {
	for i := range w.step.Recv.All() {
		if !x.connections[x.ports[w.in+int32(i)].connection].direct {
			return false
		}
	}
	return w.step.Recv.Len() > 0
}

// release takes away one of the things that a running step waits for.
func (x *simulation) release(id int32) {
	w := &x.workers[id]
	if w.flows--; w.flows > 0 {
		return
	}
	if w.ready > x.now {
		x.queue.Push(w.ready, id)
	} else {
		x.end(id)
	}
}

// complete lets the reader of an item that streams come to the end of it.
func (x *simulation) complete(n *connection, s *slot) {
	s.last = x.now + n.arrival
	if id := s.reader; id != none {
		s.reader = none
		x.workers[id].ready = max(x.workers[id].ready, s.last)
		x.release(id)
	}
}

// end completes a worker's step: slots become free and items go on their way.
func (x *simulation) end(id int32) {
	w := &x.workers[id]
	for i := range w.step.Recv.All() {
		n, s, c := x.pass(w.in + int32(i))
		if s.takes--; s.takes > 0 {
			continue
		}
		s.puts, s.free = n.from, x.now+n.credit
		n.taken++
		x.wake(c, x.ends[n.firstEnd:n.firstEnd+n.from])
	}
	for i := range w.step.Send.All() {
		n, s, c := x.pass(w.out + int32(i))
		if n.remote {
			s.wire = x.wire(w, i)
			if n.staged++; n.staged == n.put+1 {
				x.send(n, c)
			}
		} else if n.streams {
			x.complete(n, s)
		} else if s.puts--; s.puts == 0 {
			x.put(n, c, s)
		}
	}
	w.next++
	x.begin(id)
}

// pass moves a port on to its next slot and returns the one it leaves.
func (x *simulation) pass(port int32) (*connection, *slot, int32) {
	p := &x.ports[port]
	n := &x.connections[p.connection]
	s := &x.slots[n.firstSlot+p.slot]
	p.items++
	if p.slot++; p.slot == n.slots {
		p.slot = 0
	}
	return n, s, p.connection
}

// put makes an item available to the readers.
func (x *simulation) put(n *connection, c int32, s *slot) {
	s.takes, s.ready = n.to, x.now+n.arrival
	n.put++
	x.wake(c, x.ends[n.firstEnd+n.from:n.firstEnd+n.from+n.to])
}

// wake tries those workers again that wait for a connection.
func (x *simulation) wake(c int32, ids []int32) {
	for _, id := range ids {
		if w := &x.workers[id]; w.state == waiting && w.blocked == c {
			x.try(id)
		}
	}
}

// send starts the next item of a remote connection on its way.
func (x *simulation) send(n *connection, id int32) {
	n.flows = x.transfer(n, x.slots[n.firstSlot+n.put%n.slots].wire, ^id)
	if n.flows == 0 {
		x.arrive(n, id)
	}
}

// size and wire return the bytes of elements, and those that the item of a
// port puts on a link.
func (x *simulation) size(elements int64) units.Bytes {
	return units.Bytes(elements) * x.task.Datatype.Size()
}

func (x *simulation) wire(w *worker, port int) units.Bytes {
	_, count := w.step.Range(port)
	return x.task.Protocol.Wire(x.size(count))
}

// transfer puts an item on the links of a connection, and returns on how many.
func (x *simulation) transfer(n *connection, size units.Bytes, owner int32) int32 {
	if size == 0 {
		return 0
	}
	if n.kind != schedule.PointToPoint {
		size = units.Bytes(float64(size) / x.multimem)
	}
	for _, id := range x.routes[n.firstLink : n.firstLink+n.links] {
		l := &x.links[id]
		idle := l.busy() == 0
		l.add(x.now, size, owner)
		if next := l.next(); idle || next < l.due {
			l.due = next
			x.queue.Push(next, ^id)
		}
	}
	return n.links
}

// tick takes the flows that have ended off a link.
func (x *simulation) tick(id int32) {
	l := &x.links[id]
	if l.busy() == 0 || x.now != l.due {
		return // an event that an earlier one has replaced
	}
	l.advance(x.now)
	for {
		owner, ok := l.done()
		if !ok {
			break
		}
		if owner < 0 {
			n := &x.connections[^owner]
			if n.flows--; n.flows == 0 {
				x.arrive(n, ^owner)
			}
			continue
		}
		x.release(owner)
	}
	if l.busy() > 0 {
		l.due = l.next()
		x.queue.Push(l.due, ^id)
	}
}

// arrive hands an item that has crossed the network to the reader, and sends
// the next one.
func (x *simulation) arrive(n *connection, id int32) {
	x.put(n, id, &x.slots[n.firstSlot+n.put%n.slots])
	if n.staged > n.put {
		x.send(n, id)
	}
}
