package tuning

import (
	"tutti/model"
	"tutti/model/schedule"
	"tutti/model/units"
)

// stage is what a worker of an all-pairs schedule does in one step.
type stage struct {
	copied units.Bytes // by the worker
	// streams is how many buffers it reads and writes.
	streams int
	sent    units.Bytes // by every worker, on its GPU's link
}

// predictPairs follows a worker of one or two shots: each stage waits for what
// all others send it in the one before.
func (d *Predictor) predictPairs(t schedule.Task) Prediction {
	s := schedule.PairsShape(t)
	k := d.kernel(t, s.Channels)
	n, others := d.ranks, units.Bytes(d.ranks-1)
	stages := func(b units.Bytes) []stage {
		if t.Algorithm == model.OneShot {
			return []stage{{b, n, others * b}, {b, n + 1, 0}}
		}
		return []stage{{others * b, 3, others * b}, {b, 2 * n, others * b}, {others * b, 3, 0}}
	}
	h := k.handover(d.pairs)
	loop := func(b units.Bytes) (whole, data float64) {
		arrives := 0.0 // all of what the others sent in the stage before
		list := stages(b)
		for i, st := range list {
			start := whole + k.overhead
			end := max(start+k.moving(st.copied, 1, st.streams), start+k.wire(st.sent, d.pairs), arrives)
			data += end - start
			if i == len(list)-1 {
				whole = end
				break
			}
			arrives = end + h
			if k.streams { // the readers begin when the writers do
				whole = max(end+k.turn, start+h)
			} else {
				whole = max(end+k.turn, arrives)
			}
		}
		return whole, data
	}
	first, data := loop(s.Chunk)
	if s.Loops == 1 {
		first, data = loop(s.Last)
	}
	p := Prediction{limit: "further loops"}
	p.terms = [4]float64{k.base, first - data, data, 0}
	if s.Loops > 1 {
		last, _ := loop(s.Last)
		p.terms[3] = float64(s.Loops-2)*(first+k.turn) + k.turn + last
	}
	return p
}
