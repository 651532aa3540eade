package schedule

import (
	"math"

	"tutti/model"
)

// How NCCL 2.28.3 divides data (src/include/device.h, src/enqueue.cc,
// src/device/prims_*.h): the buffer of a connection has eight steps; a chunk is
// what one primitive handles; a chunk of the Simple ring is four steps in slices
// of two, every other chunk is one step and one slice.
const (
	bufferSteps    = 8         // NCCL_STEPS
	simpleStep     = 512 << 10 // bytes: 4 MiB buffer
	llStep         = 32 << 10  // bytes of data in 64 KiB: 512 KiB buffer
	ll128Step      = 576000    // bytes of data in 614,400
	ringChunkSteps = 4         // ALLREDUCE_CHUNKSTEPS
	ringSliceSteps = 2         // ALLREDUCE_SLICESTEPS
	nvlsChunk      = 128 << 10 // NCCL_NVLS_CHUNKSIZE
	cellTraffic    = 16 << 10  // least traffic worth a share of its own
)

// step returns the bytes of data in one step of the protocol's buffer.
func step(p model.Protocol) int64 {
	return [...]int64{model.LL: llStep, model.LL128: ll128Step, model.Simple: simpleStep}[p]
}

// inGrains rounds the bytes of a chunk down to the protocol's grain and returns
// the elements.
func inGrains(t Task, chunk int64) int64 {
	grain := [...]int64{model.LL: 16, model.LL128: 1920, model.Simple: 512}[t.Protocol]
	return elements(t, chunk/grain*grain)
}

// part is the range of elements that one channel works on.
type part struct{ offset, count int64 }

// split divides Count over the channels: in cells that are worth 16 KiB of
// traffic, the same number for every channel but the last. Small calls use
// fewer channels than they may (enqueue.cc, scheduleCollTasksToPlan).
func split(t Task) []part {
	share, n := shares(t)
	parts := make([]part, n)
	for i := range parts {
		offset := int64(i) * share
		parts[i] = part{offset, min(share, t.Count-offset)}
	}
	return parts
}

// LastPart returns how many elements the last channel of a task works on: fewer than
// the others, if they do not share evenly.
func LastPart(t Task) int64 {
	share, n := shares(t)
	return t.Count - int64(n-1)*share
}

// shares returns how many elements every channel but the last works on, and how
// many channels have any.
func shares(t Task) (share int64, channels int) {
	traffic := t.blocks() // for each byte of Count
	if t.Collective == model.AllReduce {
		traffic = 2
	}
	if t.Protocol == model.LL {
		traffic *= 4
	}
	cell := elements(t, roundUp(cellTraffic/traffic, 16))
	cells := divUp(t.Count, cell)
	share = cell * max(1, divUp(cells, int64(t.Channels)))
	return share, int(divUp(t.Count, share))
}

// looped is a part that is worked on in loops of several chunks each.
type looped struct {
	part
	loops       int
	perLoop     int64 // chunks
	chunk, last int64 // elements of a chunk, and of one in the last loop
}

// loop divides a part into loops of n chunks. Those of the last loop share the
// rest, rounded up to a grain.
func (p part) loop(n, chunk, grain int64) looped {
	loops := divUp(p.count, n*chunk)
	rest := p.count - (loops-1)*n*chunk
	return looped{p, int(loops), n, chunk, min(chunk, roundUp(divUp(rest, n), grain))}
}

// chunkOf returns the elements of a chunk in the given loop.
func (p *looped) chunkOf(loop int) int64 {
	if loop == p.loops-1 {
		return p.last
	}
	return p.chunk
}

// elements returns how many elements fit into the given bytes, at least one.
func elements(t Task, bytes int64) int64 {
	return max(1, bytes/int64(t.Datatype.Size()))
}

func divUp(a, b int64) int64   { return (a + b - 1) / b }
func roundUp(a, b int64) int64 { return divUp(a, b) * b }

// ringSteps returns how many steps of the buffer a chunk and a slice of a ring
// take.
func ringSteps(t Task) (chunk, slice int64) {
	whole := t.Collective == model.Broadcast || t.Collective == model.Reduce
	if t.Protocol != model.Simple || whole {
		return 1, 1
	}
	return ringChunkSteps, ringSliceSteps
}

// sliced is how chunks are passed on: in so many slices, each of as many
// elements at the least.
type sliced struct{ slices, least int64 }

// at returns the range of a chunk's i-th slice: an even share, but over Simple
// not so small that it is not worth its fence (prims_simple.h, genericOp).
func (s sliced) at(i, chunk int64) (offset, count int64) {
	size := chunk
	if s.slices > 1 {
		size = max(roundUp(divUp(chunk, s.slices), 16), s.least)
	}
	offset = min(chunk, i*size)
	return offset, min(size, chunk-offset)
}

// treeChunk returns the elements of a tree's chunk for one channel's part. LL128
// halves it until the pipeline over the tree's depth is full (enqueue.cc,
// calcCollChunking).
func treeChunk(t Task, p part) int64 {
	chunk := step(t.Protocol)
	if t.Protocol == model.LL128 {
		perNode := float64(t.Ranks) / float64(t.Nodes)
		hops := 1 + math.Floor(math.Log2(float64(t.Nodes))) + float64(.1*perNode)
		chunks := func() float64 { return float64(p.count * int64(t.Datatype.Size()) / chunk) }
		for chunks() < hops*64/perNode && chunk > 128<<10 {
			chunk /= 2
		}
		for chunks() < hops*16/perNode && chunk > 32<<10 {
			chunk /= 2
		}
	}
	return inGrains(t, chunk)
}

// nvlsChunkOf returns the elements that each head handles at a time, for one
// channel's part: less when the part is small (enqueue.cc, calcCollChunking).
func nvlsChunkOf(t Task, p part, heads int) int64 {
	chunk := int64(nvlsChunk)
	bytes := p.count * int64(t.Datatype.Size())
	shrink := func(below, to int64) {
		if bytes < below*int64(heads)*chunk {
			chunk = min(chunk, to)
		}
	}
	if t.Nodes == 1 {
		shrink(64, 64<<10)
		shrink(8, 32<<10)
		shrink(2, 16<<10)
	} else {
		if t.Nodes >= 4 {
			chunk = 64 << 10
		}
		shrink(32, 256<<10)
		shrink(16, 128<<10)
		shrink(4, 64<<10)
		shrink(1, 32<<10)
	}
	return elements(t, chunk)
}
