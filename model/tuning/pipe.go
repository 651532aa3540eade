package tuning

import (
	"tutti/model/profile"
	"tutti/model/schedule"
	"tutti/model/units"
)

// leg is a number of hops that are alike, on the way of chunks through a pipeline
// of workers.
type leg struct {
	count          int
	share, buffers float64 // of the threads, and those read and written
	way            *way
	last           bool // the worker keeps the chunks
}

// pipe follows chunks through a pipeline of workers: each waits for the chunk and
// for the worker. All chunks but the last are alike, so that the longest chain of
// waits goes on from hop to hop with no other than three: the first chunk, the
// last but one, and the last. From the first to the last but one it goes at the
// slowest worker.
type pipe struct {
	*kernel
	slots  int
	chunks []chunk
	hops   float64 // hops and handovers of the first chunk
	opposed
}

// opposed is how chunks meet others on their links: those that come back, from an
// instant on, or those that come from farther and farther away, while the first
// chunk is on its way.
type opposed struct {
	from, while float64
	// lockstep is the share of the time that workers need beside their data in which
	// the links are idle, as all chunks are on them at a time.
	lockstep float64
}

// opposing returns how long something takes that takes so long for chunks that are
// among themselves, and so long for all.
func (o *opposed) opposing(alone, together float64) float64 {
	if alone <= 0 {
		return 0
	}
	more := together / alone
	from := max(o.from, o.while/more) // links are full when as many have come as fill them
	return alone + float64(max(0, alone-from)*(more-1))
}

// chunk is a chunk that has come so far.
type chunk struct {
	size units.Bytes
	// begin is when the next worker knows of it, and end when that knows of the
	// last of it: the same, but where the data carries flags.
	begin, end float64
	// behind is how many chunks come between this one and the one before it, as
	// large as this one.
	behind int
}

// pipe predicts chunks that follow each other over legs to a last worker that
// keeps them.
func (k *kernel) pipe(s *schedule.Shape, legs []leg, keep leg) Prediction {
	return k.opposedPipe(s, legs, keep, opposed{})
}

// opposedPipe is pipe for chunks that come back to where they went.
func (k *kernel) opposedPipe(s *schedule.Shape, legs []leg, keep leg, o opposed) Prediction {
	var list [3]chunk
	p := pipe{kernel: k, slots: s.Slots, chunks: list[:min(3, s.Loops)], opposed: o}
	for i := range p.chunks {
		p.chunks[i].size = s.Chunk
	}
	if s.Loops > 2 {
		p.chunks[1].behind = s.Loops - 3
	}
	p.chunks[len(p.chunks)-1].size = s.Last
	if k.inRow {
		return p.row(s, append(legs, keep))
	}
	for i := range legs {
		l := &legs[i]
		// Where hops are alike, the chain goes over to another chunk at the first or at
		// the last.
		if l.count > 0 {
			p.hop(l)
		}
		if l.count > 2 {
			p.pass(l, float64(l.count-2))
		}
		if l.count > 1 {
			p.hop(l)
		}
	}
	p.hop(&keep)
	way := p.chunks[0].end
	r := Prediction{limit: "the slowest of them"}
	r.terms = [4]float64{k.base, p.hops, way - p.hops, p.chunks[len(p.chunks)-1].end - way}
	return r
}

// row predicts how far calls follow each other whose ranks work on a call each: what
// the busiest is at it.
func (p *pipe) row(s *schedule.Shape, legs []leg) Prediction {
	most := 0.
	for _, l := range legs {
		if l.count > 0 || l.last {
			_, each := p.pace(s.Chunk, &l)
			_, end := p.pace(s.Last, &l)
			most = max(most, float64(float64(s.Loops-1)*each)+end-p.turn)
		}
	}
	r := Prediction{limit: "the busiest of the ranks, each at a call of its own"}
	r.terms = [4]float64{p.base, 0, 0, most}
	return r
}

// passing returns what a hop takes a worker for a chunk, the network after it, and
// what then passes until the next one knows.
func (k *kernel) passing(size units.Bytes, l *leg, by int) (data, network, known float64) {
	data = k.moving(size, l.share, l.buffers)
	if l.last {
		return data, 0, 0
	}
	switch wire := k.crossing(size, l.way, by); {
	case l.way.hop == profile.HopNET: // the worker fills a slot, the NIC sends it
		network = wire
	default:
		data = max(data, wire)
	}
	return data, network, k.handover(l.way)
}

// hopTime returns what a hop takes the first chunk.
func (k *kernel) hopTime(s *schedule.Shape, l *leg) float64 {
	first := s.Chunk
	if s.Loops == 1 {
		first = s.Last
	}
	data, network, known := k.passing(first, l, byFirst)
	if k.streams && network == 0 {
		data = 0
	}
	return k.overhead + data + network + known
}

// streaming tells whether readers follow writers word by word.
func (p *pipe) streaming(l *leg) bool { return p.streams && !l.last && l.way.hop != profile.HopNET }

// pace returns how far chunks that are alike follow each other over a hop: of one
// direction, and of both, which have the link to themselves for a part of the time, or
// fill it.
func (p *pipe) pace(size units.Bytes, l *leg) (alone, together float64) {
	beside := p.overhead + p.turn
	most, network, _ := p.passing(size, l, byMost)
	alone = max(beside+most, network)
	if l.last {
		return alone, alone
	}
	all := p.crossing(size, l.way, byAll)
	together = max(alone, all)
	if l.way.hop != profile.HopNET {
		together += float64(p.lockstep * max(0, beside+all-together))
	}
	return alone, together
}

// hop takes the chunks over a hop.
func (p *pipe) hop(l *leg) {
	began, free, sent := 0., 0., 0. // the worker, and the NIC
	alone, together := 0., 0.
	for i := range p.chunks {
		c := &p.chunks[i]
		data, network, known := p.passing(c.size, l, byFirst)
		if i > 0 {
			one, both := p.pace(p.chunks[0].size, l)
			n, before := float64(c.behind+1), p.opposing(alone, together)
			alone, together = alone+float64(n*one), together+float64(n*both)
			free = max(free, began+p.opposing(alone, together)-before)
			if network > 0 { // slots come back over the network, too
				trip := 2*(p.overhead+data) + network + known + l.way.latency
				free = max(free, began+float64(float64((c.behind+1)/p.slots)*trip))
			}
		}
		if p.streaming(l) { // meets others all the way
			all, _, _ := p.passing(c.size, l, byAll)
			data = p.opposing(alone+data, together+all) - p.opposing(alone, together)
		}
		began = max(c.begin, free)
		begin := began + p.overhead
		end := max(begin+data, c.end)
		free = end + p.turn
		switch {
		case network > 0:
			sent = max(sent, end) + network
			c.begin, c.end = sent+known, sent+known
		case p.streaming(l):
			c.begin, c.end = begin+known, end+known
		default:
			c.begin, c.end = end+known, end+known
		}
		if i == 0 {
			p.hops += p.overhead + known
		}
	}
}

// pass takes the chunks over as many hops, at each of which they find the worker
// free.
func (p *pipe) pass(l *leg, hops float64) {
	for i := range p.chunks {
		c := &p.chunks[i]
		data, network, known := p.passing(c.size, l, byFirst)
		if p.streaming(l) {
			c.begin += float64(hops * (p.overhead + known))
			c.end += float64(hops * known)
		} else {
			c.begin += float64(hops * (p.overhead + data + network + known))
			c.end = c.begin
		}
		if i == 0 {
			p.hops += float64(hops * (p.overhead + known))
		}
	}
}
