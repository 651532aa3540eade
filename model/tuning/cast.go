package tuning

import (
	"slices"

	"tutti/model"
	"tutti/model/profile"
	"tutti/model/schedule"
	"tutti/topo"
	"tutti/topo/search"
)

// predictRingCast predicts Broadcast and Reduce: chunks go round a ring from the
// root, or to it. The last channel may have less to do than the others.
func (d *Predictor) predictRingCast(t schedule.Task) Prediction {
	s := schedule.RingShape(t)
	k := d.kernel(t, &s)
	spared := d.ring.in // the hop that chunks do not take is between nodes
	if t.Collective == model.Reduce {
		spared = d.ring.out
	}
	far := func(spared bool) bool { return !spared }
	n := min(s.Channels, len(spared))
	p := k.ringCast(t, s, n == 1 && far(spared[0]) || slices.ContainsFunc(spared[:n-1], far))
	if n > 1 && far(spared[n-1]) {
		t.Count, t.Channels = schedule.LastPart(t), 1
		if last := k.ringCast(t, schedule.RingShape(t), true); last.sum() > p.sum() {
			p = last
		}
	}
	return p
}

// ringCast predicts a channel, far where it leaves all nodes once.
func (k *kernel) ringCast(t schedule.Task, s schedule.Shape, far bool) Prediction {
	across := k.nodes - 1
	if far && k.nodes > 1 && k.perNode > 1 {
		across++
	}
	within := k.ranks - 1 - across
	begin, middle, end := k.sends(), k.passes(), k.keeps()
	switch {
	case t.Collective == model.Reduce:
		middle, end = k.reduces(), k.reduces()
	case !t.InPlace:
		begin++
	}
	begins := min(1, within)
	within -= begins
	first := &k.ring.first
	return k.pipe(&s, []leg{
		{begins, 1, begin, first, false}, {within / 2, 1, middle, first, false},
		{across, 1, middle, &k.ring.inter, false}, {within - within/2, 1, middle, first, false},
	}, leg{share: 1, buffers: end, last: true})
}

// predictTreeCast predicts Broadcast and Reduce on double binary trees that are
// hung up by the root: the slowest of the channels, the last of which may have less
// to do than the others.
func (d *Predictor) predictTreeCast(t schedule.Task) (slowest Prediction) {
	s := schedule.TreeShape(t)
	k := d.kernel(t, &s)
	reach := d.cast().reach
	for ch := range min(s.Channels, len(reach)) {
		if ch == s.Channels-1 {
			t.Count, t.Channels = schedule.LastPart(t), 1
			s = schedule.TreeShape(t)
		} else if reach[ch].covered {
			continue
		}
		if p := k.treeCast(t, s, &reach[ch]); p.sum() > slowest.sum() {
			slowest = p
		}
	}
	return slowest
}

// treeCast predicts a channel.
func (k *kernel) treeCast(t schedule.Task, s schedule.Shape, r *reach) Prediction {
	// A worker has a buffer for each rank that is next to its own, and one of its own:
	// most have two, those that pass on to other nodes have more.
	w, begin, chain, head, end := &k.cast().broadcast, 1+float64(r.root)+k.input, k.passes(), 1+float64(r.inner)+k.slots, k.keeps()
	switch {
	case t.Collective == model.Reduce:
		w, begin, chain, head, end = &k.cast().reduce, k.sends(), k.reduces(), head+k.input, 2+float64(r.root)+k.input+k.slots
	case !t.InPlace:
		begin++
	}
	inside, outside := leg{share: 1, buffers: chain, way: &w.intra}, leg{share: 1, buffers: head, way: &w.inter}
	in, out := k.hopTime(&s, &inside), k.hopTime(&s, &outside)
	within, between := r.longest(in, out)
	start := leg{1, 1, begin, &w.intra, false}
	if within == 0 {
		start.way, outside.count = &w.inter, between-1
	} else {
		inside.count, outside.count = within-1, between
	}
	o := opposed{} // all chunks are on the root's links from the first on, but come to it from near by before those from afar
	if t.Collective == model.Reduce {
		o.while = float64(float64(within)*in) + float64(float64(between)*out)
	}
	return k.opposedPipe(&s, []leg{start, inside, outside}, leg{share: 1, buffers: end, last: true}, o)
}

// castWays are those of Broadcast and Reduce on trees.
type castWays struct {
	// broadcast and reduce are those of the first chunks: the hops that are as far
	// from the root, or from the leaves, have data at a time.
	broadcast, reduce ways
	// reach is that of the root, by channel.
	reach []reach
}

// castWays goes through the hops of trees that are hung up by the first rank, at the
// ranks of the first nodes and those that are next to them, for on the links of the root
// are most.
func (d *Predictor) castWays(c *topo.Cluster, t *search.Trees) *castWays {
	var w castWays
	intra, inter := newLoad(c, d.profile, profile.HopNVLink), newLoad(c, d.profile, profile.HopNET)
	down, up := [2]places{{}, {}}, [2]places{{}, {}} // by the hops from the root, and by those from the leaves
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
		var ranks []int
		for rank := range min(c.Ranks(), 4*d.perNode) {
			p := t.At(ch, rank)
			ranks = append(append(ranks, rank, p.Up), p.Down()...)
		}
		slices.Sort(ranks)
		ranks = slices.DeleteFunc(slices.Compact(ranks), func(rank int) bool { return rank <= 0 })
		depth, height := map[int]int{}, map[int]int{}
		for _, rank := range ranks {
			for at := rank; at != 0; at = next(at) {
				depth[rank]++
				height[next(at)] = max(height[next(at)], height[at]+1)
			}
		}
		for _, rank := range ranks {
			from, i, own, other := next(rank), 0, intra, inter
			out, in := t.NETs(ch, from, rank)
			if out >= 0 {
				i, own, other = 1, inter, intra
			}
			route := c.Route(from, rank, out, in)
			own.add(route)
			other.beside(route)
			down[i].at(depth[rank], own).add(route)
			up[i].at(height[rank], own).add(route)
		}
		for _, l := range []*load{intra, inter} {
			l.channel()
		}
		for i := range 2 {
			down[i].channel()
			up[i].channel()
		}
		r := newReach(t, ch, 0, d.perNode)
		r.covered = slices.ContainsFunc(w.reach, r.atMost)
		w.reach = append(w.reach, r)
	}
	w.broadcast = ways{intra: down[0].apart(intra.way), inter: down[1].apart(inter.way)}
	w.reduce = ways{intra: up[0].apart(intra.way), inter: up[1].apart(inter.way)}
	return &w
}
