package cuda

import (
	"unsafe"

	"tutti/backend/cuda/driver"
)

// What kernels/comm.cuh fixes.
const (
	maxRanks  = 8
	maxBlocks = 512
	lineBytes = 512 // a line of LL or LL128: what a warp stores at once
	packBytes = 16
	slotBytes = 32 << 10 // a slot of a chain, of which a block has slotsEach: kernels/chain.cuh
	slotsEach = 16
)

// args are the parameters of every kernel, laid out as Args in kernels/comm.cuh.
type args struct {
	region        [maxRanks]driver.Pointer
	input, output [maxRanks]driver.Pointer
	fault         driver.Pointer
	timeout       uint64
	bytes         uint64
	inbox         uint64
	capacity      uint32
	units         uint32
	chunk, extra  uint32
	stripe        uint32
	rounds        uint32
}

// controlBytes is the size of Control in kernels/comm.cuh: stop, epochs, flags.
const controlBytes = 128 + 4*maxBlocks + 4*2*maxBlocks*maxRanks

// layout says where each part of a rank's region begins. It is the same on all
// ranks.
type layout struct {
	ll, ll128, slots, scratch uint64
	bytes                     int64
	// llLines and ll128Lines are the lines, scratchPacks the packs, that a slot
	// holds.
	llLines, ll128Lines, scratchPacks uint32
}

const (
	lineBlocks = 128 // blocks that have an inbox of lines
	slotBlocks = 132 // blocks that have slots of a chain
	align      = 1 << 16
)

func newLayout(ranks int, scratch int64) layout {
	l := layout{
		llLines:      uint32(32 * maxRanks / ranks),
		ll128Lines:   uint32(64 * maxRanks / ranks),
		scratchPacks: uint32(scratch / int64(ranks) / packBytes),
	}
	// Of each block: two halves, two phases, a slot for each sender.
	inbox := func(lines uint32) uint64 { return lineBlocks * 2 * 2 * uint64(ranks) * uint64(lines) * lineBytes }
	l.ll = (controlBytes + align - 1) / align * align
	l.ll128 = l.ll + inbox(l.llLines)
	l.slots = l.ll128 + inbox(l.ll128Lines)
	l.scratch = l.slots + slotBlocks*slotsEach*slotBytes
	l.bytes = int64(l.scratch) + int64(ranks)*int64(l.scratchPacks)*packBytes
	return l
}

func (a *args) pointer() unsafe.Pointer { return unsafe.Pointer(a) }
