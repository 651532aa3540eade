package tuning

import (
	"tutti/model"
	"tutti/model/schedule"
	"tutti/model/units"
)

// predictHierarchical predicts AllReduce by shares in the nodes and rings on the
// rails: a chunk is scattered, goes round its rail, and is gathered from there,
// and scatters feed the rings of the loops behind it meanwhile.
func (d *Predictor) predictHierarchical(t schedule.Task) Prediction {
	s := schedule.HierarchicalShape(t)
	k := d.kernel(t, s.Channels)
	others := units.Bytes(d.perNode - 1)
	const outer, inner, gathering = .45, .45, .1 // shares of the threads
	n := float64(d.nodes)
	steps := float64(2*d.nodes - 2) // of a ring
	lap := func(b units.Bytes) (chain, pace, data float64) {
		scatter := k.moving(others*b, outer, 3+k.input)
		inside := k.wire(others*b, d.rounds.intra)
		gather := k.moving(others*b, gathering, 3)
		ring := k.moving(b, inner, float64(d.perNode)+2+k.input) // what it is sent, its own and the ring's
		send := k.wire(b, d.rounds.inter)
		h, far := k.handover(d.rounds.intra), k.handover(d.rounds.inter)
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

// predictNVLSBlocks predicts AllGather and ReduceScatter through the switch: each
// rank's block crosses its link once and every other link once.
func (d *Predictor) predictNVLSBlocks(t schedule.Task) Prediction {
	s := schedule.BlocksShape(t)
	k := d.kernel(t, s.Channels)
	n := float64(d.ranks)
	local := 1e6 / float64(d.profile.LocalCopy)
	const own, all = 12. / 16, 8. / 16
	h := d.nvls.latency + d.profile.Handover[0][t.Algorithm][t.Protocol].Microseconds()
	stage := func(b units.Bytes) (one, every float64) {
		link := float64(b) * n * d.nvls.link * k.channels / d.profile.Multimem
		return max(float64(b)*k.perByte/own, link), float64(b) * n * local / all
	}
	b := s.Chunk
	if s.Loops == 1 {
		b = s.Last
	}
	one, every := stage(b)
	p := Prediction{limit: "the slower of the switch and the copying beside it"}
	p.terms = [4]float64{k.base, 2*k.overhead + h, one + every, 0}
	if s.Loops > 1 {
		lastOne, lastEvery := stage(s.Last)
		p.terms[3] = float64(float64(s.Loops-2)*(k.overhead+max(one, every))) + k.overhead + max(lastOne, lastEvery)
	}
	return p
}

// predictPAT predicts AllGather and ReduceScatter on a tree for each rank: every
// rank has a step for each block, which waits for what comes over the longest
// way.
func (d *Predictor) predictPAT(t schedule.Task) Prediction {
	s := schedule.RoundsShape(t)
	k := d.kernel(t, s.Channels)
	way := d.rounds.intra
	if d.nodes > 1 {
		way = d.rounds.inter
	}
	distances := 0 // powers of two below the ranks
	for 1<<distances < d.ranks {
		distances++
	}
	buffers := 3 + k.input
	if t.Collective == model.AllGather {
		buffers = 3
	}
	b := s.Chunk
	if s.Loops == 1 {
		b = s.Last
	}
	latency, data, _ := k.passing(b, leg{1, 1, buffers, way}, s.Slots)
	behind := distances // of the others, in further loops
	if t.Collective == model.ReduceScatter {
		behind /= 2
	}
	worker := func(b units.Bytes, behind int) float64 {
		step := k.overhead + k.turn + k.moving(b, 1, buffers)
		network := float64(float64(d.ranks-1+behind) * k.wire(b, way))
		return max(float64(float64(d.ranks)*step), network)
	}
	chain := float64(float64(distances)*latency) + k.overhead + k.moving(b, 1, buffers)
	p := Prediction{limit: "a step for each block"}
	first := max(chain, worker(b, 0)+latency)
	p.terms = [4]float64{k.base, first - data, data, 0}
	if s.Loops > 1 {
		p.terms[3] = float64(float64(s.Loops-2)*worker(s.Chunk, behind)) + worker(s.Last, behind)
	}
	return p
}
