package schedule

import (
	"tutti/model"
	"tutti/topo/search"
)

// Ring is AllReduce on rings: each loop takes a chunk per rank once round to
// reduce it and once more to hand the sums out. Source: NCCL 2.28.3,
// src/device/all_reduce.h, runRing; Patarasuk and Yuan, "Bandwidth optimal
// all-reduce algorithms for clusters of workstations", 2009.
//
// With i the rank's place in the ring, a loop is: send chunk i-1; receive,
// reduce and send i-2 … i+1; receive, reduce, keep and send i; receive, keep and
// send i-1 … i+2; receive i+1. Every chunk is passed in slices.
type Ring struct {
	task  Task
	rings *search.Rings
	parts []ringPart
}

// ringPart is one channel's share, in loops of n chunks.
type ringPart struct {
	part
	loops       int
	chunk, last int64 // elements of a chunk, and of one in the last loop
	slices      int
}

// NewRing returns the AllReduce of t on the given rings. Its worker for (rank,
// channel) has the number rank*channels + channel, and so has the connection to
// the next rank.
func NewRing(t Task, rings *search.Rings) *Ring {
	r := &Ring{task: t, rings: rings}
	n := int64(t.Ranks)
	for _, p := range split(t) {
		chunk, slices := ringChunk(t)
		loops := divUp(p.count, n*chunk)
		rest := p.count - (loops-1)*n*chunk
		last := min(chunk, roundUp(divUp(rest, n), elements(t, 16)))
		r.parts = append(r.parts, ringPart{p, int(loops), chunk, last, slices})
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
func (r *Ring) hops() int { return 2*r.task.Ranks - 1 }

// Worker implements [Schedule].
func (r *Ring) Worker(w int) Worker {
	rank, ch := w/len(r.parts), w%len(r.parts)
	p := &r.parts[ch]
	worker := Worker{Rank: rank, Channel: ch, Role: RoleRing, Share: 1, Steps: p.loops * r.hops() * p.slices}
	if r.task.Ranks > 1 {
		previous := r.rings.At(ch, r.rings.Index(ch, rank)-1)
		worker.In, worker.Out = []int{previous*len(r.parts) + ch}, []int{w}
	}
	return worker
}

// Connection implements [Schedule].
func (r *Ring) Connection(c int) Connection {
	rank, ch := c/len(r.parts), c%len(r.parts)
	next := r.rings.At(ch, r.rings.Index(ch, rank)+1)
	out, in := r.rings.NETs(ch, rank)
	steps := 1
	if r.task.Protocol == model.Simple {
		steps = ringSliceFor
	}
	return Connection{
		From: []int{c}, To: []int{next*len(r.parts) + ch}, Slots: slots(steps), OutNET: out, InNET: in,
	}
}

// Step implements [Schedule].
func (r *Ring) Step(w, i int) Step {
	rank, ch := w/len(r.parts), w%len(r.parts)
	p := &r.parts[ch]
	n := r.task.Ranks
	loop, hop, slice := i/(r.hops()*p.slices), i/p.slices%r.hops(), i%p.slices
	chunk := p.chunk
	if loop == p.loops-1 {
		chunk = p.last
	}
	s := Step{
		Input:  hop < n,    // the first n primitives send or reduce
		Output: hop >= n-1, // the last n keep
	}
	if hop > 0 {
		s.Recv = Port(0)
	}
	if hop < r.hops()-1 {
		s.Send = Port(0)
	}
	// Counting back from i-1, each primitive takes the chunk before.
	turn := (r.rings.Index(ch, rank) - 1 - hop + 2*n) % n
	from := min(p.count, int64(loop)*int64(n)*p.chunk+int64(turn)*chunk)
	length := min(chunk, p.count-from)
	size := sliceOf(r.task, length, p.slices)
	start := min(length, int64(slice)*size)
	s.Offset, s.Count = p.offset+from+start, min(size, length-start)
	return s
}
