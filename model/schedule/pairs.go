package schedule

import "tutti/model"

// reduces tells whether an output element has more than one source.
func (t Task) reduces() bool {
	return t.Collective.Reduces()
}

// sends tells whether a rank has something in its input that belongs into the
// output of another, or its own: always Count elements, side by side.
func (t Task) sends(from, to int) bool {
	switch t.Collective {
	case model.Broadcast:
		return from == t.Root
	case model.Reduce:
		return to == t.Root
	case model.SendRecv, model.Exchange:
		return to == t.Peer(from)
	default:
		return true
	}
}

// sent tells where in the numbering of elements that is: rank p is sent the Count
// elements at first + p*stride.
func (t Task) sent(rank int) (first, stride int64) {
	n, own := int64(t.Ranks), int64(rank)
	switch t.Collective {
	case model.AllGather, model.SendRecv, model.Exchange:
		return own * t.Count, 0
	case model.ReduceScatter:
		return 0, t.Count
	case model.AllToAll:
		return own * n * t.Count, t.Count
	default:
		return 0, 0
	}
}

// received tells the same of what comes in: rank p has sent the Count elements at
// first + p*stride.
func (t Task) received(rank int) (first, stride int64) {
	n, own := int64(t.Ranks), int64(rank)
	switch t.Collective {
	case model.AllGather:
		return 0, t.Count
	case model.SendRecv, model.Exchange:
		return int64(t.Source(rank)) * t.Count, 0
	case model.ReduceScatter:
		return own * t.Count, 0
	case model.AllToAll:
		return own * t.Count, n * t.Count
	default:
		return 0, 0
	}
}

// pairs numbers connections between all ranks, on each channel: the one from a
// rank to that p + 1 further on is (rank*channels + channel)*(ranks - 1) + p.
type pairs struct{ ranks, channels int }

func (n pairs) connections() int { return n.ranks * n.channels * (n.ranks - 1) }

// further returns the rank that is p + 1 further on.
func (n pairs) further(rank, p int) int { return (rank + 1 + p) % n.ranks }

// to returns the connection to the rank that is p + 1 further on, and from that
// from there.
func (n pairs) to(rank, ch, p int) int { return (rank*n.channels+ch)*(n.ranks-1) + p }
func (n pairs) from(rank, ch, p int) int {
	return n.to(n.further(rank, p), ch, n.ranks-2-p)
}

// ends takes a connection's number apart.
func (n pairs) ends(c int) (from, to, ch int) {
	w, p := c/(n.ranks-1), c%(n.ranks-1)
	from, ch = w/n.channels, w%n.channels
	return from, n.further(from, p), ch
}
