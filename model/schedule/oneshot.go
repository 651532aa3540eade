package schedule

import "tutti/model"

// OneShot is all-pairs in one hop: every rank sends each other rank what that
// one needs of its input, and reduces or keeps what it is sent. Over LL and
// LL128 data is pushed into the reader's slots; over Simple a rank only tells
// that its input is there and the others load from it, which costs a barrier at
// the end. In place, where a rank writes what others still have to load, Simple
// is pushed too.
//
// It does any collective: an element goes from each rank that has it in its
// input to each that has it in its output. Sources: NCCL 2.28.3, the kernel
// AGxLL_R of src/device/symmetric; MSCCL++, the all-pairs algorithms; vLLM,
// csrc/custom_all_reduce.cuh, one stage.
type OneShot struct {
	task  Task
	parts []looped // by channel
	pairs
	pull bool
}

// NewOneShot returns the schedule of t. Its worker for (rank, channel) has the
// number rank*channels + channel.
func NewOneShot(t Task) *OneShot {
	r := &OneShot{task: t, pull: t.Protocol == model.Simple && !t.InPlace}
	for _, p := range split(t) {
		chunk := p.count
		if !r.pull {
			chunk = inGrains(t, step(t.Protocol))
		}
		r.parts = append(r.parts, p.loop(1, chunk, 1))
	}
	r.pairs = pairs{t.Ranks, len(r.parts)}
	return r
}

// Task implements [Schedule].
func (r *OneShot) Task() Task { return r.task }

// Workers implements [Schedule].
func (r *OneShot) Workers() int { return r.task.Ranks * len(r.parts) }

// Connections implements [Schedule].
func (r *OneShot) Connections() int { return r.connections() }

// hop is a step of a loop.
type hop int

const (
	hopKeep  hop = iota // copies what is a rank's own
	hopSend             // tells that the input is there, or sends it
	hopRecv             // reduces or keeps what comes
	hopClose            // waits until all have loaded from the input, and says so
	hopEnd              // hears that from the others
)

// peers counts the ranks that a rank receives from and sends to.
func (r *OneShot) peers(rank int) (from, to int) {
	t := &r.task
	switch others := t.Ranks - 1; t.Collective {
	case model.Broadcast:
		if rank == t.Root {
			return 0, others
		}
		return 1, 0
	case model.Reduce:
		if rank == t.Root {
			return others, 0
		}
		return 0, 1
	case model.SendRecv, model.Exchange:
		if t.Peer(rank) == rank {
			return 0, 0
		}
		return 1, 1
	default:
		return others, others
	}
}

// hops lists what a rank does in each loop.
func (r *OneShot) hops(rank int) (list [5]hop, n int) {
	add := func(h hop, needed bool) {
		if needed {
			list[n] = h
			n++
		}
	}
	from, to := r.peers(rank)
	reduces := r.task.reduces() && from > 0
	add(hopKeep, r.task.sends(rank, rank) && !r.task.InPlace && !reduces)
	add(hopSend, to > 0)
	add(hopRecv, from > 0)
	add(hopClose, to > 0 && r.pull)
	add(hopEnd, from > 0 && r.pull)
	return list, n
}

// Worker implements [Schedule].
func (r *OneShot) Worker(w int) Worker {
	rank, ch := w/len(r.parts), w%len(r.parts)
	_, hops := r.hops(rank)
	worker := Worker{Rank: rank, Channel: ch, Role: RoleReduce, Share: 1, Steps: r.parts[ch].loops * hops}
	for p := range r.task.Ranks - 1 {
		other := r.further(rank, p)
		if r.task.sends(other, rank) {
			worker.In = append(worker.In, r.from(rank, ch, p))
		}
		if r.task.sends(rank, other) {
			worker.Out = append(worker.Out, r.to(rank, ch, p))
		}
	}
	return worker
}

// Connection implements [Schedule].
func (r *OneShot) Connection(c int) Connection {
	from, to, ch := r.ends(c)
	if !r.task.sends(from, to) {
		return Connection{OutNET: -1, InNET: -1}
	}
	connection := Connection{
		From: []int{from*len(r.parts) + ch}, To: []int{to*len(r.parts) + ch},
		Slots: bufferSteps, Room: r.parts[ch].chunk, OutNET: -1, InNET: -1,
	}
	if r.pull {
		connection.Storage, connection.Slots = InInput, 1
	}
	return connection
}

// Step implements [Schedule].
func (r *OneShot) Step(w, i int) Step {
	rank, ch := w/len(r.parts), w%len(r.parts)
	p := &r.parts[ch]
	hops, n := r.hops(rank)
	from, to := r.peers(rank)
	loop := i / n
	s := Step{Count: p.chunkOf(loop), Turn: rank + 1, Blocks: r.task.Ranks, End: r.task.Elements()}
	switch hops[i%n] {
	case hopKeep:
		s.Input, s.Output = true, true
		s.Offset, s.Stride = r.task.sent(rank)
		s.Offset, s.Stride = s.Offset+int64(rank)*s.Stride, 0
	case hopSend:
		s.Input, s.Send = true, First(to)
		s.Offset, s.Stride = r.task.sent(rank)
	case hopRecv:
		s.Input, s.Output, s.Recv = r.task.reduces(), true, First(from)
		s.Offset, s.Stride = r.task.received(rank)
	case hopClose:
		return Step{Input: true, Send: First(to)}
	case hopEnd:
		return Step{Recv: First(from)}
	}
	s.Offset += p.offset + int64(loop)*p.chunk
	return s
}
