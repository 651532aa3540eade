package tuning

import (
	"tutti/model"
	"tutti/model/profile"
	"tutti/model/schedule"
	"tutti/model/units"
	"tutti/topo"
	"tutti/topo/search"
)

// predictRounds predicts sends in rounds: a worker sends to one rank after
// another while a second one receives, and NICs send beside them.
func (d *Predictor) predictRounds(t schedule.Task) Prediction {
	s := schedule.RoundsShape(t)
	k := d.kernel(t, s.Channels)
	within, across := 0., 1. // rounds that stay in the node, and that leave it
	switch {
	case t.Collective == model.AllToAll:
		within, across = float64(d.perNode-1), float64(d.ranks-d.perNode)
	case d.nodes == 1:
		within, across = 1, 0
	}
	way := d.rounds.intra
	if across > 0 {
		way = d.rounds.inter
		if t.Collective != model.Exchange || d.ranks/2%d.perNode > 0 { // to another place in the node
			way.latency = d.crossing
		}
	}
	const share = .5
	sends, keeps := 2+k.input, 2+k.slots
	if within+across == 1 {
		return k.pipe(s, []leg{{1, share, sends, way, false}}, leg{share: share, buffers: keeps, last: true})
	}
	round := func(each func(units.Bytes) float64) float64 {
		return float64(float64(s.Loops-1)*each(s.Chunk)) + each(s.Last)
	}
	inside := float64(within * round(func(b units.Bytes) float64 {
		return k.overhead + k.turn + max(k.moving(b, share, sends), k.wire(b, d.rounds.intra))
	}))
	alone := round(func(b units.Bytes) float64 { return k.overhead + k.turn + k.moving(b, share, sends) })
	if t.Collective == model.AllToAll { // its own block
		inside += alone
	}
	outside := float64(across * alone)
	last := k.overhead + k.moving(s.Last, share, keeps)
	if across == 0 {
		outside -= k.turn
		if k.streams {
			last = k.overhead // behind the data
		}
	} else {
		// NICs send what is behind the first item while workers go on.
		first := s.Chunk
		if s.Loops == 1 {
			first = s.Last
		}
		network := float64(across * round(func(b units.Bytes) float64 { return k.wire(b, d.rounds.inter) }))
		outside = max(outside-k.turn+k.wire(s.Last, d.rounds.inter), k.overhead+k.moving(first, share, sends)+network)
	}
	p := Prediction{limit: "sends one after the other"}
	sent := inside + outside
	if s.Loops > 1 && !k.streams { // receivers may be slower
		data, network, _ := k.passing(s.Chunk, &leg{share: share, buffers: sends, way: way}, byAll)
		busy := max(k.overhead+k.turn+data, network)
		kept := float64((within + across) * round(func(b units.Bytes) float64 { return k.overhead + k.turn + k.moving(b, share, keeps) }))
		sent = max(sent, busy-k.turn+kept-last-k.turn)
	}
	p.terms = [4]float64{k.base, k.handover(way), last, sent}
	return p
}

// roundWays are those from each rank to the next of its node, and to its like in
// the next node; crossing is the latency from the last of a node to the first of the
// next.
func (d *Predictor) roundWays(c *topo.Cluster) (w ways, crossing float64) {
	intra, inter, rails := newLoad(c, d.profile, profile.HopNVLink), newLoad(c, d.profile, profile.HopNET), search.NewRails(c)
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
		crossing = inter.latency(c.Route(last, last+1, rails.NET(0, last), rails.NET(0, last+1)))
	}
	intra.channel()
	inter.channel()
	return ways{intra: intra.way, inter: inter.way}, crossing
}
