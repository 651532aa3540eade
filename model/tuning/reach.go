package tuning

import "tutti/topo/search"

// reach is how far chunks go over a tree from one of its ranks, or to it.
type reach struct {
	// within has, by the hops between nodes that a way has, how many hops inside
	// nodes it has beside these at the most; -1 where there is no such way.
	within []int
	// root is how many ranks are next to the one, and inner how many to any other at
	// the most.
	root, inner int
	// covered tells that a channel before it has as far to go.
	covered bool
}

// newReach walks over the tree of a channel from a rank.
func newReach(t *search.Trees, channel, root, perNode int) (r reach) {
	type visit struct{ rank, from, within, between int }
	for list := []visit{{root, -1, 0, 0}}; len(list) > 0; {
		v := list[len(list)-1]
		list = list[:len(list)-1]
		p, beside := t.At(channel, v.rank), 0
		for _, next := range append(p.Down(), p.Up) {
			if next < 0 {
				continue
			}
			beside++
			switch {
			case next == v.from:
			case next/perNode == v.rank/perNode:
				list = append(list, visit{next, v.rank, v.within + 1, v.between})
			default:
				list = append(list, visit{next, v.rank, v.within, v.between + 1})
			}
		}
		if v.rank == root {
			r.root = beside
			continue
		}
		r.inner = max(r.inner, beside)
		for len(r.within) <= v.between {
			r.within = append(r.within, -1)
		}
		r.within[v.between] = max(r.within[v.between], v.within)
	}
	return r
}

// top returns the rank that a channel's tree hangs on.
func top(t *search.Trees, channel int) (rank int) {
	for up := t.At(channel, rank).Up; up >= 0; up = t.At(channel, rank).Up {
		rank = up
	}
	return rank
}

// atMost tells whether another rank's is as far, and as many are next to the ranks.
func (r *reach) atMost(other reach) bool {
	for i, within := range r.within {
		if i >= len(other.within) || within > other.within[i] {
			return false
		}
	}
	return r.root <= other.root && r.inner <= other.inner
}

// longest returns the hops of the longest way, where one inside a node and one
// between nodes take so long.
func (r *reach) longest(inside, outside float64) (within, between int) {
	most := -1.
	for b, w := range r.within {
		if long := float64(float64(w)*inside) + float64(float64(b)*outside); w >= 0 && long > most {
			within, between, most = w, b, long
		}
	}
	return within, between
}
