package sim

import (
	"tutti/model"
	"tutti/model/profile"
	"tutti/model/schedule"
	"tutti/model/units"
	"tutti/sim/event"
	"tutti/topo"
)

// machine is the state of a simulation.
type machine struct {
	schedule schedule.Schedule
	task     schedule.Task
	overhead units.Time
	multimem float64 // share of a link's rate for multicasts and reductions

	workers     []worker
	ports       []port // of all workers, inbound before outbound
	connections []connection
	ends        []int32 // the workers at the ends of all connections
	slots       []slot  // of all connections
	links       []link
	routes      []int32 // the links of all connections

	queue    event.Queue // of worker numbers, and of ^link numbers
	now      units.Time
	events   int64
	finished int // workers
}

// none stands for no worker.
const none = -1

// state tells what a worker is doing.
type state uint8

const (
	waiting state = iota // for an item or a slot
	called               // its step begins at an instant that is known
	running
	finished
)

type worker struct {
	step        schedule.Step
	next, steps int
	recv, send  schedule.Ports // of the step, that are not known to be ready
	blocked     int32          // the connection that a waiting worker is tried again for
	in, out     int32          // first inbound and outbound port
	flows       int32          // on links and from writers, that the running step waits for
	state       state
	pace        units.Pace // of copying
	ready       units.Time // the step does not begin before or, once it runs, end
}

// port is a worker's end of a connection.
type port struct {
	connection int32
	slot       int32 // the next to use
	items      int32 // that have gone through
}

type connection struct {
	kind               schedule.Kind
	remote             bool  // through the network
	direct             bool  // the writer can reach the reader's output
	streams            bool  // the data carries flags: it can be read while it is written
	slots, firstSlot   int32 // credits
	firstEnd, from, to int32 // writers, then readers
	links, firstLink   int32
	// Items so far: filled in by the writer, there for the reader, and taken out
	// by all readers. The first two differ over a network only.
	staged, put, taken int32
	flows              int32      // on links, of the item that crosses the network
	arrival            units.Time // until the reader knows of an item that has crossed the links
	credit             units.Time // until the writer knows of a free slot
}

type slot struct {
	ready, free units.Time  // instants from which the item or the slot can be used
	last        units.Time  // instant at which an item that streams is complete, 0 before it is known
	puts, takes int32       // still to come, of all writers or readers
	reader      int32       // that takes an item which is not complete, or none
	wire        units.Bytes // of the item, to be sent over the network
}

// newMachine lays out the workers, connections and links of a simulation.
func newMachine(s schedule.Schedule, c *topo.Cluster, p *profile.Profile) *machine {
	m := &machine{schedule: s, task: s.Task(), workers: make([]worker, s.Workers()), connections: make([]connection, s.Connections())}
	m.overhead, m.multimem = p.Overhead[m.task.Protocol], p.Multimem
	ranks := make([]int, len(m.workers))
	for i := range m.workers {
		described := s.Worker(i)
		w := &m.workers[i]
		ranks[i], w.steps = described.Rank, described.Steps
		if w.steps == 0 {
			continue
		}
		rate := p.Copy[m.task.Protocol]
		if described.Role == schedule.RoleScatter || described.Role == schedule.RoleGather {
			rate = p.LocalCopy
		}
		w.pace = (rate * units.Rate(described.Share)).Pace()
		w.in = int32(len(m.ports))
		for _, c := range described.In {
			m.ports = append(m.ports, port{connection: int32(c)})
		}
		w.out = int32(len(m.ports))
		for _, c := range described.Out {
			m.ports = append(m.ports, port{connection: int32(c)})
		}
	}
	wires := newWires(c, p, len(m.connections))
	for i := range m.connections {
		described := s.Connection(i)
		if len(described.From) == 0 {
			continue
		}
		hop, latency := wires.lay(i, described, pick(ranks, described.From), pick(ranks, described.To))
		n := &m.connections[i]
		*n = connection{
			kind: described.Kind, remote: hop == profile.HopNET,
			slots: int32(described.Slots), firstSlot: int32(len(m.slots)),
			firstEnd: int32(len(m.ends)), from: int32(len(described.From)), to: int32(len(described.To)),
			arrival: latency + p.Handover[hop][m.task.Algorithm][m.task.Protocol], credit: latency,
		}
		beside := n.kind == schedule.PointToPoint && !n.remote
		n.direct = beside && m.task.Protocol == model.Simple
		n.streams = beside && m.task.Protocol != model.Simple
		for range described.Slots {
			m.slots = append(m.slots, slot{puts: n.from, reader: none})
		}
		for _, ends := range [][]int{described.From, described.To} {
			for _, w := range ends {
				m.ends = append(m.ends, int32(w))
			}
		}
	}
	m.links, m.routes = wires.merge(func(i int, first, count int32) {
		m.connections[i].firstLink, m.connections[i].links = first, count
	})
	return m
}

// pick returns the values at the given places.
func pick(values, places []int) []int {
	picked := make([]int, len(places))
	for i, place := range places {
		picked[i] = values[place]
	}
	return picked
}

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
	for w.recv != 0 {
		i, others := w.recv.Next()
		p := &m.ports[w.in+int32(i)]
		n := &m.connections[p.connection]
		if n.put <= p.items {
			w.blocked = p.connection
			return
		}
		w.ready = max(w.ready, m.slots[n.firstSlot+p.slot].ready)
		w.recv = others
	}
	for w.send != 0 {
		i, others := w.send.Next()
		p := &m.ports[w.out+int32(i)]
		n := &m.connections[p.connection]
		if n.taken+n.slots <= p.items {
			w.blocked = p.connection
			return
		}
		w.ready = max(w.ready, m.slots[n.firstSlot+p.slot].free)
		w.send = others
	}
	w.state = called
	m.queue.Push(max(w.ready, m.now)+m.overhead, id)
}

// start lets a worker move the data of its step.
func (m *machine) start(id int32) {
	w := &m.workers[id]
	w.state = running
	size := m.size(w.step.Total())
	if w.step.Send == 0 && !w.step.Input && m.connections[m.ports[w.in].connection].direct {
		size = 0 // the writer has put the data where it belongs
	}
	w.ready = m.now + w.pace.Of(size)
	for ports := w.step.Send; ports != 0; {
		var i int
		i, ports = ports.Next()
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
	for ports := w.step.Recv; ports != 0; {
		var i int
		i, ports = ports.Next()
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
	for ports := w.step.Recv; ports != 0; {
		var i int
		i, ports = ports.Next()
		n, s, c := m.pass(w.in + int32(i))
		if s.takes--; s.takes > 0 {
			continue
		}
		s.puts, s.free = n.from, m.now+n.credit
		n.taken++
		m.wake(c, m.ends[n.firstEnd:n.firstEnd+n.from])
	}
	for ports := w.step.Send; ports != 0; {
		var i int
		i, ports = ports.Next()
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
