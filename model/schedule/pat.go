package schedule

import (
	"math/bits"

	"tutti/model"
)

// PAT is AllGather and ReduceScatter on parallel aggregated trees: every rank's
// block has a binomial tree of its own, in which data goes distances that are
// powers of two. With b the number of a block, counted from the rank on, and l
// its lowest set bit:
//
//	ReduceScatter  receive what has come from the ranks 2^d back, d < l, reduce
//	               and send it to the rank 2^l on; of the own block (b = 0)
//	               receive, reduce and keep
//	AllGather      the same backwards: receive from the rank 2^l on, keep and
//	               send to those 2^d back, d < l; the own block goes to all
//
// Unlike NCCL it does not put several small blocks into one message. Sources:
// NCCL 2.28.3, src/include/collectives.h, PatRSAlgorithm and PatAGAlgorithm;
// Jeaugey, "PAT: a new algorithm for all-gather and reduce-scatter operations at
// scale", 2025.
type PAT struct {
	task   Task
	parts  []looped // by channel
	blocks []int    // in the order in which ReduceScatter sends them, AllGather in reverse
	rails  Rails
}

// PATBlocks is how many blocks are in one tree of [PAT]; the trees follow one another.
const PATBlocks = 16

// NewPAT returns the schedule of t, which leaves machines by the given ports. Its
// worker for (rank, channel) has the number rank*channels + channel; the
// connection from there over the distance 2^d, the number worker*dimensions + d.
func NewPAT(t Task, rails Rails) *PAT {
	r := &PAT{task: t, rails: rails}
	for _, p := range split(t) {
		r.parts = append(r.parts, p.loop(1, inGrains(t, step(t.Protocol)), 1))
	}
	// A rank waits least if it sends all that goes near before all that goes far:
	// the low bits of the blocks' numbers, reversed, count down. There are credits
	// for that in trees of twice as many blocks.
	low := bits.TrailingZeros(PATBlocks)
	for i := divUp(int64(t.Ranks), PATBlocks)*PATBlocks - 1; i >= 0; i-- {
		reversed := bits.Reverse8(uint8(i)) >> (8 - low) // of the low bits
		if b := int(i)>>low<<low + int(reversed); b < t.Ranks {
			r.blocks = append(r.blocks, b)
		}
	}
	return r
}

// dimensions is the number of distances.
func (r *PAT) dimensions() int { return bits.Len(uint(r.task.Ranks - 1)) }

// Task implements [Schedule].
func (r *PAT) Task() Task { return r.task }

// Workers implements [Schedule].
func (r *PAT) Workers() int { return r.task.Ranks * len(r.parts) }

// Connections implements [Schedule].
func (r *PAT) Connections() int { return r.Workers() * r.dimensions() }

// reach is the way from a rank over a distance: forward in ReduceScatter.
func (r *PAT) reach(rank, distance int) int {
	if r.task.Collective == model.AllGather {
		distance = -distance
	}
	return (rank + distance + r.task.Ranks) % r.task.Ranks
}

// Worker implements [Schedule].
func (r *PAT) Worker(w int) Worker {
	rank, ch := w/len(r.parts), w%len(r.parts)
	worker := Worker{Rank: rank, Channel: ch, Role: RoleReduce, Share: 1, Steps: r.parts[ch].loops * r.task.Ranks}
	for d := range r.dimensions() {
		from := r.reach(rank, -1<<d)
		worker.In = append(worker.In, (from*len(r.parts)+ch)*r.dimensions()+d)
		worker.Out = append(worker.Out, w*r.dimensions()+d)
	}
	return worker
}

// Connection implements [Schedule].
func (r *PAT) Connection(c int) Connection {
	d, from := c%r.dimensions(), c/r.dimensions()
	rank, ch := from/len(r.parts), from%len(r.parts)
	to := r.reach(rank, 1<<d)
	connection := Connection{From: []int{from}, To: []int{to*len(r.parts) + ch}, Slots: bufferSteps, Room: r.parts[ch].chunk, OutNET: -1, InNET: -1}
	if r.rails.NodeOf(to) != r.rails.NodeOf(rank) {
		connection.OutNET, connection.InNET = r.rails.NET(ch, rank), r.rails.NET(ch, to)
	}
	return connection
}

// Step implements [Schedule].
func (r *PAT) Step(w, i int) Step {
	rank, ch := w/len(r.parts), w%len(r.parts)
	p, n := &r.parts[ch], r.task.Ranks
	loop, i := i/n, i%n
	gathers := r.task.Collective == model.AllGather
	if gathers {
		i = n - 1 - i
	}
	b := r.blocks[i]
	// The ports of the distances below the lowest set bit at which a rank is on
	// the way of the block, and that of the bit itself.
	low := r.dimensions()
	var next Ports
	if b > 0 {
		low = bits.TrailingZeros(uint(b))
		next = Port(low)
	}
	side := First(0)
	for side.To < low && b+1<<side.To < n {
		side.To++
	}
	s := Step{
		Offset: int64((rank+b)%n)*r.task.Count + p.offset + int64(loop)*p.chunk, Count: p.chunkOf(loop),
		Recv: side, Input: true, Send: next, Output: b == 0,
	}
	if gathers {
		s.Recv, s.Send = next, side
		s.Input, s.Output = b == 0, b > 0 || !r.task.InPlace
	}
	return s
}
