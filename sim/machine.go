package sim

import (
	"tutti/model/schedule"
	"tutti/model/units"
)

// run goes through events until none is left.
func (m *machine) run() {
	for i := range m.workers {
		m.begin(int32(i))
	}
	for m.queue.Len() > 0 {
		e := m.queue.Pop()
		m.now = e.At
		m.events++
		switch {
		case e.ID < 0:
			m.tick(^e.ID)
		case m.workers[e.ID].state == called:
			m.start(e.ID)
		default:
			m.end(e.ID)
		}
	}
}

// begin turns a worker to its next step.
func (m *machine) begin(id int32) {
	w := &m.workers[id]
	if w.next == w.steps {
		w.state = finished
		m.finished++
		return
	}
	w.step = m.schedule.Step(int(id), w.next)
	w.recv, w.send, w.ready = w.step.Recv, w.step.Send, m.now
	w.state = waiting
	m.try(id)
}

// try finds out when a waiting worker's step can begin: not before w.ready, as
// far as is known. If an item or a slot is not in sight, the worker waits to be
// tried again.
func (m *machine) try(id int32) {
	w := &m.workers[id]
	for i := range w.recv.All() {
		p := &m.ports[w.in+int32(i)]
		n := &m.connections[p.connection]
		if n.put <= p.items {
			w.blocked = p.connection
			return
		}
		w.ready = max(w.ready, m.slots[n.firstSlot+p.slot].ready)
		w.recv &^= schedule.Port(i)
	}
	for i := range w.send.All() {
		p := &m.ports[w.out+int32(i)]
		n := &m.connections[p.connection]
		if n.taken+n.slots <= p.items {
			w.blocked = p.connection
			return
		}
		w.ready = max(w.ready, m.slots[n.firstSlot+p.slot].free)
		w.send &^= schedule.Port(i)
	}
	w.state = called
	m.queue.Push(max(w.ready, m.now)+m.overhead, id)
}

// start lets a worker move the data of its step.
func (m *machine) start(id int32) {
	w := &m.workers[id]
	w.state = running
	w.ready = m.now
	if keeps := w.step.Send == 0 && !w.step.Input; !keeps || !m.direct(w) {
		w.ready += w.pace.Of(m.size(w.step.Total()))
	}
	for i := range w.step.Send.All() {
		p := &m.ports[w.out+int32(i)]
		n := &m.connections[p.connection]
		if !n.remote && n.kind != schedule.Reduction {
			w.flows += m.transfer(n, m.wire(w, i), id)
		}
		if n.streams {
			s := &m.slots[n.firstSlot+p.slot]
			s.last = 0
			m.put(n, p.connection, s)
		}
	}
	for i := range w.step.Recv.All() {
		p := &m.ports[w.in+int32(i)]
		n := &m.connections[p.connection]
		if n.kind == schedule.Reduction {
			w.flows += m.transfer(n, m.wire(w, i), id)
		}
		if n.streams {
			if s := &m.slots[n.firstSlot+p.slot]; s.last > 0 {
				w.ready = max(w.ready, s.last)
			} else {
				s.reader = id
				w.flows++
			}
		}
	}
	if w.flows == 0 {
		m.queue.Push(w.ready, id)
	}
}

// direct tells whether the writers of a worker's items have put the data where
// it belongs.
func (m *machine) direct(w *worker) bool {
	for i := range w.step.Recv.All() {
		if !m.connections[m.ports[w.in+int32(i)].connection].direct {
			return false
		}
	}
	return w.step.Recv != 0
}

// release takes away one of the things that a running step waits for.
func (m *machine) release(id int32) {
	w := &m.workers[id]
	if w.flows--; w.flows > 0 {
		return
	}
	if w.ready > m.now {
		m.queue.Push(w.ready, id)
	} else {
		m.end(id)
	}
}

// complete lets the reader of an item that streams come to the end of it.
func (m *machine) complete(n *connection, s *slot) {
	s.last = m.now + n.arrival
	if id := s.reader; id != none {
		s.reader = none
		m.workers[id].ready = max(m.workers[id].ready, s.last)
		m.release(id)
	}
}

// end completes a worker's step: slots become free and items go on their way.
func (m *machine) end(id int32) {
	w := &m.workers[id]
	for i := range w.step.Recv.All() {
		n, s, c := m.pass(w.in + int32(i))
		if s.takes--; s.takes > 0 {
			continue
		}
		s.puts, s.free = n.from, m.now+n.credit
		n.taken++
		m.wake(c, m.ends[n.firstEnd:n.firstEnd+n.from])
	}
	for i := range w.step.Send.All() {
		n, s, c := m.pass(w.out + int32(i))
		if n.remote {
			s.wire = m.wire(w, i)
			if n.staged++; n.staged == n.put+1 {
				m.send(n, c)
			}
		} else if n.streams {
			m.complete(n, s)
		} else if s.puts--; s.puts == 0 {
			m.put(n, c, s)
		}
	}
	w.next++
	m.begin(id)
}

// pass moves a port on to its next slot and returns the one it leaves.
func (m *machine) pass(port int32) (*connection, *slot, int32) {
	p := &m.ports[port]
	n := &m.connections[p.connection]
	s := &m.slots[n.firstSlot+p.slot]
	p.items++
	if p.slot++; p.slot == n.slots {
		p.slot = 0
	}
	return n, s, p.connection
}

// put makes an item available to the readers.
func (m *machine) put(n *connection, c int32, s *slot) {
	s.takes, s.ready = n.to, m.now+n.arrival
	n.put++
	m.wake(c, m.ends[n.firstEnd+n.from:n.firstEnd+n.from+n.to])
}

// wake tries those workers again that wait for a connection.
func (m *machine) wake(c int32, ids []int32) {
	for _, id := range ids {
		if w := &m.workers[id]; w.state == waiting && w.blocked == c {
			m.try(id)
		}
	}
}

// send starts the next item of a remote connection on its way.
func (m *machine) send(n *connection, id int32) {
	n.flows = m.transfer(n, m.slots[n.firstSlot+n.put%n.slots].wire, ^id)
	if n.flows == 0 {
		m.arrive(n, id)
	}
}

// size and wire return the bytes of elements, and those that the item of a
// port puts on a link.
func (m *machine) size(elements int64) units.Bytes {
	return units.Bytes(elements) * m.task.Datatype.Size()
}

func (m *machine) wire(w *worker, port int) units.Bytes {
	_, count := w.step.Range(port)
	return m.task.Protocol.Wire(m.size(count))
}

// transfer puts an item on the links of a connection, and returns on how many.
func (m *machine) transfer(n *connection, size units.Bytes, owner int32) int32 {
	if size == 0 {
		return 0
	}
	if n.kind != schedule.PointToPoint {
		size = units.Bytes(float64(size) / m.multimem)
	}
	for _, id := range m.routes[n.firstLink : n.firstLink+n.links] {
		l := &m.links[id]
		idle := l.busy() == 0
		l.add(m.now, size, owner)
		if next := l.next(); idle || next < l.due {
			l.due = next
			m.queue.Push(next, ^id)
		}
	}
	return n.links
}

// tick takes the flows that have ended off a link.
func (m *machine) tick(id int32) {
	l := &m.links[id]
	if l.busy() == 0 || m.now != l.due {
		return // an event that an earlier one has replaced
	}
	l.advance(m.now)
	for {
		owner, ok := l.done()
		if !ok {
			break
		}
		if owner < 0 {
			n := &m.connections[^owner]
			if n.flows--; n.flows == 0 {
				m.arrive(n, ^owner)
			}
			continue
		}
		m.release(owner)
	}
	if l.busy() > 0 {
		l.due = l.next()
		m.queue.Push(l.due, ^id)
	}
}

// arrive hands an item that has crossed the network to the reader, and sends
// the next one.
func (m *machine) arrive(n *connection, id int32) {
	m.put(n, id, &m.slots[n.firstSlot+n.put%n.slots])
	if n.staged > n.put {
		m.send(n, id)
	}
}
