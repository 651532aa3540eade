package sim

import (
	"tutti/model/profile"
	"tutti/model/units"
)

// NIC says how items get onto the network. The zero NIC has each take what the
// profile says, however many there are.
type NIC struct {
	// Poster is who tells the NIC to send. Its time for each message takes the
	// place of the proxy's, which is a part of the profile's latency: a lone item
	// over the proxy takes as long as ever, and many wait for each other.
	Poster profile.Poster
	// QueuePairs, unless 0, is how many each connection has, each of which carries
	// so much and no more.
	QueuePairs int
}

// posts is the state of posting: each item is posted, one after another, crosses
// the links, and takes as long as its queue pairs need.
type posts struct {
	message units.Time
	apart   bool // each connection by itself
	pace    units.Pace
	free    []units.Time // by rank, or by connection: when the next can be posted
	phases  []phase      // of connections
	since   []units.Time // when the item of a connection was sent
}

// phase is where the next item of a remote connection is.
type phase uint8

const (
	idle phase = iota
	posting
	moving
	arriving
)

// newPosts returns the state of posting, or nil if it costs nothing of its own.
func newPosts(n NIC, p *profile.Profile, connections, ranks int) *posts {
	if n == (NIC{}) {
		return nil
	}
	s := &posts{
		message: p.Message[n.Poster], apart: n.Poster == profile.ByGPU,
		free: make([]units.Time, max(connections, ranks)), phases: make([]phase, connections), since: make([]units.Time, connections),
	}
	if n.QueuePairs > 0 && p.QueuePair > 0 {
		s.pace = (p.QueuePair * units.Rate(n.QueuePairs)).Pace()
	}
	return s
}

// posted tells whether the next item of a connection has been posted, and sees to
// it if not.
func (x *simulation) posted(id int32) bool {
	n, p := &x.connections[id], x.posts
	switch p.phases[id] {
	case arriving:
		x.arrive(id)
		return false
	case idle:
		by := id
		if !p.apart {
			by = x.ranks[x.ends[n.firstEnd]]
		}
		staged := x.slots[n.firstSlot+n.put%n.slots].ready
		p.free[by] = max(p.free[by], staged) + p.message
		p.phases[id] = posting
		if p.free[by] > x.now {
			x.queue.Push(p.free[by], id)
			return false
		}
	}
	p.phases[id], p.since[id] = moving, x.now
	return true
}

// through tells whether an item that has crossed the links is through its queue
// pairs, too, and sees to it if not.
func (x *simulation) through(id int32) bool {
	n, p := &x.connections[id], x.posts
	end := p.since[id] + p.pace.Of(units.Bytes(x.slots[n.firstSlot+n.put%n.slots].last))
	if p.phases[id] == moving && end > x.now {
		p.phases[id] = arriving
		x.queue.Push(end, id)
		return false
	}
	p.phases[id] = idle
	return true
}
