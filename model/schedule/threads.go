package schedule

import (
	"tutti/model"
	"tutti/model/units"
)

// Threads that move data in a block of NCCL 2.28.3 at the most
// (src/include/device.h: NCCL_SIMPLE_MAX_NTHREADS, NCCL_LL_MAX_NTHREADS,
// NCCL_LL128_MAX_NTHREADS; src/enqueue.cc for trees), and how many bytes of a
// call each must have in a ring (src/graph/tuning.cc: NCCL_LL_THREAD_THRESHOLD,
// NCCL_LL128_THREAD_THRESHOLD, NCCL_SIMPLE_THREAD_THRESHOLD).
const (
	mostThreads     = 512
	moreThreads     = 640 // over LL128, and in trees
	leastThreads    = 96
	llThreshold     = 8 // bytes, of each rank's share
	ll128Threshold  = 8
	simpleThreshold = 64
)

// Block is the threads of a block that move data.
type Block struct {
	protocol model.Protocol
	most     int // when there is enough of it
	working  int // in this call: rings of little data have fewer
}

// Block returns the threads that the call starts in each block.
func (t Task) Block() Block {
	b := Block{t.Protocol, mostThreads, 0}
	if t.Protocol == model.LL128 || (t.Algorithm == model.Tree && t.Protocol == model.LL) {
		b.most = moreThreads
	}
	b.working = b.most
	if t.Algorithm == model.Ring || t.Algorithm == model.RailRing {
		threshold := [...]int{model.LL: llThreshold * t.Ranks, model.LL128: ll128Threshold, model.Simple: simpleThreshold}[t.Protocol]
		_, channels := shares(t)
		for b.working%128 == 0 && int(t.Bytes()) < channels*b.working*threshold {
			b.working /= 2
		}
	}
	b.working = max(leastThreads, b.working)
	return b
}

// Working returns the share of the threads that the call starts.
func (b Block) Working() float64 { return float64(b.working) / float64(b.most) }

// AtOnce returns how many bytes a worker with a share of the threads moves at
// once, where it takes as long for a part of them: over LL 8 for each thread
// (src/device/prims_ll.h). Over LL128 a thread has eight loads under way, and
// over Simple more, so that what counts is the bytes.
func (b Block) AtOnce(share float64) units.Bytes {
	if b.protocol != model.LL {
		return 1
	}
	return units.Bytes(8 * share * float64(b.working))
}

// Footprint returns how much memory of each GPU a call touches: the slots of the
// connections that end there, for rings and trees, and with them the user's
// buffers.
func (t Task) Footprint() (slots, all units.Bytes) {
	size := t.Datatype.Size()
	in, out := units.Bytes(t.Input(0).Len())*size, units.Bytes(t.Output(0).Len())*size
	all = in + out
	if t.InPlace {
		all = max(in, out)
	}
	var s Shape
	inbound := 1
	switch t.Algorithm {
	case model.Ring, model.RailRing:
		s = RingShape(t)
	case model.Tree:
		s = TreeShape(t)
		if t.Ranks > 2 { // a child and a parent
			inbound = 2
		}
	default:
		return 0, all
	}
	slots = t.Protocol.Wire(s.Slice) * units.Bytes(s.Slots*s.Channels*inbound)
	return slots, slots + all
}
