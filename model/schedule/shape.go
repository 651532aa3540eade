package schedule

import (
	"tutti/model"
	"tutti/model/units"
)

// Shape is how the data of a task is divided on its first channel, which has as
// much to do as any other.
type Shape struct {
	// Channels is how many channels have something to do.
	Channels int
	// Busy is how many times as much as the first channel all have to do: the last may
	// have less.
	Busy float64
	// Loops is how many times a worker goes through the steps of the algorithm.
	Loops int
	// Chunk is the data of one step, and Last that of one in the last loop.
	Chunk, Last units.Bytes
	// Slices is how many items a chunk is passed in, of Slice each; the last may
	// be smaller.
	Slices      int
	Slice, Tail units.Bytes
	// Slots is how many items a connection holds.
	Slots int
	// Filled is how many of the chunks in the last loop are not empty.
	Filled int
}

// RingShape returns the shape of a task on rings.
func RingShape(t Task) Shape {
	part, channels := firstPart(t)
	chunk, slice := ringSteps(t)
	perLoop, grain := int64(1), int64(1)
	if t.Collective == model.AllReduce {
		perLoop, grain = int64(t.Ranks), elements(t, 16)
	}
	p := part.loop(perLoop, inGrains(t, chunk*step(t.Protocol)), grain)
	s := shape(t, p, channels)
	if t.Collective == model.AllReduce {
		rest := p.count - int64(p.loops-1)*perLoop*p.chunk
		s.Filled = int(divUp(rest, max(1, p.last)))
	}
	s.Slices, s.Slots = int(chunk/slice), bufferSteps/int(slice)
	slices := sliced{chunk / slice, elements(t, simpleStep*slice/32)}
	_, first := slices.at(0, p.chunkOf(0))
	_, last := slices.at(slices.slices-1, p.chunkOf(0))
	s.Slice, s.Tail = bytes(t, first), 0
	if s.Slices > 1 {
		s.Tail = bytes(t, last)
	}
	return s
}

// TreeShape returns the shape of a task on trees: each loop is one chunk.
func TreeShape(t Task) Shape {
	part, channels := firstPart(t)
	chunk := treeChunk(t, part)
	return shape(t, part.loop(1, chunk, 1), channels)
}

// PairsShape returns the shape of a task in one or two shots over slots: each
// loop is a chunk, or one for each rank.
func PairsShape(t Task) Shape {
	part, channels := firstPart(t)
	perLoop, grain := int64(1), int64(1)
	if t.Algorithm == model.TwoShot {
		perLoop, grain = int64(t.Ranks), elements(t, 16)
		if t.Collective.Rooted() { // the root has no share
			perLoop--
		}
	}
	chunk := inGrains(t, step(t.Protocol))
	switch { // peers reach each other's buffers
	case t.Protocol != model.Simple:
	case t.Algorithm == model.TwoShot && t.Collective.Rooted(): // but here
	case t.Algorithm == model.TwoShot:
		chunk = roundUp(divUp(part.count, perLoop), grain)
	case t.Algorithm == model.OneShot && !t.InPlace:
		chunk = part.count
	}
	return shape(t, part.loop(perLoop, chunk, grain), channels)
}

// RoundsShape returns the shape of one round of sends, or of one block of PAT.
func RoundsShape(t Task) Shape {
	part, channels := firstPart(t)
	return shape(t, part.loop(1, inGrains(t, step(t.Protocol)), 1), channels)
}

// HierarchicalShape returns the shape of a task in three stages: each loop is a
// chunk for each rank.
func HierarchicalShape(t Task) Shape {
	part, channels := firstPart(t)
	return shape(t, part.loop(int64(t.Ranks), inGrains(t, step(t.Protocol)), elements(t, 16)), channels)
}

// CollNetShape returns the shape of a task on heads whose shares the network adds
// up: each loop is a chunk for each head.
func CollNetShape(t Task, heads int) Shape {
	part, channels := firstPart(t)
	return shape(t, part.loop(int64(heads), inGrains(t, step(t.Protocol)), elements(t, 16)), channels)
}

// BlocksShape returns the shape of a task by NVLS that gathers or reduces blocks:
// each loop is a chunk of every rank's.
func BlocksShape(t Task) Shape {
	part, channels := firstPart(t)
	return shape(t, part.loop(1, nvlsChunkOf(t, part, t.Ranks), 1), channels)
}

// NVLSShape returns the shape of a task on the given number of heads: each loop
// is a chunk for each head.
func NVLSShape(t Task, heads int) Shape {
	part, channels := firstPart(t)
	return shape(t, part.loop(int64(heads), nvlsChunkOf(t, part, heads), elements(t, 16)), channels)
}

// firstPart returns what the first channel works on, and how many channels have
// something to do.
func firstPart(t Task) (first part, channels int) {
	share, channels := shares(t)
	return part{0, min(share, t.Count)}, channels
}

func shape(t Task, p looped, channels int) Shape {
	s := Shape{Channels: channels, Busy: float64(t.Count) / float64(max(1, p.count)), Loops: p.loops, Chunk: bytes(t, p.chunk), Last: bytes(t, p.last), Slices: 1, Slots: bufferSteps, Filled: t.Ranks}
	s.Slice, s.Tail = bytes(t, p.chunkOf(0)), 0
	return s
}

func bytes(t Task, elements int64) units.Bytes { return units.Bytes(elements) * t.Datatype.Size() }
