package tuning

import (
	"math/bits"

	"tutti/model"
	"tutti/model/profile"
	"tutti/model/schedule"
	"tutti/model/units"
)

// leg is a number of hops that are alike, on the way of a chunk through a
// pipeline of workers.
type leg struct {
	count          int
	share, buffers float64 // of the threads, and those read and written
	way            way
}

// passing returns what a leg's hop takes the first of many chunks, how much of
// that is data, and how far chunks follow each other on it.
func (k *kernel) passing(b units.Bytes, l leg, slots int) (latency, data, busy float64) {
	copying, wire, h := k.moving(b, l.share, l.buffers), k.wire(b, l.way), k.handover(l.way)
	worker := k.overhead + k.turn + max(copying, wire)
	switch {
	case l.way.hop == profile.HopNET: // the worker fills a slot, the NIC sends it
		latency = k.overhead + copying + wire + h
		worker = k.overhead + k.turn + copying
		trip := latency + k.overhead + copying + l.way.latency
		return latency, copying + wire, max(worker, wire, trip/float64(slots))
	case k.streams: // the reader follows the writer word by word
		return k.overhead + h, 0, worker
	default:
		return k.overhead + max(copying, wire) + h, max(copying, wire), worker
	}
}

// pipe predicts chunks that follow each other over the same legs to a last
// worker that keeps them.
func (k *kernel) pipe(s schedule.Shape, legs []leg, last leg) Prediction {
	first := s.Chunk
	if s.Loops == 1 {
		first = s.Last
	}
	pace := func(b units.Bytes) (slowest float64) {
		slowest = k.overhead + k.turn + k.moving(b, last.share, last.buffers)
		for _, l := range legs {
			if l.count > 0 {
				_, _, busy := k.passing(b, l, s.Slots)
				slowest = max(slowest, busy)
			}
		}
		return slowest
	}
	whole, data := k.overhead, k.moving(first, last.share, last.buffers)
	if k.streams { // the last reader comes to the end with the slowest writer
		data = pace(first) - k.overhead - k.turn
	}
	whole += data
	for _, l := range legs {
		latency, item, _ := k.passing(first, l, s.Slots)
		whole += float64(float64(l.count) * latency)
		data += float64(float64(l.count) * item)
	}
	p := Prediction{limit: "the slowest of them"}
	p.terms = [4]float64{k.base, whole - data, data, 0}
	if s.Loops > 1 {
		p.terms[3] = float64(float64(s.Loops-2)*pace(s.Chunk)) + pace(s.Last)
	}
	return p
}

// predictRingCast predicts Broadcast and Reduce: chunks go round a ring from the
// root, or to it.
func (d *Predictor) predictRingCast(t schedule.Task) Prediction {
	s := schedule.RingShape(t)
	k := d.kernel(t, s.Channels)
	across := d.nodes - 1
	if d.nodes > 1 && d.perNode > 1 && (s.Channels > 1 || (t.Collective == model.Reduce) == (t.Algorithm == model.Ring)) {
		across++ // but where the first ring enters the root's node, or leaves it, at the root
	}
	within := d.ranks - 1 - across
	begin, middle, end := 2.+k.input, k.passes(), k.keeps()
	switch {
	case t.Collective == model.Reduce:
		middle, end = k.reduces(), k.reduces()
	case !t.InPlace:
		begin++
	}
	begins := min(1, within)
	return k.pipe(s, []leg{{begins, 1, begin, d.ring.intra}, {within - begins, 1, middle, d.ring.intra}, {across, 1, middle, d.ring.inter}}, leg{share: 1, buffers: end})
}

// predictTreeCast predicts Broadcast and Reduce on double binary trees that are
// hung up by the root, which may stand anywhere in them.
func (d *Predictor) predictTreeCast(t schedule.Task) Prediction {
	s := schedule.TreeShape(t)
	k := d.kernel(t, s.Channels)
	within, between := d.perNode-1, 0
	if d.nodes > 1 {
		levels := bits.Len(uint(d.nodes - 1))
		between = max(1, 2*levels-2) // of the tree in which the root's node is a leaf: up, and down again
		if s.Channels > 1 {
			within *= 2 // to the head of its node, and in another one
		} else {
			between = levels
		}
	}
	// The busiest worker passes on to the next of its node and to two nodes.
	children := float64(min(1, d.perNode-1) + min(2, max(0, d.nodes-2)))
	begin, middle, end := 2+k.input, 2+children+k.slots, k.keeps()
	switch {
	case t.Collective == model.Reduce:
		middle, end = 2+children+k.input+k.slots, k.reduces()
	case !t.InPlace:
		begin++
	}
	intra := d.tree.intra
	if d.ranks == 2 { // the channels of a tree go both ways, and these one
		intra = d.tree.bothIntra
	}
	begins := min(1, within)
	return k.pipe(s, []leg{{begins, 1, begin, intra}, {within - begins, 1, middle, intra}, {between, 1, middle, d.tree.inter}}, leg{share: 1, buffers: end})
}
