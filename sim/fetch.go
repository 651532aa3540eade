package sim

import (
	"tutti/model/units"
	"tutti/sim/event"
)

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
