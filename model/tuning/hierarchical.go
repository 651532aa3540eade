package tuning

import (
	"tutti/model/schedule"
	"tutti/model/units"
)

// predictHierarchical predicts AllReduce by shares in the nodes and rings on the
// rails: a chunk is scattered, goes round its rail, and is gathered from there,
// and scatters feed the rings of the loops behind it meanwhile.
func (d *Predictor) predictHierarchical(t schedule.Task) Prediction {
	s := schedule.HierarchicalShape(t)
	k := d.kernel(t, &s)
	others := units.Bytes(d.perNode - 1)
	const outer, inner, gathering = .45, .45, .1 // shares of the threads
	n := float64(d.nodes)
	steps := float64(2*d.nodes - 2) // of a ring
	lap := func(b units.Bytes) (chain, pace, data float64) {
		scatter := k.moving(others*b, outer, 3+k.input)
		inside := k.wire(others*b, &d.rounds.intra)
		gather := k.moving(others*b, gathering, 3)
		ring := k.moving(b, inner, float64(d.perNode)+2+k.input) // what it is sent, its own and the ring's
		send := k.wire(b, &d.rounds.inter)
		h, far := k.handover(&d.rounds.intra), k.handover(&d.rounds.inter)
		first, last := max(scatter, inside), max(gather, inside)
		hop := k.overhead + ring + send + far
		worker := k.overhead + k.turn + ring
		trip := hop + k.overhead + ring + d.rounds.inter.latency
		busy := max(worker, send, trip/float64(s.Slots))
		chain = k.overhead + h + float64(steps/2*hop) + k.overhead + max(ring, inside) + h // until the first is gathered
		gathers := k.overhead + k.turn + last
		chain += max(float64(steps/2*hop)+k.overhead+last, float64(n*gathers)-k.turn)
		data = float64(steps * (ring + send))
		if !k.streams {
			chain, data = chain+first, data+first+last
		}
		// A loop keeps scatterers for one step a node, the ring for two, gatherers
		// for one.
		pace = max(float64(n*(k.overhead+k.turn+first)), float64(steps*hop)+worker, float64(steps*busy), float64(n*gathers))
		return chain, pace, data
	}
	b := s.Chunk
	if s.Loops == 1 {
		b = s.Last
	}
	chain, pace, data := lap(b)
	first := max(chain, pace)
	p := Prediction{limit: "the slowest of scatter, rail and gather"}
	p.terms = [4]float64{k.base, first - min(data, first), min(data, first), 0}
	if s.Loops > 1 {
		_, last, _ := lap(s.Last)
		p.terms[3] = float64(float64(s.Loops-2)*pace) + last
	}
	return p
}
