package cuda

import (
	"fmt"

	"tutti/model"
)

// Algorithm is one of the ways of the hot kernels: the all-pairs schedules, and a
// chain, specialised for a range of sizes. Those up to Hybrid do AllReduce; some of
// them, and those behind, the other collectives.
type Algorithm int

// The algorithms, from the lowest latency to the highest bandwidth.
const (
	OneShotLL    Algorithm = iota // every rank sends all to all, in LL lines
	OneShotLL128                  // the same in LL128 lines
	TwoShotLL                     // scatter to owners, reduce, send to all, in LL lines
	TwoShotLL128                  // the same in LL128 lines
	TwoShotPush                   // the same in whole packs, flags apart
	HybridPush                    // copy engines scatter, kernels reduce and store to all
	Hybrid                        // copy engines scatter and gather, kernels reduce
	OneShotPush                   // every rank sends each its share, in whole packs, flags apart
	OneShotCopy                   // copy engines do; kernels reduce
	OneShotPull                   // ranks load what they reduce from the peers' inputs
	RingPush                      // each rank passes on what it is sent, or what that and its own come to, round by round
)

var algorithmNames = []string{
	"oneshot_ll", "oneshot_ll128", "twoshot_ll", "twoshot_ll128", "twoshot_push", "hybrid_push", "hybrid",
	"oneshot_push", "oneshot_copy", "oneshot_pull", "ring_push",
}

// String returns the name, which for AllReduce is that of the kernel.
func (a Algorithm) String() string { return algorithmNames[a] }

// Launch is how an algorithm is run.
type Launch struct {
	Algorithm Algorithm
	// Blocks and Threads are those of each rank's kernel.
	Blocks, Threads int
	// Rounds is how often a block that pushes alternates between its phases, and into
	// how many pieces a chunk is cut that copy engines move and kernels reduce.
	Rounds int
}

func (l Launch) String() string {
	return fmt.Sprintf("%v %dx%d/%d", l.Algorithm, l.Blocks, l.Threads, l.Rounds)
}

// kernels names those that a call of so many bytes is queued with: of what is left
// after the last whole pack, one shot is.
func (l Launch) kernels(bytes uint64) []string {
	names := []string{l.Algorithm.String()}
	if l.Algorithm == Hybrid || l.Algorithm == OneShotCopy {
		names[0] = combineKernel
	}
	if l.Algorithm.Protocol() == model.Simple && bytes%packBytes != 0 {
		names = append(names, OneShotLL.String())
	}
	return names
}

// Protocol returns the protocol that the algorithm uses.
func (a Algorithm) Protocol() model.Protocol {
	switch a {
	case OneShotLL, TwoShotLL:
		return model.LL
	case OneShotLL128, TwoShotLL128:
		return model.LL128
	default:
		return model.Simple
	}
}

// shape is how a call is cut up for the blocks of a kernel, in units of the
// algorithm: lines or packs.
type shape struct {
	units         uint32
	chunk, extra  uint32 // of a rank; the first extra ranks have one unit more
	stripe        uint32 // of a block
	blocks        int
	inbox         uint64
	capacity      uint32
	tail          uint64 // bytes behind the last whole unit, left to another kernel
	bytesPerUnit  uint64
	sendsToOwners bool
}

// Shots returns the algorithm's schedule: one shot or two, or a ring.
func (a Algorithm) Shots() model.Algorithm {
	switch a {
	case OneShotLL, OneShotLL128, OneShotPush, OneShotCopy, OneShotPull:
		return model.OneShot
	case RingPush:
		return model.Ring
	default:
		return model.TwoShot
	}
}

// hybrid tells whether copy engines take part.
func (a Algorithm) hybrid() bool { return a == HybridPush || a == Hybrid }

// wordsPerLine is how many words of 8 bytes a line carries.
var wordsPerLine = map[model.Protocol]uint64{model.LL: 32, model.LL128: 60}

// fit cuts bytes up for a launch. The error says why the launch does not suit.
func (l layout) fit(launch Launch, bytes uint64, ranks int) (shape, error) {
	a := launch.Algorithm
	if a > Hybrid {
		return shape{}, fmt.Errorf("%v does no %v", a, model.AllReduce)
	}
	s := shape{bytesPerUnit: packBytes, inbox: l.scratch, capacity: l.scratchPacks, sendsToOwners: true}
	limit := maxBlocks
	switch a.Protocol() {
	case model.LL:
		s.inbox, s.capacity, limit = l.ll, l.llLines, lineBlocks
	case model.LL128:
		s.inbox, s.capacity, limit = l.ll128, l.ll128Lines, lineBlocks
	case model.Simple:
		s.tail = bytes % packBytes
	}
	if words := wordsPerLine[a.Protocol()]; words > 0 {
		s.bytesPerUnit = words * 8
	}
	units := (bytes - s.tail + s.bytesPerUnit - 1) / s.bytesPerUnit
	if units >= 1<<32 {
		return s, fmt.Errorf("%v: %d bytes are too many for one call", a, bytes)
	}
	s.units = uint32(units)
	part := s.units
	if a.Shots() == model.OneShot {
		s.sendsToOwners = false
	} else {
		// Every rank must have something from every other, or calls run ahead.
		if s.units < uint32(ranks) {
			return s, fmt.Errorf("%v: %d bytes are too few for %d ranks: want at least %d", a, bytes, ranks, uint64(ranks)*s.bytesPerUnit)
		}
		s.chunk, s.extra = s.units/uint32(ranks), s.units%uint32(ranks)
		part = (s.units + uint32(ranks) - 1) / uint32(ranks)
	}
	if launch.Blocks < 1 || launch.Blocks > limit {
		return s, fmt.Errorf("%v: %d blocks: want 1 to %d", a, launch.Blocks, limit)
	}
	if launch.Threads < 32 || launch.Threads > a.maxThreads() || launch.Threads%32 != 0 {
		return s, fmt.Errorf("%v: %d threads: want a multiple of 32 up to %d", a, launch.Threads, a.maxThreads())
	}
	s.stripe = (part + uint32(launch.Blocks) - 1) / uint32(launch.Blocks)
	s.blocks = int((part + s.stripe - 1) / s.stripe)
	held := s.stripe // units in a slot
	if a.Protocol() == model.Simple {
		held = part
	}
	if held > s.capacity {
		return s, fmt.Errorf("%v: %d bytes do not fit the inboxes of %d blocks", a, bytes, launch.Blocks)
	}
	return s, nil
}

// maxThreads is the launch bound in kernels/allreduce.cu.
func (a Algorithm) maxThreads() int {
	if a == TwoShotPush || a == OneShotPush || a == OneShotPull || a == RingPush {
		return 1024
	}
	return 512
}
