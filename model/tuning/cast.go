package tuning

import (
	"math/bits"

	"tutti/model"
	"tutti/model/schedule"
)

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
