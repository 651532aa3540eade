package tuning

import (
	"math/bits"

	"tutti/model"
	"tutti/model/schedule"
	"tutti/model/units"
)

// predictPAT predicts AllGather and ReduceScatter on a tree for each rank, of one GPU a
// node. A loop is a step for each block, and does not begin before the one before it has
// ended everywhere, as the last block to come is among the last to be sent.
func (d *Predictor) predictPAT(t schedule.Task) Prediction {
	s := schedule.RoundsShape(t)
	k := d.kernel(t, &s)
	buffers := 3.
	if t.Collective == model.ReduceScatter {
		buffers += k.input
	}
	hop := leg{share: 1, buffers: buffers, way: &d.rounds.inter}
	// A tree is gone through before the next. In it a step waits for the one before,
	// another for that two steps before, and so on by powers of two: the longest chain goes
	// over some of these hops, the nearest first, in the place of the steps between.
	loop := func(b units.Bytes) (most, data float64) {
		moving, network, known := k.passing(b, &hop, byAll)
		step := k.overhead + moving
		tree := func(ranks int) (most, data float64) {
			longest := bits.Len(uint(ranks)) - 1
			wires := 0.
			for hops := range longest + 1 {
				switch { // a gathered block goes over all its distances at a time
				case hops == 0:
				case t.Collective == model.ReduceScatter:
					wires++
				case hops == 1: // the own one
					wires += float64(bits.Len(uint(ranks - 1)))
				default:
					wires += float64(longest + 1 - hops)
				}
				turns := float64(ranks - 1<<hops)
				steps := turns + 1 + float64(hops)
				if chain := float64(steps*step) + float64(turns*k.turn) + float64(float64(hops)*known) + float64(wires*network); chain > most {
					most, data = chain, float64(steps*moving)+float64(wires*network)
				}
			}
			return most, data
		}
		for left := d.ranks; left > 0; left -= schedule.PATBlocks {
			chain, of := tree(min(left, schedule.PATBlocks))
			most, data = most+chain+k.turn, data+of
		}
		most -= k.turn
		// Or a port sends all blocks, between the first step and the last.
		if sends := float64(float64(d.ranks-1) * network); sends+known+2*step > most {
			most, data = sends+known+2*step, sends+2*moving
		}
		return most, data
	}
	last, data := loop(s.Last)
	p := Prediction{limit: "a step for each block"}
	p.terms = [4]float64{k.base, last - data, data, 0}
	if s.Loops > 1 {
		first, data := loop(s.Chunk)
		p.terms = [4]float64{k.base, first - data, data, float64(float64(s.Loops-2)*(first+k.turn)) + k.turn + last}
	}
	return p
}
