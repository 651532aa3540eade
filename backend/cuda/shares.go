package cuda

import (
	"unsafe"

	"tutti/backend/cuda/driver"
	"tutti/model"
)

// share is what a rank sends another, or keeps: bytes from a place of the one to a place
// of the other.
type share struct {
	from, to driver.Pointer // 0 where there is nothing
	bytes    uint64
}

// sharesArgs is Shares in kernels/shares.cuh.
type sharesArgs struct {
	args   args
	bytes  [maxRanks]uint64
	source uint32
	passed uint32
}

// deal finds out what goes from whom to whom in one hop: an element goes from each
// rank that has it in its input to each that has it in its output.
func (x *collective) deal() {
	t, size := x.task, int64(x.task.Datatype.Size())
	for element := int64(0); element < t.Elements(); element += t.Count { // ranks have all of Count elements from here on, or none
		for sender := range t.Ranks {
			from, has := t.Input(sender).At(element)
			for receiver := range t.Ranks {
				to, wants := t.Output(receiver).At(element)
				if has > 0 && wants > 0 {
					x.shares[sender][receiver] = share{
						x.input[sender] + driver.Pointer(from*size), x.output[receiver] + driver.Pointer(to*size), uint64(t.Count * size),
					}
				}
			}
		}
	}
}

// dealRing does so for the chain of all ranks, which begins or ends at the root: of each
// rank, what it has and what it is to have.
func (x *collective) dealRing() {
	for rank := range x.task.Ranks {
		s := share{x.input[rank], x.output[rank], uint64(x.task.Count) * uint64(x.task.Datatype.Size())}
		switch reduces := x.task.Collective.Reduces(); {
		case !reduces && rank != x.task.Root:
			s.from = 0
		case reduces && rank != x.task.Root, !reduces && s.from == s.to:
			s.to = 0
		}
		x.shares[rank][rank] = s
	}
}

// lineArgs returns the parameters of kernels/lines.cuh and stream.cuh for a rank.
func (x *collective) lineArgs(rank int) *args {
	a := x.args(rank)
	if x.launch.Algorithm.Shots() == model.TwoShot {
		a.chunk, a.extra = x.shape.chunk, x.shape.extra
		copy(a.input[:], x.input)
		copy(a.output[:], x.output)
		for r := range x.task.Ranks {
			switch {
			case r == x.task.Root:
			case x.task.Collective == model.Broadcast:
				a.input[r] = 0
			default:
				a.output[r] = 0
			}
		}
		return a
	}
	for r := range x.task.Ranks {
		a.input[r], a.output[r] = x.shares[rank][r].from, x.shares[r][rank].to
	}
	if !x.task.Collective.Reduces() && a.input[rank] == a.output[rank] {
		a.input[rank] = 0 // it is there already
	}
	return a
}

// shareArgs returns the parameters of kernels/shares.cuh and kernels/chain.cuh for a rank.
func (x *collective) shareArgs(rank int) *sharesArgs {
	s := &sharesArgs{args: *x.args(rank)}
	for r, share := range x.shares[rank] {
		s.args.input[r], s.args.output[r], s.bytes[r] = share.from, share.to, share.bytes
	}
	switch {
	case x.launch.Algorithm == RingPush:
		s.source, s.passed = x.place(rank)
	case x.launch.Algorithm == OneShotPull:
		for r := range x.task.Ranks {
			s.args.input[r] = x.shares[r][rank].from
		}
	case !x.task.Collective.Reduces() && s.args.input[rank] == s.args.output[rank]:
		s.args.input[rank] = 0 // it is there already
	}
	return s
}

// place returns which rank comes before one on the chain, the number of ranks for none,
// and whether there is one behind it. The root of a Broadcast is the first, that of a
// Reduce the last.
func (x *collective) place(rank int) (source, passed uint32) {
	n, first := x.task.Ranks, x.task.Root
	if x.task.Collective.Reduces() {
		first = (first + 1) % n
	}
	source = uint32((rank + n - 1) % n)
	if rank == first {
		source = uint32(n)
	}
	return source, bit((rank+1)%n != first)
}

func (x *collective) args(rank int) *args {
	none := make([]driver.Pointer, x.task.Ranks)
	a := x.Comm.args(Call{Input: none, Output: none, Count: x.task.Count, Datatype: x.task.Datatype}, rank)
	a.inbox, a.capacity = x.shape.inbox, x.shape.capacity
	a.units, a.stripe, a.rounds = x.shape.units, x.shape.stripe, uint32(max(x.launch.Rounds, 1))
	return a
}

// parameters returns what the kernel of a rank is launched with.
func (x *collective) parameters(rank int) unsafe.Pointer {
	if x.launch.Algorithm.Protocol() == model.Simple && !x.streams() {
		return unsafe.Pointer(x.shareArgs(rank))
	}
	return x.lineArgs(rank).pointer()
}
