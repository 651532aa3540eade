package tuning

import (
	"math/bits"

	"tutti/model/profile"
	"tutti/model/schedule"
	"tutti/model/units"
)

// chain is what trees and simple rings are: chunks go up to a root, where the
// sum begins its way down.
type chain struct {
	schedule.Shape
	up, down float64 // the shares of the block's threads
	// within and between are the hops up inside nodes and between them; of those
	// down, so many more are between them.
	within, between, more int
	// busiest is how many buffers the busiest worker reads and writes.
	busiest float64
	// around tells that the way down goes on in the direction of the way up.
	around bool
	ways
}

// predictTree predicts double binary trees: a chain in each node, a tree between
// nodes.
func (d *Predictor) predictTree(t schedule.Task) Prediction {
	c := chain{Shape: schedule.TreeShape(t), within: d.perNode - 1, ways: d.tree}
	c.up, c.down = schedule.TreeShares(t.Protocol)
	if d.nodes > 1 {
		c.between = bits.Len(uint(d.nodes - 1))
	}
	// The busiest worker passes on what it keeps: to the next of its node and, as
	// the head of an inner node, to one or two nodes more.
	c.busiest = 2 + float64(min(1, d.perNode-1)+min(2, max(0, d.nodes-2)))
	if d.ranks == 2 {
		c.busiest = 2
	}
	return d.predictChain(t, c)
}

// predictSimpleRing predicts rings that pass whole buffers: a chain over all
// ranks, whose links carry both directions the same way.
func (d *Predictor) predictSimpleRing(t schedule.Task) Prediction {
	c := chain{Shape: schedule.PairsShape(t), up: .5, down: .5, between: d.nodes - 1, busiest: 3, around: true, ways: d.ring}
	c.within = d.ranks - 1 - c.between
	if d.nodes > 1 && d.perNode > 1 {
		c.more = 1 // it begins behind the root, inside a node
	}
	c.bothIntra, c.bothInter = c.intra, c.inter
	if d.ranks > 2 {
		c.bothIntra, c.bothInter = c.intra.times(2), c.inter.times(2)
	} else {
		c.busiest = 2
	}
	return d.predictChain(t, c)
}

// predictChain follows the first chunk up to the root and down again, and the
// others behind it at the pace of the slowest worker.
func (d *Predictor) predictChain(t schedule.Task, c chain) Prediction {
	s := c.Shape
	k := d.kernel(t, s.Channels)
	first := s.Chunk
	if s.Loops == 1 {
		first = s.Last
	}
	up, down := c.up, c.down
	step := func(share, buffers float64, w way) (whole, data float64) {
		copying, wire, h := k.moving(first, share, buffers), k.wire(first, w), k.handover(w)
		switch {
		case w.hop == profile.HopNET:
			return k.overhead + copying + wire + h, copying + wire
		case k.streams:
			return k.overhead + h, 0
		default:
			return k.overhead + max(copying, wire) + h, max(copying, wire)
		}
	}
	var whole, data float64
	add := func(n int, share, buffers float64, w way) {
		if n > 0 {
			one, item := step(share, buffers, w)
			whole += float64(float64(n) * one)
			data += float64(float64(n) * item)
		}
	}
	// A leaf sends what it has, the others reduce it with theirs; the root keeps
	// and sends the sum with all threads; the others keep it and pass it on, and
	// leaves keep it.
	within, between := c.within, c.between
	if within > 0 {
		add(1, up, k.sends(), c.intra)
		within--
	} else {
		add(1, up, k.sends(), c.inter)
		between--
	}
	add(within, up, k.reduces(), c.intra)
	add(between, up, k.reduces(), c.inter)
	top := whole // when the root has the first chunk
	within, between = c.within-c.more, c.between+c.more
	if between > 0 {
		add(1, 1, k.keepsAndSends(), c.inter)
		between--
	} else {
		add(1, 1, k.keepsAndSends(), c.intra)
		within--
	}
	add(between, down, k.passes(), c.inter)
	add(within, down, k.passes(), c.intra)
	// How far chunks follow each other when all workers are at it: the NIC sends
	// beside them, what copies does not.
	pace := func(b units.Bytes, intra, inter way) float64 {
		return max(k.overhead+k.turn+max(k.moving(b, up, c.busiest+k.input+k.slots), k.moving(b, down, c.busiest+k.slots), k.wire(b, intra)), k.wire(b, inter))
	}
	both := func(b units.Bytes) float64 {
		if k.streams || c.around {
			return pace(b, c.bothIntra, c.bothInter)
		}
		// While the worker of one direction turns to the next chunk, the other has the
		// links, or both turn at a time. Within one node that depends on how far behind
		// the root's sums are; half of both is near.
		apart := max(pace(b, c.intra, c.bothInter), k.wire(b, c.bothIntra))
		if d.nodes > 1 {
			return apart
		}
		return (apart + pace(b, c.bothIntra, c.bothInter)) / 2
	}
	keep := k.moving(first, down, k.keeps())
	if k.streams {
		keep = 0 // behind the data
	}
	whole += k.overhead + keep
	data += keep
	// What follows at the pace of a lone direction takes longer once chunks come
	// down beside those that go up: for all of the time but the way up or, where
	// the root's child has both at once and passes on whole chunks, but for one.
	if !k.streams && !c.around && d.nodes == 1 {
		top = pace(s.Chunk, c.intra, c.inter)
	}
	behind := func(alone, together float64) float64 {
		return alone + max(0, alone-top)*(together/alone-1)
	}
	alone, together, first0 := 0.0, 0.0, 0.0
	if k.streams { // the last reader comes to the end with the slowest writer
		alone, together = pace(first, c.intra, c.inter)-k.overhead-k.turn, both(first)-k.overhead-k.turn
		first0 = behind(alone, together)
		data += first0
		whole += first0
	}
	p := Prediction{limit: d.limitOf(&k, ways{intra: c.bothIntra, inter: c.bothInter}, first)}
	p.terms = [4]float64{k.base, whole - data, data, 0}
	if s.Loops > 1 {
		alone += float64(float64(s.Loops-2)*pace(s.Chunk, c.intra, c.inter)) + pace(s.Last, c.intra, c.inter)
		together += float64(float64(s.Loops-2)*both(s.Chunk)) + both(s.Last)
		p.terms[3] = behind(alone, together) - first0
	}
	return p
}
