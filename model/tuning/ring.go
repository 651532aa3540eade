package tuning

import (
	"tutti/model"
	"tutti/model/profile"
	"tutti/model/schedule"
	"tutti/model/units"
)

// hop returns what a hop of a ring takes the first item (latency), and how long
// it keeps the worker or the connection busy with a chunk: with its slices, with
// the NIC's sending, or waiting for free slots. The step reads and writes the
// given number of buffers.
func (k *kernel) hop(s schedule.Shape, slice, tail units.Bytes, w way, streams int) (latency, busy, data float64) {
	rest := float64(s.Slices - 1)
	h := k.handover(w)
	first, last := k.moving(slice, 1, streams), k.moving(tail, 1, streams)
	if w.hop == profile.HopNET { // the worker fills a slot, the NIC sends it
		send := k.wire(slice, w)
		latency = k.overhead + first + send + h
		busy = (1+rest)*(k.overhead+k.turn) + first + float64(rest*last)
		trip := latency + k.overhead + first + w.latency
		return latency, max(busy, send+float64(rest*k.wire(tail, w)), trip*float64(s.Slices)/float64(s.Slots)), first + send
	}
	data = max(first, k.wire(slice, w))
	busy = (1+rest)*(k.overhead+k.turn) + data + float64(rest*max(last, k.wire(tail, w)))
	if k.streams { // the reader follows the writer word by word
		return k.overhead + h, busy, 0
	}
	return k.overhead + data + h, busy, data
}

// predictRing follows a chunk for 2(n-1) hops, or n-1 where it is gathered or
// reduced alone, of which every k-th is between nodes of k ranks, and the last
// receive; loops come one after the other. All
// ranks are at it in lockstep, so that no step is faster than the busiest
// worker.
func (d *Predictor) predictRing(t schedule.Task) Prediction {
	s := schedule.RingShape(t)
	k := d.kernel(t, s.Channels)
	steps, across := 2*(d.ranks-1), 0
	if t.Collective != model.AllReduce {
		steps = d.ranks - 1
	}
	if d.nodes > 1 {
		// The j-th chunk sets out from the rank behind place j.
		for j := range min(s.Filled, d.perNode) {
			across = max(across, (j+1+steps)/d.perNode-(j+1)/d.perNode)
		}
	}
	behind := 0.0
	if s.Filled < d.ranks && s.Loops == 1 && k.streams {
		// Workers are idle when the first chunk comes; the others wait for their
		// turn behind it, once each.
		behind = float64(s.Filled-1) * max(0, k.turn-k.handover(d.ring.intra))
		k.turn = 0
	}
	within := steps - across
	loop := func(slice, tail units.Bytes) (whole, data float64) {
		var chain, pace, network float64
		if across > 0 {
			latency, busy, item := k.hop(s, slice, tail, d.ring.inter, 3)
			chain, data, network = float64(float64(across)*latency), float64(float64(across)*item), busy
			pace = float64(float64(across) * busy)
		}
		// The first sends what it has (2), the others reduce or pass on (3), one
		// keeps the sum and sends it (4).
		ends := min(1, within/2)
		counts := [...]int{ends, within - 2*ends, ends}
		kept := 2 // buffers of the last receive
		switch {
		case t.Collective == model.ReduceScatter: // the last reduces
			counts, kept = [...]int{ends, within - ends, 0}, 3
		case t.Collective == model.AllGather && t.InPlace: // nothing to keep at first
			counts = [...]int{ends, within - ends, 0}
		case t.Collective == model.AllGather:
			counts = [...]int{0, within, 0}
		}
		for streams, count := range counts {
			latency, busy, item := k.hop(s, slice, tail, d.ring.intra, 2+streams)
			chain += float64(float64(count) * latency)
			pace += float64(float64(count) * max(busy, network))
			data += float64(float64(count) * item)
		}
		// The last rank copies the slices out of its buffer, one after the other.
		last := float64(float64(s.Slices)*k.overhead) + float64(float64(s.Slices-1)*k.turn) + k.moving(slice, 1, kept)
		if s.Slices > 1 {
			last += k.moving(tail, 1, kept)
		}
		whole = max(chain, pace)
		return whole + last + behind, min(data, whole)
	}
	first, data := loop(s.Slice, s.Tail)
	p := Prediction{limit: d.limitOf(&k, d.ring, s.Slice)}
	p.terms = [4]float64{k.base, first - data, data, 0}
	if s.Loops > 1 {
		rest, _ := loop(split(s))
		p.terms[3] = float64(s.Loops-1)*(first+k.turn) + rest - first
	}
	return p
}

// split returns the slices of a chunk of the last loop.
func split(s schedule.Shape) (slice, tail units.Bytes) {
	slice = min(s.Last, s.Slice)
	if s.Slices > 1 {
		slice = min(s.Last, max((s.Last+1)/2, 32*units.KiB))
	}
	return slice, s.Last - slice
}

// limitOf names what keeps an item: copying, a link, or the network.
func (d *Predictor) limitOf(k *kernel, w ways, b units.Bytes) string {
	intra, inter, copying := k.wire(b, w.intra), k.wire(b, w.inter), k.copying(b, 1)
	switch {
	case d.nodes > 1 && inter >= max(intra, copying):
		return "the network is the limit"
	case intra >= copying:
		return "the links are the limit"
	default:
		return "copying is the limit"
	}
}
