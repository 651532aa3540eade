package schedule

import (
	"tutti/model"
	"tutti/model/units"
)

// Task is the call that a schedule carries out.
type Task struct {
	Collective model.Collective
	Algorithm  model.Algorithm
	Protocol   model.Protocol
	Datatype   model.Datatype
	Redop      model.Redop
	// Count is the count that the call names, in elements: of a rank's buffer,
	// but of its own block in AllGather and ReduceScatter, and of what it sends
	// to each rank in AllToAll.
	Count int64
	// Root is the rank that Broadcast starts from and that Reduce ends at.
	Root int
	// InPlace says that elements have the same place in memory in a rank's input
	// and output, as in calls whose buffers overlap the way that NCCL allows.
	InPlace bool
	// Channels is the number of channels that the data may be spread over.
	Channels int
	// Ranks and Nodes are the size of the communicator.
	Ranks, Nodes int
}

// blocks returns how many times Count elements the larger of a rank's two
// buffers holds.
func (t Task) blocks() int64 {
	switch t.Collective {
	case model.AllGather, model.ReduceScatter, model.AllToAll:
		return int64(t.Ranks)
	default:
		return 1
	}
}

// Bytes returns the size of the call as nccl-tests states it: that of the larger
// of a rank's two buffers.
func (t Task) Bytes() units.Bytes {
	return units.Bytes(t.Count*t.blocks()) * t.Datatype.Size()
}

// Sized returns the task with the count that makes a call of the given size, a
// little less if the ranks cannot share it evenly.
func (t Task) Sized(size units.Bytes) Task {
	t.Count = int64(size/t.Datatype.Size()) / t.blocks()
	return t
}

// Elements returns how many elements the collective is about. They are numbered
// once for all ranks, so that an element has the same number wherever it goes:
// in every input that is reduced into it and in every output that it ends in.
//
//	allreduce, broadcast, reduce   the elements of a buffer
//	allgather, reducescatter       block r is rank r's own
//	alltoall                       block r*ranks + p is what rank r sends to rank p
//	sendrecv, exchange             block r is what rank r sends
func (t Task) Elements() int64 {
	switch t.Collective {
	case model.AllReduce, model.Broadcast, model.Reduce:
		return t.Count
	case model.AllToAll:
		return t.Count * int64(t.Ranks) * int64(t.Ranks)
	default:
		return t.Count * int64(t.Ranks)
	}
}

// Buffer tells which elements a rank's buffer holds: Blocks blocks of Block
// elements each, that begin at First and lie Stride apart in their numbers.
type Buffer struct {
	First, Block, Stride int64
	Blocks               int64
}

// Len returns the number of elements in the buffer.
func (b Buffer) Len() int64 { return b.Block * b.Blocks }

// At returns where in the buffer an element is. Those that follow it in its
// block follow in the buffer too; rest tells how many there are, itself
// included. It is 0 for an element that the buffer does not hold.
func (b Buffer) At(element int64) (at, rest int64) {
	if b.Stride == 0 || element < b.First {
		return 0, 0
	}
	block, within := (element-b.First)/b.Stride, (element-b.First)%b.Stride
	if block >= b.Blocks || within >= b.Block {
		return 0, 0
	}
	return block*b.Block + within, b.Block - within
}

// Holds tells whether the buffer holds a range of elements, side by side.
func (b Buffer) Holds(offset, count int64) bool {
	_, rest := b.At(offset)
	return count == 0 || count <= rest
}

// one returns the buffer that holds a single run of elements.
func one(first, count int64) Buffer { return Buffer{first, count, max(1, count), 1} }

// CanOverlap tells whether a rank's input and output may overlap so that elements
// keep their place. What goes from rank to rank never returns to its own.
func (t Task) CanOverlap() bool {
	return t.Collective != model.AllToAll && t.Collective != model.SendRecv && t.Collective != model.Exchange
}

// Input tells which elements a rank has at the start.
func (t Task) Input(rank int) Buffer {
	r, n := int64(rank), int64(t.Ranks)
	switch t.Collective {
	case model.AllReduce, model.Reduce:
		return one(0, t.Count)
	case model.Broadcast:
		if rank != t.Root {
			return Buffer{}
		}
		return one(0, t.Count)
	case model.ReduceScatter:
		return one(0, n*t.Count)
	case model.AllToAll:
		return one(r*n*t.Count, n*t.Count)
	default:
		return one(r*t.Count, t.Count)
	}
}

// Output tells which elements a rank has at the end, each the reduction of those
// of the same number in all inputs.
func (t Task) Output(rank int) Buffer {
	r, n := int64(rank), int64(t.Ranks)
	switch t.Collective {
	case model.AllReduce, model.Broadcast:
		return one(0, t.Count)
	case model.Reduce:
		if rank != t.Root {
			return Buffer{}
		}
		return one(0, t.Count)
	case model.AllGather:
		return one(0, n*t.Count)
	case model.ReduceScatter:
		return one(r*t.Count, t.Count)
	case model.AllToAll:
		return Buffer{r * t.Count, t.Count, max(1, n*t.Count), n}
	default:
		return one(int64(t.Source(rank))*t.Count, t.Count)
	}
}

// Peer returns the rank that a rank sends to in SendRecv, the next one (as in
// nccl-tests' sendrecv), and in Exchange, where two ranks swap: the one half
// the communicator away, so that the pairs span the nodes. Of an odd number of
// ranks the last has itself.
func (t Task) Peer(rank int) int {
	if t.Collective == model.SendRecv {
		return (rank + 1) % t.Ranks
	}
	switch half := t.Ranks / 2; {
	case rank < half:
		return rank + half
	case rank < 2*half:
		return rank - half
	default:
		return rank
	}
}

// Source returns the rank whose [Task.Peer] the given one is.
func (t Task) Source(rank int) int {
	if t.Collective == model.SendRecv {
		return (rank + t.Ranks - 1) % t.Ranks
	}
	return t.Peer(rank)
}
