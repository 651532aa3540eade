package tuning

import (
	"math/bits"

	"tutti/model"
	"tutti/model/schedule"
	"tutti/model/units"
)

// predictPAT predicts AllGather and ReduceScatter on a tree for each rank: every
// rank has a step for each block, which waits for what comes over the longest
// way.
func (d *Predictor) predictPAT(t schedule.Task) Prediction {
	s := schedule.RoundsShape(t)
	k := d.kernel(t, &s)
	way := d.rounds.intra
	if d.nodes > 1 {
		way = d.rounds.inter
	}
	distances := bits.Len(uint(d.ranks - 1)) // powers of two below the ranks
	buffers := 3 + k.input
	if t.Collective == model.AllGather {
		buffers = 3
	}
	b := s.Chunk
	if s.Loops == 1 {
		b = s.Last
	}
	data, network, known := k.passing(b, &leg{share: 1, buffers: buffers, way: &way}, byAll)
	latency := k.overhead + data + network + known
	behind := distances // of the others, in further loops
	if t.Collective == model.ReduceScatter {
		behind /= 2
	}
	worker := func(b units.Bytes, behind int) float64 {
		step := k.overhead + k.turn + k.moving(b, 1, buffers)
		network := float64(float64(d.ranks-1+behind) * k.wire(b, &way))
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
