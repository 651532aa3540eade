package cuda

import (
	"unsafe"

	"tutti/backend/cuda/driver"
	"tutti/model"
)

// share is what a rank sends another, passes on to it, or keeps: bytes from a place
// of the one to a place of the other.
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

// dealTwice does the same for a Broadcast in two shots: every rank but the root owns
// a share, which the root sends it, and which it passes on to the other owners.
func (x *collective) dealTwice() {
	root, all := x.task.Root, uint64(x.task.Count)*uint64(x.task.Datatype.Size())
	each := uint64(x.shape.chunk+min(1, x.shape.extra)) * packBytes
	for hop := 1; hop < x.task.Ranks; hop++ {
		owner := (root + hop) % x.task.Ranks
		begin := min(uint64(hop-1)*each, all)
		at, bytes := driver.Pointer(begin), min(each, all-begin)
		for rank := range x.task.Ranks {
			switch rank {
			case root:
				x.shares[root][owner] = share{x.input[root] + at, x.output[owner] + at, bytes}
			case owner:
			default:
				x.shares[owner][rank] = share{x.output[owner] + at, x.output[rank] + at, bytes}
			}
		}
	}
	x.shares[root][root] = share{from: x.input[root], to: x.output[root]} // where the root keeps what it sends
}

// dealRing does so for a Reduce on the chain of all ranks that ends at the root: each
// has all to add, and the kernel knows the next one.
func (x *collective) dealRing() {
	for rank := range x.task.Ranks {
		x.shares[rank][rank] = share{x.input[rank], x.output[rank], uint64(x.task.Count) * uint64(x.task.Datatype.Size())}
	}
}

// turn returns whom a rank waits for in each round, ranks for nobody, and whether
// others wait for it.
func (x *collective) turn(rank int) (source, passed uint32) {
	n, root, none := x.task.Ranks, x.task.Root, uint32(x.task.Ranks)
	switch {
	case x.launch.Algorithm == RingPush && rank == (root+1)%n, x.launch.Algorithm == TwoShotPush && rank == root:
		return none, 1
	case x.launch.Algorithm == RingPush:
		return uint32((rank + n - 1) % n), bit(rank != root)
	case x.launch.Algorithm == TwoShotPush:
		return uint32(root), 0
	default:
		return none, 0
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

// shareArgs returns the parameters of kernels/shares.cuh for a rank.
func (x *collective) shareArgs(rank int) *sharesArgs {
	s := &sharesArgs{args: *x.args(rank)}
	s.source, s.passed = x.turn(rank)
	for r, share := range x.shares[rank] {
		s.args.input[r], s.args.output[r], s.bytes[r] = share.from, share.to, share.bytes
	}
	own := &s.args.output[rank]
	switch inPlace := s.args.input[rank] == *own; {
	case inPlace && x.launch.Algorithm == TwoShotPush:
		*own = 0
	case inPlace && !x.task.Collective.Reduces():
		s.args.input[rank] = 0
	}
	return s
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
