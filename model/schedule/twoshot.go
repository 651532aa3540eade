package schedule

import "tutti/model"

// TwoShot is the AllReduce of all pairs in two hops: every rank reduces a share
// of the data, which the others send it, and sends them the sum. Over LL and
// LL128 both go through slots in the reader's memory. Over Simple nothing is
// copied on the way: a rank loads its share from the others' inputs and stores
// the sum into their outputs. As only its owner ever touches a share in the
// inputs, that is right in place too, and needs no barrier at the end. Sources:
// NCCL 2.28.3, the kernel RSxLD_AGxST of src/device/symmetric; MSCCL++, the
// all-pairs algorithms with packets; vLLM, csrc/custom_all_reduce.cuh, two stages.
type TwoShot struct {
	task  Task
	parts []looped // by channel, in loops of a chunk per rank
	pairs          // of both hops: the second one's connections follow the first's
}

// NewTwoShot returns the AllReduce of t. Its worker for (rank, channel) has the
// number rank*channels + channel.
func NewTwoShot(t Task) *TwoShot {
	r := &TwoShot{task: t}
	grain := elements(t, 16)
	for _, p := range split(t) {
		chunk := inGrains(t, step(t.Protocol))
		if t.Protocol == model.Simple {
			chunk = roundUp(divUp(p.count, int64(t.Ranks)), grain)
		}
		r.parts = append(r.parts, p.loop(int64(t.Ranks), chunk, grain))
	}
	r.pairs = pairs{t.Ranks, len(r.parts)}
	return r
}

// Task implements [Schedule].
func (r *TwoShot) Task() Task { return r.task }

// Workers implements [Schedule].
func (r *TwoShot) Workers() int { return r.task.Ranks * len(r.parts) }

// Connections implements [Schedule].
func (r *TwoShot) Connections() int { return 2 * r.connections() }

// The steps of a loop.
const (
	twoShotScatter = iota // sends each rank its share
	twoShotReduce         // reduces the own share and sends the sum
	twoShotGather         // keeps the other shares
	twoShotHops
)

// Worker implements [Schedule].
func (r *TwoShot) Worker(w int) Worker {
	rank, ch := w/len(r.parts), w%len(r.parts)
	worker := Worker{Rank: rank, Channel: ch, Role: RoleReduce, Share: 1, Steps: r.parts[ch].loops * twoShotHops}
	for shot := range 2 {
		for p := range r.task.Ranks - 1 {
			worker.In = append(worker.In, shot*r.connections()+r.from(rank, ch, p))
			worker.Out = append(worker.Out, shot*r.connections()+r.to(rank, ch, p))
		}
	}
	return worker
}

// Connection implements [Schedule].
func (r *TwoShot) Connection(c int) Connection {
	shot := c / r.connections()
	from, to, ch := r.ends(c % r.connections())
	connection := Connection{
		From: []int{from*len(r.parts) + ch}, To: []int{to*len(r.parts) + ch},
		Slots: bufferSteps, Room: r.parts[ch].chunk, OutNET: -1, InNET: -1,
	}
	if r.task.Protocol == model.Simple {
		connection.Storage = [...]Storage{InInput, InOutput}[shot]
	}
	return connection
}

// Step implements [Schedule].
func (r *TwoShot) Step(w, i int) Step {
	rank, ch := w/len(r.parts), w%len(r.parts)
	p, loop, others := &r.parts[ch], i/twoShotHops, r.task.Ranks-1
	s := Step{
		Offset: p.offset + int64(loop)*p.perLoop*p.chunk, Count: p.chunkOf(loop),
		Stride: p.chunkOf(loop), End: p.offset + p.count, Turn: rank + 1, Blocks: r.task.Ranks,
	}
	first, second := First(others), Ports{others, 2 * others}
	switch i % twoShotHops {
	case twoShotScatter:
		s.Input, s.Send = true, first
	case twoShotReduce:
		s.narrow(rank)
		s.Recv, s.Input, s.Output, s.Send = first, true, true, second
	case twoShotGather:
		s.Recv, s.Output, s.Turn = second, true, rank+2 // the ports begin at ranks-1
	}
	return s
}
