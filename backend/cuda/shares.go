package cuda

import (
	"unsafe"

	"tutti/backend/cuda/driver"
	"tutti/model"
)

// share is what a rank sends another or, of kernels that push, passes on: bytes
// from a place of the one to a place of the other.
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

// dealTwice does the same for two shots: every rank but the root owns a share. Of
// Broadcast, the root sends each its own, which it passes on to the other owners;
// of Reduce, each owner is sent its share of all inputs, and its own says where the
// result goes.
func (x *collective) dealTwice() {
	t, input, output := x.task, x.input, x.output
	all, root := uint64(t.Count)*uint64(t.Datatype.Size()), t.Root
	each := uint64(x.shape.chunk+min(1, x.shape.extra)) * packBytes
	for owner := range t.Ranks {
		if owner == root {
			continue
		}
		index := uint64(owner)
		if owner > root {
			index--
		}
		begin := min(index*each, all)
		at, bytes := driver.Pointer(begin), min(each, all-begin)
		for rank := range t.Ranks {
			switch {
			case t.Collective == model.Reduce && rank == owner:
				x.shares[owner][owner] = share{input[owner] + at, output[root] + at, bytes}
			case t.Collective == model.Reduce:
				x.shares[rank][owner] = share{from: input[rank] + at, bytes: bytes}
			case rank == root:
				x.shares[root][owner] = share{input[root] + at, output[owner] + at, bytes}
			case rank != owner:
				x.shares[owner][rank] = share{output[owner] + at, output[rank] + at, bytes}
			}
		}
	}
	if t.Collective == model.Broadcast {
		x.shares[root][root] = share{from: input[root], to: output[root]} // where the root keeps what it sends
	}
}

// dealRing does so for a chain of all ranks: from the root on or, of Reduce, to it.
func (x *collective) dealRing() {
	t, n := x.task, x.task.Ranks
	all := uint64(t.Count) * uint64(t.Datatype.Size())
	for hop := range n {
		rank, next := (t.Root+hop)%n, (t.Root+hop+1)%n
		switch {
		case t.Collective == model.Reduce: // of which the kernel knows the next rank
			x.shares[rank][rank] = share{x.input[rank], x.output[rank], all}
		case hop == 0:
			x.shares[rank][next] = share{x.input[rank], x.output[next], all}
			x.shares[rank][rank] = share{from: x.input[rank], to: x.output[rank]}
		case hop < n-1:
			x.shares[rank][next] = share{x.output[rank], x.output[next], all}
		}
	}
}

// turn returns whom a rank waits for in each round, ranks for nobody, and whether
// others wait for it.
func (x *collective) turn(rank int) (source, passed uint32) {
	n, root := x.task.Ranks, x.task.Root
	place := (rank - root + n) % n // in the chain of Broadcast
	if x.task.Collective == model.Reduce {
		place = (place + n - 1) % n // which begins behind the root
	}
	switch ring := x.launch.Algorithm == RingPush; {
	case ring && place == 0, !ring && x.relayed() && rank == root:
		return uint32(n), 1
	case ring:
		return uint32((rank + n - 1) % n), bit(place < n-1)
	case x.relayed():
		return uint32(root), 0
	default:
		return uint32(n), 0
	}
}

// relayed tells whether owners pass on what the root of a Broadcast sends them.
func (x *collective) relayed() bool {
	return x.task.Collective == model.Broadcast && (x.launch.Algorithm == TwoShotPush || x.launch.Algorithm == RingPush)
}

// lineArgs returns the parameters of kernels/lines.cuh for a rank.
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
	case inPlace && x.relayed():
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
	if x.launch.Algorithm.Protocol() == model.Simple {
		return unsafe.Pointer(x.shareArgs(rank))
	}
	return x.lineArgs(rank).pointer()
}
