package tuning

import "tutti/model/schedule"

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
	// root is how many ranks are next to the root.
	root float64
	// around tells that the way down goes on in the direction of the way up.
	around bool
	*ways
}

// predictTree predicts double binary trees: a chain in each node, a tree between
// nodes. Half of the channels have the one tree, and half the other.
func (d *Predictor) predictTree(t schedule.Task) (slowest Prediction) {
	s := schedule.TreeShape(t)
	k := d.kernel(t, &s)
	up, down := schedule.TreeShares(t.Protocol)
	for i := range d.depth {
		if i > 0 && (d.nodes == 1 || 2*s.Channels <= len(d.tree.inter.shared[byAll])) {
			break
		}
		r := &d.depth[i]
		c := chain{Shape: s, up: up, down: down, busiest: 1 + float64(r.inner), root: float64(r.root), ways: &d.tree}
		c.within, c.between = r.longest(
			k.hopTime(&s, &leg{share: up, buffers: k.reduces(), way: &d.tree.intra}), k.hopTime(&s, &leg{share: up, buffers: c.busiest + k.input + k.slots, way: &d.tree.inter}))
		if p := k.chain(&c); p.sum() > slowest.sum() {
			slowest = p
		}
	}
	return slowest
}

// predictSimpleRing predicts rings that pass whole buffers: a chain over all
// ranks, whose links carry both directions the same way.
func (d *Predictor) predictSimpleRing(t schedule.Task) Prediction {
	c := chain{Shape: schedule.PairsShape(t), up: .5, down: .5, between: d.nodes - 1, busiest: 3, root: 1, around: true, ways: &d.simple}
	c.within = d.ranks - 1 - c.between
	if d.nodes > 1 && d.perNode > 1 {
		c.more = 1 // it begins behind the root, inside a node
	}
	if d.ranks == 2 {
		c.busiest = 2
	}
	k := d.kernel(t, &c.Shape)
	return k.chain(&c)
}

// chain follows chunks up to the root and down again.
func (k *kernel) chain(c *chain) Prediction {
	intra, inter := &c.intra, &c.inter
	up, down, head := c.up, c.down, c.busiest+k.slots
	// A leaf sends what it has, the others reduce it with theirs; the root keeps
	// and sends the sum with all threads; the others keep it and pass it on, and
	// leaves keep it.
	begin, root := leg{1, up, k.sends(), intra, false}, leg{1, 1, 2 + 2*c.root + k.input + k.slots, intra, false}
	upWithin, upBetween, downWithin, downBetween := c.within, c.between, c.within-c.more, c.between+c.more
	if upWithin > 0 {
		upWithin--
	} else {
		begin.way = inter
		upBetween--
	}
	if downBetween > 0 {
		root.way = inter
		downBetween--
	} else {
		downWithin--
	}
	leaf := min(1, upBetween) // the head of a node that none is below
	legs := []leg{
		begin, {upWithin, up, k.reduces(), intra, false}, {leaf, up, k.reduces(), inter, false}, {upBetween - leaf, up, head + k.input, inter, false},
		root, {downBetween, down, head, inter, false}, {downWithin, down, k.passes(), intra, false},
	}
	// Chunks come down once the root has the first. While the worker of one direction
	// turns to the next, the other has the links, or both turn at a time. Within one
	// node that depends on how far behind the root's sums are; half of both is near, and
	// the root's child has both at once, but for one chunk.
	o := opposed{}
	for i := range 4 {
		o.from += float64(float64(legs[i].count) * k.hopTime(&c.Shape, &legs[i]))
	}
	switch {
	case k.streams || c.around:
		o.lockstep = 1
	case k.nodes == 1:
		o.from, o.lockstep = k.overhead+k.turn+max(k.moving(c.Chunk, up, c.busiest), k.crossing(c.Chunk, intra, byMost)), .5
	}
	return k.opposedPipe(&c.Shape, legs, leg{share: down, buffers: k.keeps(), last: true}, o)
}
