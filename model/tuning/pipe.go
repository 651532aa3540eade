package tuning

import (
	"tutti/model/profile"
	"tutti/model/schedule"
	"tutti/model/units"
)

// leg is a number of hops that are alike, on the way of a chunk through a
// pipeline of workers.
type leg struct {
	count          int
	share, buffers float64 // of the threads, and those read and written
	way            way
}

// passing returns what a leg's hop takes the first of many chunks, how much of
// that is data, and how far chunks follow each other on it.
func (k *kernel) passing(b units.Bytes, l leg, slots int) (latency, data, busy float64) {
	copying, wire, h := k.moving(b, l.share, l.buffers), k.wire(b, l.way), k.handover(l.way)
	worker := k.overhead + k.turn + max(copying, wire)
	switch {
	case l.way.hop == profile.HopNET: // the worker fills a slot, the NIC sends it
		latency = k.overhead + copying + wire + h
		worker = k.overhead + k.turn + copying
		trip := latency + k.overhead + copying + l.way.latency
		return latency, copying + wire, max(worker, wire, trip/float64(slots))
	case k.streams: // the reader follows the writer word by word
		return k.overhead + h, 0, worker
	default:
		return k.overhead + max(copying, wire) + h, max(copying, wire), worker
	}
}

// pipe predicts chunks that follow each other over the same legs to a last
// worker that keeps them.
func (k *kernel) pipe(s schedule.Shape, legs []leg, last leg) Prediction {
	return k.pipeline(s, legs, legs, last)
}

// pipeline is pipe where other channels' data is on the links of the first chunk than
// once all hops have some.
func (k *kernel) pipeline(s schedule.Shape, alone, all []leg, last leg) Prediction {
	first := s.Chunk
	if s.Loops == 1 {
		first = s.Last
	}
	pace := func(b units.Bytes) (slowest float64) {
		slowest = k.overhead + k.turn + k.moving(b, last.share, last.buffers)
		for _, l := range all {
			if l.count > 0 {
				_, _, busy := k.passing(b, l, s.Slots)
				slowest = max(slowest, busy)
			}
		}
		return slowest
	}
	whole, data := k.overhead, k.moving(first, last.share, last.buffers)
	if k.streams { // the last reader comes to the end with the slowest writer
		data = pace(first) - k.overhead - k.turn
	}
	whole += data
	for _, l := range alone {
		latency, item, _ := k.passing(first, l, s.Slots)
		whole += float64(float64(l.count) * latency)
		data += float64(float64(l.count) * item)
	}
	p := Prediction{limit: "the slowest of them"}
	p.terms = [4]float64{k.base, whole - data, data, 0}
	if s.Loops > 1 {
		p.terms[3] = float64(float64(s.Loops-2)*pace(s.Chunk)) + pace(s.Last)
	}
	return p
}
