package schedule

import "tutti/model"

// Layout tells which ranks are on which machine, as [tutti/topo.Layout] does.
type Layout interface {
	// NodeOf returns the machine that a rank is on.
	NodeOf(rank int) int
	// FirstRank returns the first rank of a machine; of the one after the last, the
	// number of ranks.
	FirstRank(node int) int
	// Even tells whether all machines have as many ranks.
	Even() bool
}

// Rings are the orders in which channels go round the ranks, as package search
// finds them.
type Rings interface {
	Layout
	// At returns the rank at a place of a channel's ring; the place wraps round.
	At(channel, index int) int
	// Index returns the place of a rank.
	Index(channel, rank int) int
	// NETs returns the ports from the rank to the next, or -1, -1 in a machine.
	NETs(channel, rank int) (out, in int)
}

// Ring passes chunks round rings, each in slices. With i the rank's place in the
// ring, a loop goes:
//
//	AllReduce      send chunk i-1; receive, reduce and send i-2 … i+1; receive,
//	               reduce, keep and send i; receive, keep and send i-1 … i+2;
//	               receive i+1
//	AllGather      send the own block; receive, keep and send those of the ranks
//	               at i-1 … i-n+2; receive that of i+1
//	ReduceScatter  send the block of i-1; receive, reduce and send i-2 … i+1;
//	               receive, reduce and keep the own
//	Broadcast      the root sends, the others receive, keep and send, but for the last
//	Reduce         the rank after the root sends, the others receive, reduce and
//	               send, the root keeps
//
// Source: NCCL 2.28.3, src/device/{all_reduce,all_gather,reduce_scatter,
// broadcast,reduce}.h; Patarasuk and Yuan, "Bandwidth optimal all-reduce
// algorithms for clusters of workstations", 2009.
type Ring struct {
	task  Task
	rings Rings
	parts []looped // by channel
	sliced
	slots int
	room  int64
}

// NewRing returns the schedule of t on the given rings. Its worker for (rank,
// channel) has the number rank*channels + channel, and so has the connection to
// the next rank.
func NewRing(t Task, rings Rings) *Ring {
	chunkSteps, sliceSteps := ringSteps(t)
	r := &Ring{task: t, rings: rings, slots: bufferSteps / int(sliceSteps)}
	r.sliced = sliced{chunkSteps / sliceSteps, elements(t, simpleStep*sliceSteps/32)}
	chunk := inGrains(t, chunkSteps*step(t.Protocol))
	_, r.room = r.at(0, chunk)
	perLoop, grain := int64(1), int64(1)
	if t.Collective == model.AllReduce {
		perLoop, grain = int64(t.Ranks), elements(t, 16)
	}
	for _, p := range split(t) {
		r.parts = append(r.parts, p.loop(perLoop, chunk, grain))
	}
	return r
}

// Task implements [Schedule].
func (r *Ring) Task() Task { return r.task }

// Workers implements [Schedule].
func (r *Ring) Workers() int { return r.task.Ranks * len(r.parts) }

// Connections implements [Schedule].
func (r *Ring) Connections() int { return r.Workers() }

// hops is the number of primitives that a worker runs in each loop.
func (r *Ring) hops() int {
	switch r.task.Collective {
	case model.AllReduce:
		return 2*r.task.Ranks - 1
	case model.AllGather, model.ReduceScatter:
		return r.task.Ranks
	default:
		return 1
	}
}

// who takes a worker's or connection's number apart.
func (r *Ring) who(w int) (rank, ch int) { return w / len(r.parts), w % len(r.parts) }

// Worker implements [Schedule].
func (r *Ring) Worker(w int) Worker {
	rank, ch := r.who(w)
	worker := Worker{Rank: rank, Channel: ch, Role: RoleRing, Share: 1, Steps: r.parts[ch].loops * r.hops() * int(r.slices)}
	if r.task.Ranks > 1 {
		previous := r.rings.At(ch, r.rings.Index(ch, rank)-1)
		worker.In, worker.Out = []int{previous*len(r.parts) + ch}, []int{w}
	}
	return worker
}

// Connection implements [Schedule].
func (r *Ring) Connection(c int) Connection {
	rank, ch := r.who(c)
	next := r.rings.At(ch, r.rings.Index(ch, rank)+1)
	out, in := r.rings.NETs(ch, rank)
	return Connection{From: []int{c}, To: []int{next*len(r.parts) + ch}, Slots: r.slots, Room: r.room, OutNET: out, InNET: in}
}

// Step implements [Schedule].
func (r *Ring) Step(w, i int) Step {
	rank, ch := r.who(w)
	p, slices := &r.parts[ch], int(r.slices)
	loop, hop, slice := i/(r.hops()*slices), i/slices%r.hops(), i%slices
	s, block := r.primitive(ch, rank, hop)
	chunk := p.chunkOf(loop)
	from := int64(loop) * p.perLoop * p.chunk
	if r.task.Collective == model.AllReduce { // blocks are chunks of the loop
		from, block = from+int64(block)*chunk, 0
	}
	from = min(p.count, from)
	start, count := r.at(int64(slice), min(chunk, p.count-from))
	s.Offset, s.Count = int64(block)*r.task.Count+p.offset+from+start, count
	return s
}

// primitive returns what a rank does in one hop of a loop, and with which chunk
// of the loop (AllReduce) or which rank's block (AllGather, ReduceScatter).
func (r *Ring) primitive(ch, rank, hop int) (s Step, block int) {
	n, last := r.task.Ranks, r.hops()-1
	at := r.rings.Index(ch, rank)
	recv, send := hop > 0, hop < last
	switch r.task.Collective {
	case model.AllReduce:
		s.Input, s.Output = hop < n, hop >= n-1
		block = (at - 1 - hop + 2*n) % n
	case model.AllGather:
		s.Input, s.Output = hop == 0, hop > 0 || !r.task.InPlace
		block = r.rings.At(ch, at-hop)
	case model.ReduceScatter:
		s.Input, s.Output = true, hop == last
		block = r.rings.At(ch, at-1-hop)
	case model.Broadcast:
		place := (at - r.rings.Index(ch, r.task.Root) + n) % n
		recv, send = place > 0, place < n-1
		s.Input, s.Output = !recv, recv || !r.task.InPlace
	default: // Reduce
		place := (at - r.rings.Index(ch, r.task.Root) - 1 + n) % n
		recv, send = place > 0, place < n-1
		s.Input, s.Output = true, !send
	}
	if recv {
		s.Recv = Port(0)
	}
	if send {
		s.Send = Port(0)
	}
	return s, block
}
