package sim

import (
	"tutti/model/schedule"
	"tutti/model/units"
)

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
