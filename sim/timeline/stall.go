package timeline

import (
	"fmt"

	"tutti/model/schedule"
	"tutti/model/units"
)

// use is an item that a step takes from a connection or puts into it.
type use struct {
	connection, item int
	sends            bool
	bytes            units.Bytes // on the wire
}

// uses goes through the steps, which are in order, with what they take and put.
func (t *Timeline) uses(yield func(at int, uses []use) bool) {
	var w schedule.Worker
	var received, sent []int // items so far, by port
	var list []use
	task := t.schedule.Task()
	for i, done := range t.steps {
		if i == 0 || t.steps[i-1].worker != done.worker {
			w = t.schedule.Worker(int(done.worker))
			received, sent = make([]int, len(w.In)), make([]int, len(w.Out))
		}
		s := t.schedule.Step(int(done.worker), int(done.number))
		list = list[:0]
		add := func(ports schedule.Ports, connections, items []int, sends bool) {
			for port := range ports.All() {
				_, count := s.Range(port)
				list = append(list, use{connections[port], items[port], sends, task.Protocol.Wire(units.Bytes(count) * task.Datatype.Size())})
				items[port]++
			}
		}
		add(s.Recv, w.In, received, false)
		add(s.Send, w.Out, sent, true)
		if !yield(i, list) {
			return
		}
	}
}

// passage is when the items of a connection came to its readers and were taken out
// of its slots, and how large they were.
type passage struct {
	come, gone []units.Time
	bytes      []units.Bytes
}

// findPassages finds those of all connections.
func (t *Timeline) findPassages() []passage {
	list := make([]passage, t.schedule.Connections())
	for at, uses := range t.uses {
		end := t.steps[at].end
		for _, u := range uses {
			p := &list[u.connection]
			if !u.sends {
				raise(&p.gone, u.item, end)
				continue
			}
			raise(&p.come, u.item, end)
			if u.item == len(p.bytes) { // of several writers, the first tells
				p.bytes = append(p.bytes, u.bytes)
			}
		}
	}
	item := 0
	for i, crossing := range t.items {
		if i > 0 && t.items[i-1].connection == crossing.connection {
			item++
		} else {
			item = 0
		}
		raise(&list[crossing.connection].come, item, crossing.end)
	}
	return list
}

// raise makes an instant of a list at least as late as another.
func raise(list *[]units.Time, at int, to units.Time) {
	for len(*list) <= at {
		*list = append(*list, 0)
	}
	(*list)[at] = max((*list)[at], to)
}

// Why a step did not begin at once.
const (
	onItself = iota // what steps cost before they move data
	forData
	forSlot
)

// stall is what a step waited for: the last of what came after the worker was
// there.
type stall struct {
	why        int
	connection int
}

// findStalls finds those of all steps. A wait for data or a slot includes the time
// until the worker knows of it, and what the step itself costs before it moves data.
func (t *Timeline) findStalls() []stall {
	list := make([]stall, len(t.steps))
	slots := map[int]int{}
	for at, uses := range t.uses {
		last := t.steps[at].from
		for _, u := range uses {
			when, why, p := units.Time(0), forData, &t.passages[u.connection]
			if u.sends {
				if _, known := slots[u.connection]; !known {
					slots[u.connection] = t.schedule.Connection(u.connection).Slots
				}
				why = forSlot
				if before := u.item - slots[u.connection]; before >= 0 && before < len(p.gone) {
					when = p.gone[before]
				}
			} else if u.item < len(p.come) {
				when = p.come[u.item]
			}
			if when > last {
				last, list[at] = when, stall{why, u.connection}
			}
		}
	}
	return list
}

// words tells of a stall.
func (t *Timeline) words(s stall) string {
	switch s.why {
	case forData:
		n := t.schedule.Connection(s.connection)
		return fmt.Sprintf("wait for data of rank %d", t.schedule.Worker(n.From[0]).Rank)
	case forSlot:
		n := t.schedule.Connection(s.connection)
		return fmt.Sprintf("wait for a slot to rank %d", t.schedule.Worker(n.To[0]).Rank)
	default:
		return "overhead"
	}
}
