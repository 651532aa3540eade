package schedule

import "tutti/topo/search"

// Ring is AllReduce on rings: each loop takes a chunk per rank once round to
// reduce it and once more to hand the sums out. Source: NCCL 2.28.3,
// src/device/all_reduce.h, runRing; Patarasuk and Yuan, "Bandwidth optimal
// all-reduce algorithms for clusters of workstations", 2009.
//
// With i the rank's place in the ring, a loop is: send chunk i-1; receive,
// reduce and send i-2 … i+1; receive, reduce, keep and send i; receive, keep and
// send i-1 … i+2; receive i+1. Every chunk is passed in slices.
type Ring struct {
	task   Task
	rings  *search.Rings
	parts  []looped // by channel, in loops of a chunk per rank
	slices int64    // of a chunk
	slots  int
}

// NewRing returns the AllReduce of t on the given rings. Its worker for (rank,
// channel) has the number rank*channels + channel, and so has the connection to
// the next rank.
func NewRing(t Task, rings *search.Rings) *Ring {
	chunk, slice := ringSteps(t.Protocol)
	r := &Ring{task: t, rings: rings, slices: chunk / slice, slots: bufferSteps / int(slice)}
	for _, p := range split(t) {
		r.parts = append(r.parts, p.loop(int64(t.Ranks), inGrains(t, chunk*step(t.Protocol)), elements(t, 16)))
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

// at takes a worker's or connection's number apart.
func (r *Ring) at(w int) (rank, ch int) { return w / len(r.parts), w % len(r.parts) }

// Worker implements [Schedule].
func (r *Ring) Worker(w int) Worker {
	rank, ch := r.at(w)
	worker := Worker{Rank: rank, Channel: ch, Role: RoleRing, Share: 1, Steps: r.parts[ch].loops * r.hops() * int(r.slices)}
	if r.task.Ranks > 1 {
		previous := r.rings.At(ch, r.rings.Index(ch, rank)-1)
		worker.In, worker.Out = []int{previous*len(r.parts) + ch}, []int{w}
	}
	return worker
}

// Connection implements [Schedule].
func (r *Ring) Connection(c int) Connection {
	rank, ch := r.at(c)
	next := r.rings.At(ch, r.rings.Index(ch, rank)+1)
	out, in := r.rings.NETs(ch, rank)
	return Connection{From: []int{c}, To: []int{next*len(r.parts) + ch}, Slots: r.slots, OutNET: out, InNET: in}
}

// Step implements [Schedule].
func (r *Ring) Step(w, i int) Step {
	rank, ch := r.at(w)
	p, n, slices := &r.parts[ch], r.task.Ranks, int(r.slices)
	loop, hop, slice := i/(r.hops()*slices), i/slices%r.hops(), i%slices
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
	chunk := p.chunkOf(loop)
	from := min(p.count, int64(loop)*int64(n)*p.chunk+int64(turn)*chunk)
	length := min(chunk, p.count-from)
	size := sliceOf(r.task, length, r.slices)
	start := min(length, int64(slice)*size)
	s.Offset, s.Count = p.offset+from+start, min(size, length-start)
	return s
}
