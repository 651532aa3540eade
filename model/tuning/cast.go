package tuning

import (
	"maps"
	"math/bits"
	"slices"

	"tutti/model"
	"tutti/model/profile"
	"tutti/model/schedule"
	"tutti/topo"
	"tutti/topo/search"
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
	first := d.ring.first
	if d.nodes > 1 {
		first = d.ring.intra
	}
	legs := func(intra way) []leg {
		return []leg{{begins, 1, begin, intra}, {within - begins, 1, middle, intra}, {across, 1, middle, d.ring.inter}}
	}
	return k.pipeline(s, legs(first), legs(d.ring.intra), leg{share: 1, buffers: end})
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
	begin, middle, end, first := 2+k.input, 2+children+k.slots, k.keeps(), d.cast.broadcast
	switch {
	case t.Collective == model.Reduce:
		middle, end, first = 2+children+k.input+k.slots, k.reduces(), d.cast.reduce
	case !t.InPlace:
		begin++
	}
	begins := min(1, within)
	// Most workers of a node have one to pass on to.
	legs := func(w ways, inner float64) []leg {
		return []leg{{begins, 1, begin, w.intra}, {within - begins, 1, inner, w.intra}, {between, 1, middle, w.inter}}
	}
	return k.pipeline(s, legs(first, middle+1-children), legs(d.cast.all, middle), leg{share: 1, buffers: end})
}

// castWays are those of Broadcast and Reduce on trees.
type castWays struct {
	// broadcast and reduce are those of the first chunks: the hops that are as far
	// from the root, or from the leaves, have data at a time.
	broadcast, reduce ways
	// all are those where all hops have.
	all ways
}

// castWays goes through the hops of trees that are hung up by the first rank, at the
// ranks of the first nodes.
func (d *Predictor) castWays(c *topo.Cluster, t *search.Trees) castWays {
	const within, between = 0, 1
	var hops [2][][]int
	fromRoot, fromLeaves := [2]map[int][][]int{{}, {}}, [2]map[int][][]int{{}, {}}
	for ch := range t.Channels() {
		turned := map[int]int{} // what is next towards the root, from the ranks up to the tree's own
		for below, rank := 0, t.At(ch, 0).Up; rank >= 0; below, rank = rank, t.At(ch, rank).Up {
			turned[rank] = below
		}
		next := func(rank int) int {
			if below, ok := turned[rank]; ok {
				return below
			}
			return t.At(ch, rank).Up
		}
		depth, height := make([]int, min(d.ranks, 4*d.perNode)), map[int]int{}
		for rank := range depth {
			for at := rank; at != 0; at = next(at) {
				depth[rank]++
				height[next(at)] = max(height[next(at)], height[at]+1)
			}
		}
		for rank := 1; rank < len(depth); rank++ {
			from, i := next(rank), within
			out, in := t.NETs(ch, from, rank)
			if out >= 0 {
				i = between
			}
			route := c.Route(from, rank, out, in)
			hops[i] = append(hops[i], route)
			fromRoot[i][depth[rank]] = append(fromRoot[i][depth[rank]], route)
			fromLeaves[i][height[rank]] = append(fromLeaves[i][height[rank]], route)
		}
	}
	at := func(routes [][]int, hop profile.Hop) way {
		l := newLoad(c, d.profile)
		for _, route := range routes {
			l.add(route)
		}
		return l.way(routes, hop, t.Channels())
	}
	mean := func(places map[int][][]int, all way) way {
		all.perByte = 0
		for _, place := range slices.Sorted(maps.Keys(places)) {
			all.perByte += at(places[place], all.hop).perByte / float64(len(places))
		}
		return all
	}
	all := ways{intra: at(hops[within], profile.HopNVLink), inter: at(hops[between], profile.HopNET)}
	return castWays{
		broadcast: ways{intra: mean(fromRoot[within], all.intra), inter: mean(fromRoot[between], all.inter)},
		reduce:    ways{intra: mean(fromLeaves[within], all.intra), inter: mean(fromLeaves[between], all.inter)},
		all:       all,
	}
}
