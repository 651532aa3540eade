package schedule

import "tutti/model"

// TwoShotCast is Broadcast and Reduce in two hops, in which every rank but the root
// owns a share of the data. For Broadcast the root sends each owner its share, which
// that one keeps and sends to the other owners; for Reduce all send each owner its
// share, who reduces it and sends it to the root. So a link carries the data once
// each way, as on rings, and the way is two hops long. NCCL has no such form.
type TwoShotCast struct {
	task  Task
	parts []looped // by channel, in loops of a chunk per owner
	pairs
}

// NewTwoShotCast returns the Broadcast or Reduce of t. Its worker for (rank,
// channel) has the number rank*channels + channel.
func NewTwoShotCast(t Task) *TwoShotCast {
	r := &TwoShotCast{task: t}
	for _, p := range split(t) {
		r.parts = append(r.parts, p.loop(int64(max(1, t.Ranks-1)), inGrains(t, step(t.Protocol)), elements(t, 16)))
	}
	r.pairs = pairs{t.Ranks, len(r.parts)}
	return r
}

// Task implements [Schedule].
func (r *TwoShotCast) Task() Task { return r.task }

// Workers implements [Schedule].
func (r *TwoShotCast) Workers() int { return r.task.Ranks * len(r.parts) }

// Connections implements [Schedule].
func (r *TwoShotCast) Connections() int { return r.connections() }

// owners is how many ranks own a share. The one that is i + 1 further on than the
// root is the i-th.
func (r *TwoShotCast) owners() int { return r.task.Ranks - 1 }

// index returns which owner a rank is, -1 for the root.
func (r *TwoShotCast) index(rank int) int { return (rank-r.task.Root+r.task.Ranks)%r.task.Ranks - 1 }

// between returns the connection from the a-th owner to the b-th; -1 is the root.
func (r *TwoShotCast) between(a, b, ch int) int {
	rank := (r.task.Root + 1 + a) % r.task.Ranks
	return r.to(rank, ch, (b-a-1+r.task.Ranks)%r.task.Ranks)
}

// broadcasts tells whether the call is a Broadcast, and not a Reduce.
func (r *TwoShotCast) broadcasts() bool { return r.task.Collective == model.Broadcast }

// Worker implements [Schedule]. An owner's ports to and from the others are in the
// order of how much further on they are; the one from the root comes first, the one
// to it last.
func (r *TwoShotCast) Worker(w int) Worker {
	rank, ch := w/len(r.parts), w%len(r.parts)
	worker := Worker{Rank: rank, Channel: ch, Role: RoleReduce, Share: 1, Steps: r.parts[ch].loops * 2}
	own, n := r.index(rank), r.owners()
	if own < 0 {
		for i := range n {
			worker.Out = append(worker.Out, r.between(-1, i, ch))
			if !r.broadcasts() {
				worker.In = append(worker.In, r.between(i, -1, ch))
			}
		}
		return worker
	}
	worker.In = append(worker.In, r.between(-1, own, ch))
	for further := 1; further < n; further++ {
		other := (own + further) % n
		worker.In = append(worker.In, r.between(other, own, ch))
		worker.Out = append(worker.Out, r.between(own, other, ch))
	}
	if !r.broadcasts() {
		worker.Out = append(worker.Out, r.between(own, -1, ch))
	}
	return worker
}

// Connection implements [Schedule].
func (r *TwoShotCast) Connection(c int) Connection {
	from, to, ch := r.ends(c)
	if r.broadcasts() && to == r.task.Root {
		return Connection{OutNET: -1, InNET: -1}
	}
	return Connection{
		From: []int{from*len(r.parts) + ch}, To: []int{to*len(r.parts) + ch},
		Slots: bufferSteps, Room: r.parts[ch].chunk, OutNET: -1, InNET: -1,
	}
}

// Step implements [Schedule]. A loop has two steps.
func (r *TwoShotCast) Step(w, i int) Step {
	rank, ch := w/len(r.parts), w%len(r.parts)
	p, loop, n := &r.parts[ch], i/2, r.owners()
	s := Step{
		Offset: p.offset + int64(loop)*p.perLoop*p.chunk, Count: p.chunkOf(loop),
		Stride: p.chunkOf(loop), End: p.offset + p.count, Blocks: n,
	}
	if r.broadcasts() {
		return r.broadcast(s, r.index(rank), i%2 == 0)
	}
	return r.reduce(s, r.index(rank), i%2 == 0)
}

func (r *TwoShotCast) broadcast(s Step, own int, first bool) Step {
	n := r.owners()
	switch root := own < 0; {
	case root && first && !r.task.InPlace: // keeps all itself
		s.Count = min(int64(max(1, n))*s.Count, s.End-s.Offset)
		s.Stride, s.End, s.Blocks = 0, 0, 0
		s.Input, s.Output = true, true
	case root && !first && n > 0:
		s.Input, s.Send = true, First(n)
	case !root && first:
		s.narrow(own)
		s.Recv, s.Output, s.Send = Port(0), true, First(n-1)
	case !root && n > 1: // the others' shares
		s.Recv, s.Output, s.Turn = Ports{1, n}, true, own
	default:
		return Step{}
	}
	return s
}

func (r *TwoShotCast) reduce(s Step, own int, first bool) Step {
	n := r.owners()
	switch root := own < 0; {
	case n == 0 && first && !r.task.InPlace: // alone
		s.narrow(0)
		s.Input, s.Output = true, true
	case root && first && n > 0:
		s.Input, s.Send = true, First(n)
	case root && n > 0:
		s.Recv, s.Output = First(n), true
	case !root && first && n > 1:
		s.Input, s.Send, s.Turn = true, First(n-1), own+1
	case !root && !first:
		s.narrow(own)
		s.Recv, s.Input, s.Send = First(n), true, Port(n-1)
	default:
		return Step{}
	}
	return s
}
