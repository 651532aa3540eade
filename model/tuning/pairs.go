package tuning

import (
	"tutti/model"
	"tutti/model/schedule"
	"tutti/model/units"
)

// stage is what a worker of an all-pairs schedule does in one step.
type stage struct {
	copied units.Bytes // by the worker
	// buffers is how many buffers it reads and writes.
	buffers float64
	moved   units.Bytes // by every worker, on the busiest GPU's link
	waits   bool        // for what the others did in the stage before
	by      int         // the worker, of two
}

// predictOneShot predicts all-pairs in one hop, for the rank that has most to do.
func (d *Predictor) predictOneShot(t schedule.Task) Prediction {
	s := schedule.PairsShape(t)
	k := d.kernel(t, &s)
	pull := t.Protocol == model.Simple && !t.InPlace
	from, to := d.ranks-1, d.ranks-1
	sendAll, keepAll := false, false // a block for each of the others
	switch t.Collective {
	case model.SendRecv, model.Exchange:
		from, to = 1, 1
	case model.AllToAll:
		sendAll, keepAll = true, true
	case model.AllGather:
		keepAll = true
	case model.ReduceScatter:
		sendAll = true
	}
	reduces := t.Collective.Reduces()
	switch { // some send and others keep
	case pull:
	case t.Collective == model.Broadcast:
		p := k.predictStages(s, func(b units.Bytes) []stage {
			send := stage{copied: b, buffers: float64(d.ranks) + k.input, moved: units.Bytes(d.ranks-1) * b}
			if t.InPlace {
				return []stage{send}
			}
			return []stage{{copied: b, buffers: 2 + k.input}, send}
		})
		p.terms[1] += k.handover(&d.pairs) + k.overhead
		if !k.streams {
			p.terms[2] += k.moving(s.Last, 1, 2)
		}
		return p
	case t.Collective == model.Reduce: // all on the root's link
		way := d.pairs.times(float64(d.ranks - 1))
		return k.pipe(&s, []leg{{1, 1, 2 + k.input, &way, false}}, leg{share: 1, buffers: float64(d.ranks) + 1 + k.input, last: true})
	}
	return k.predictStages(s, func(b units.Bytes) []stage {
		var list []stage
		if !reduces && !t.InPlace && t.CanOverlap() || t.Collective == model.AllToAll {
			list = append(list, stage{copied: b, buffers: 2 + k.input})
		}
		send := stage{copied: b, buffers: float64(to) + 1 + k.input, moved: units.Bytes(max(from, to)) * b}
		if sendAll {
			send.copied, send.buffers = units.Bytes(to)*b, 3
		}
		keep := stage{copied: b, buffers: float64(from) + 1, waits: true}
		switch {
		case t.Collective == model.Broadcast: // the root sends to all, the others receive
			keep.buffers = 2
		case keepAll:
			keep.copied, keep.buffers = units.Bytes(from)*b, 3
		case reduces:
			keep.buffers += 1 + k.input
		}
		if t.Collective == model.Reduce { // the others send, the root reduces
			send.buffers = 2 + k.input
		}
		if pull {
			send.moved, keep.moved = 0, send.moved
		}
		list = append(list, send, keep)
		if pull { // all tell that they have read, and hear it
			list = append(list, stage{}, stage{waits: true})
		}
		return list
	})
}

// predictTwoShot predicts AllReduce by a share for each rank.
func (d *Predictor) predictTwoShot(t schedule.Task) Prediction {
	s := schedule.PairsShape(t)
	k := d.kernel(t, &s)
	n, others := float64(d.ranks), units.Bytes(d.ranks-1)
	return k.predictStages(s, func(b units.Bytes) []stage {
		scatter := stage{copied: others * b, buffers: 3, moved: others * b}
		reduce := stage{copied: b, buffers: 2*n + k.input, moved: others * b, waits: true}
		gather := stage{copied: others * b, buffers: 3, waits: true}
		if t.Protocol == model.Simple { // the others load from the input, and store into the output
			scatter.moved, gather.copied, reduce.moved = 0, 0, 2*reduce.moved
		}
		return []stage{scatter, reduce, gather}
	})
}

// predictTwoShotCast predicts Broadcast and Reduce by a share for each rank but the
// root.
func (d *Predictor) predictTwoShotCast(t schedule.Task) Prediction {
	s := schedule.PairsShape(t)
	k := d.kernel(t, &s)
	n := units.Bytes(d.ranks - 1)
	if t.Collective == model.Reduce { // all send, and the root waits until the owners have reduced
		return k.predictStages(s, func(b units.Bytes) (list []stage) {
			if n > 1 { // to the other owners, while the root sends to them, too
				list = append(list, stage{copied: (n - 1) * b, buffers: 3, moved: n * b, by: 1})
			}
			return append(list,
				stage{copied: n * b, buffers: 3, moved: n * b},
				stage{copied: b, buffers: float64(n) + 2 + k.input, moved: n * b, waits: true, by: 1},
				stage{copied: n * b, buffers: 3, waits: true})
		})
	}
	root := func(b units.Bytes) (list []stage) {
		if !t.InPlace {
			list = append(list, stage{copied: n * b, buffers: 2 + k.input})
		}
		return append(list, stage{copied: n * b, buffers: 3, moved: n * b})
	}
	owner := func(b units.Bytes) []stage {
		list := []stage{{copied: b, buffers: float64(n) + 1, moved: (n - 1) * b, waits: true, by: 1}}
		switch {
		case n > 1: // the others' shares
			list = append(list, stage{copied: (n - 1) * b, buffers: 3, waits: true, by: 1})
		case !k.streams: // a step for none
			list = append(list, stage{by: 1})
		}
		return list
	}
	b := s.Chunk
	if s.Loops == 1 {
		b = s.Last
	}
	first, data := k.follow(append(root(b), owner(b)...))
	p := Prediction{limit: "the slower of the root and the others"}
	p.terms = [4]float64{k.base, first - data, data, 0}
	if s.Loops > 1 { // the root goes ahead
		pace := func(b units.Bytes) float64 {
			sends, _ := k.follow(root(b))
			passes, _ := k.follow(owner(b))
			return k.turn + max(sends, passes)
		}
		p.terms[3] = float64(float64(s.Loops-2)*pace(s.Chunk)) + pace(s.Last)
	}
	return p
}

// predictStages follows a worker through its stages, loop by loop.
func (k *kernel) predictStages(s schedule.Shape, stages func(units.Bytes) []stage) Prediction {
	first, data := k.follow(stages(s.Chunk))
	if s.Loops == 1 {
		first, data = k.follow(stages(s.Last))
	}
	p := Prediction{limit: "further loops"}
	p.terms = [4]float64{k.base, first - data, data, 0}
	if s.Loops > 1 {
		last, _ := k.follow(stages(s.Last))
		p.terms[3] = float64(s.Loops-2)*(first+k.turn) + k.turn + last
	}
	return p
}

// follow returns what the stages of one loop take, to the end of the last, and how
// much of that is data.
func (k *kernel) follow(stages []stage) (whole, data float64) {
	h := k.handover(&k.pairs)
	begun, arrives := 0.0, 0.0 // when what the others sent in the stage before began to come, and is all there
	var free [2]float64        // when the workers are
	for _, st := range stages {
		start := free[st.by]
		if st.waits && k.streams { // the readers begin when the writers do
			start = max(start, begun)
		} else if st.waits {
			start = max(start, arrives)
		}
		start += k.overhead
		end := start + max(k.moving(st.copied, 1, st.buffers), k.wire(st.moved, &k.pairs))
		if st.waits {
			end = max(end, arrives)
		}
		data += max(0, end-max(start, whole))
		whole, begun, arrives, free[st.by] = max(whole, end), start+h, end+h, end+k.turn
	}
	return whole, data
}
