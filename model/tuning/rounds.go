package tuning

import (
	"math"

	"tutti/model"
	"tutti/model/profile"
	"tutti/model/schedule"
	"tutti/model/units"
	"tutti/topo"
	"tutti/topo/search"
)

// share is the part of the threads that send, or go up a chain, and that receive, or go
// down.
const share = .5

// predictSend predicts one send and receive for each rank, or each other one.
func (d *Predictor) predictSend(t schedule.Task) Prediction {
	s := schedule.RoundsShape(t)
	k := d.kernel(t, &s)
	way := d.rounds.intra
	switch {
	case d.nodes == 1:
	case t.Collective == model.SendRecv:
		way = d.crossing
	default:
		way = d.rounds.inter
		if d.ranks/2%d.perNode > 0 { // to another place in the node
			way.latency = d.crossing.latency
		}
	}
	return k.pipe(&s, []leg{{1, share, k.sends(), &way, false}}, leg{share: share, buffers: k.keeps(), last: true})
}

// predictAllToAll predicts sends in rounds, those within the node before the others: a
// worker sends to one rank after another while a second one receives, and NICs send
// beside them.
func (d *Predictor) predictAllToAll(t schedule.Task) Prediction {
	s := schedule.RoundsShape(t)
	k := d.kernel(t, &s)
	within, across, way := float64(d.perNode-1), float64(d.ranks-d.perNode), d.rounds.intra
	if across > 0 {
		way = d.rounds.inter
		way.latency = d.crossing.latency
	}
	round := func(each func(units.Bytes) float64) float64 {
		return float64(float64(s.Loops-1)*each(s.Chunk)) + each(s.Last)
	}
	copies := func(b units.Bytes) float64 { return k.overhead + k.turn + k.moving(b, share, k.sends()) }
	sends := func(b units.Bytes) float64 { return max(copies(b), k.overhead+k.turn+k.wire(b, &d.rounds.intra)) }
	keeps := func(b units.Bytes) float64 { return k.overhead + k.turn + k.moving(b, share, k.keeps()) }
	sent, last := round(copies)+float64(within*round(sends)), keeps(s.Last)-k.turn // its own block first
	if across > 0 {
		// NICs send what is behind the first item while workers go on.
		first := s.Chunk
		if s.Loops == 1 {
			first = s.Last
		}
		outside := float64(across * round(copies))
		network := float64(across * round(func(b units.Bytes) float64 { return k.wire(b, &d.rounds.inter) }))
		sent += max(outside-k.turn+k.wire(s.Last, &d.rounds.inter), copies(first)-k.turn+backlog(outside, network, float64(across*round(keeps))))
	} else {
		sent -= k.turn
		if k.streams {
			last = k.overhead // behind the data
		}
	}
	if s.Loops > 1 && !k.streams { // receivers may be slower: with all, or with the last but one
		data, network, _ := k.passing(s.Chunk, &leg{share: share, buffers: k.sends(), way: &way}, byAll)
		busy := max(k.overhead+k.turn+data, network)
		sent = max(sent, busy-k.turn+float64((within+across)*round(keeps))-last-k.turn)
		if across == 0 {
			sent += max(0, keeps(s.Chunk)-sends(s.Last))
		}
	}
	p := Prediction{limit: "sends one after the other"}
	p.terms = [4]float64{k.base, k.handover(&way), last, sent}
	return p
}

// backlog returns how long it takes until receivers are done with rounds that workers
// send in so much time, the network carries in so much and receivers keep in so much,
// where the network is the slowest: it shares itself evenly among all rounds that are
// on it, so that those come late together that receivers take one after another.
//
// With jobs at an even pace, each of which takes r times as long to serve as the next
// is away, a queue that serves all its jobs at once grows with time, and of those that
// came by an instant, a share of 1-exp(-g) is left, with g = r (1-exp(-g)). Once no
// more come, that of place s (of 1) is done at 1 + r/g (ln s + g - s + exp(-g)). The
// receiver comes last to the place from which on jobs are done faster than it keeps
// them.
func backlog(sent, network, kept float64) float64 {
	r, keep := network/sent, kept/sent
	if r <= 1 {
		return network
	}
	g := r
	for range 8 { // Newton
		left := math.Exp(-g)
		g -= (g - float64(r*(1-left))) / (1 - float64(r*left))
	}
	done := math.Exp(-g)
	s := max(done, 1/(1+float64(keep*g/r)))
	return sent * (1 + float64(r/g*(math.Log(s)+g-s+done)) + float64(keep*(1-s)))
}

// roundWays are those from each rank to the next of its node, and to its like in
// the next node; crossing is that from the last of a node to the first of the next.
func (d *Predictor) roundWays(c *topo.Cluster) (w ways, crossing way) {
	rails := search.NewRails(c)
	intra, inter, across := newLoad(c, d.profile, profile.HopNVLink), newLoad(c, d.profile, profile.HopNET), newLoad(c, d.profile, profile.HopNET)
	for rank := range d.perNode {
		if d.perNode > 1 {
			route := c.Route(rank, (rank+1)%d.perNode, -1, -1)
			intra.add(route)
			inter.beside(route)
		}
		if d.nodes > 1 {
			route := c.Route(rank, rank+d.perNode, rails.NET(0, rank), rails.NET(0, rank+d.perNode))
			inter.add(route)
			intra.beside(route)
		}
	}
	if last := d.perNode - 1; d.nodes > 1 {
		across.add(c.Route(last, last+1, rails.NET(0, last), rails.NET(0, last+1)))
	}
	for _, l := range []*load{intra, inter, across} {
		l.channel()
	}
	return ways{intra: intra.way, inter: inter.way}, across.way
}
