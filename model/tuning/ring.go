package tuning

import (
	"tutti/model"
	"tutti/model/profile"
	"tutti/model/schedule"
	"tutti/model/units"
)

// hop is what a hop of a ring takes: the first item (latency), of which so much
// is data, and how long a chunk keeps the worker busy and the connection: with
// the NIC's sending, or waiting for free slots.
type hop struct{ latency, data, worker, network float64 }

// busy returns how far steps over the hop follow each other.
func (h hop) busy() float64 { return max(h.worker, h.network) }

// hop returns what a hop takes in a step that reads and writes the given number
// of buffers.
func (k *kernel) hop(s schedule.Shape, slice, tail units.Bytes, w *way, buffers float64) (h hop) {
	rest := float64(s.Slices - 1)
	handover := k.handover(w)
	first, last := k.moving(slice, 1, buffers), k.moving(tail, 1, buffers)
	if w.hop == profile.HopNET { // the worker fills a slot, the NIC sends it
		send := k.wire(slice, w)
		h.latency = k.overhead + first + send + handover
		h.worker = (1+rest)*(k.overhead+k.turn) + first + float64(rest*last)
		trip := h.latency + k.overhead + first + 2*w.farthest - w.latency
		h.network = max(send+float64(rest*k.wire(tail, w)), trip*float64(s.Slices)/float64(s.Slots))
		h.data = first + send
		return h
	}
	data := max(first, k.wire(slice, w))
	h.worker = (1+rest)*(k.overhead+k.turn) + data + float64(rest*max(last, k.wire(tail, w)))
	h.latency = k.overhead + handover
	if !k.streams { // else the reader follows the writer word by word
		h.latency, h.data = h.latency+data, data
	}
	return h
}

// predictRing follows a chunk for 2(n-1) hops, or n-1 where it is gathered or
// reduced alone, of which every k-th is between nodes of k ranks, and the last
// receive; loops come one after the other. All ranks are at it in lockstep, so
// that no step is faster than the busiest worker.
func (d *Predictor) predictRing(t schedule.Task) Prediction {
	s := schedule.RingShape(t)
	k := d.kernel(t, &s)
	first := k.lap(t, s, s.Slice, s.Tail)
	whole := max(first.chain, first.pace+first.fill)
	if few := s.Filled < d.ranks && s.Loops == 1 && k.streams; few {
		whole = max(first.chain, k.crowded(s, &first))
	}
	data := min(first.data, whole)
	p := Prediction{limit: d.limitOf(&k, &d.ring, s.Slice)}
	p.terms = [4]float64{k.base, whole + first.last - data, data, 0}
	if s.Loops > 1 {
		slice, tail := split(s)
		rest := k.lap(t, s, slice, tail)
		p.terms[3] = float64(s.Loops-2)*first.next(&k) + rest.next(&k)
	}
	return p
}

// crowded returns how long a chunk takes round the ring where workers are idle but for
// few others: it goes on with the data or, in the place of a hop, waits while the worker
// is at the one before it. It can do so once for each of the others, and again once it
// has met them all and the empty ones, which keep no worker. The more it waits, the fewer
// of its hops are between nodes.
func (k *kernel) crowded(s schedule.Shape, l *lap) (most float64) {
	inside, outside := k.hop(s, s.Slice, s.Tail, &k.ring.intra, k.reduces()), k.hop(s, s.Slice, s.Tail, &k.ring.inter, k.reduces())
	wait := inside.worker - inside.latency
	for round := 0; round*k.ranks <= l.hops; round++ {
		left := l.hops - round*k.ranks
		waits := min(s.Filled-1, left)
		met := float64(round) * (float64(float64(s.Filled)*inside.worker) - float64(float64(k.ranks)*inside.latency))
		if l.across == 0 {
			most = max(most, l.chain+float64(float64(waits)*wait)+met)
			continue
		}
		// As many as that leave, or fewer that leave one hop between nodes more.
		for across := (left - waits + k.perNode - 1) / k.perNode; round == 0 && across <= min(l.across, (left-waits)/k.perNode+2); across++ {
			waits := min(waits, left-1-(across-1)*k.perNode)
			most = max(most, l.chain+float64(float64(waits)*wait)-float64(float64(l.across-across)*(outside.latency-inside.latency)))
		}
	}
	return most
}

// lap is a chunk's way round a ring.
type lap struct {
	chain   float64 // hop after hop
	pace    float64 // step after step, at the pace of the slowest hop
	fill    float64 // until what comes from another node follows at its pace
	last    float64 // the last receive
	data    float64 // how much of the chain is data
	worker  float64 // how long all steps but the last keep a worker busy
	network float64 // how long its items keep a connection between nodes busy
	idle    float64 // how long such a one then is idle
	hops    int
	across  int // of them, between nodes
	// spared is how much less of the chain counts behind another lap: each begins where
	// the one before has ended, a rank back, so that no way is the longest in all of them.
	spared float64
}

// next returns how long the lap takes behind another one: workers go on to it when
// they are done with theirs, and connections between nodes do not wait for them.
func (l *lap) next(k *kernel) float64 {
	chain := l.chain - l.spared
	if l.network == 0 {
		return max(chain, l.pace) + l.last + k.turn
	}
	return max(max(chain, l.worker)+l.last+k.turn, l.network+l.idle)
}

// lap goes round the ring with a chunk.
func (k *kernel) lap(t schedule.Task, s schedule.Shape, slice, tail units.Bytes) (l lap) {
	d := k.Predictor
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
	within := steps - across
	l.hops, l.across = steps, across
	// A worker begins with what it has, reduces, keeps the sum, passes it on and
	// keeps the last; what reduces and what passes on is told apart, too, between
	// nodes.
	begins, reduces, sums, passes := min(1, within/2), (within+1)/2-min(1, within/2), min(1, within/2), within/2-min(1, within/2)
	begin, end := k.sends(), k.keeps() // buffers of the first step and the last
	reducing := across - across/2
	switch {
	case t.Collective == model.ReduceScatter: // the last reduces
		begins, sums, passes, end, reducing = min(1, within), 0, 0, k.reduces(), across
		reduces = within - begins
	case t.Collective == model.AllGather:
		begins, sums, reduces, reducing = min(1, within), 0, 0, 0
		passes = within - begins
		if !t.InPlace { // keeps its own, too
			begin++
		}
	}
	var network [2]float64 // how long it keeps a step that reduces, and one that passes on
	for i, count := range [...]int{reducing, across - reducing} {
		buffers := [...]float64{k.reduces(), k.passes()}[i]
		h := k.hop(s, slice, tail, &d.ring.inter, buffers)
		if count > 0 {
			if t.Collective != model.AllReduce { // whose laps begin two ranks back, mostly on as long a way
				more := float64(across) - float64(steps)/float64(d.perNode) // than in the mean
				l.spared = more * (h.latency - k.hop(s, slice, tail, &d.ring.intra, buffers).latency)
			}
			l.add(count, h, h.busy())
			l.fill, l.network = max(l.fill, h.latency-h.busy()), max(l.network, float64(steps)*h.network)
			network[i] = h.busy()
		}
	}
	for _, of := range [...]struct {
		count            int
		buffers, network float64
	}{{begins, begin, network[0]}, {reduces, k.reduces(), network[0]}, {sums, k.keepsAndSends(), network[0]}, {passes, k.passes(), network[1]}} {
		h := k.hop(s, slice, tail, &d.ring.intra, of.buffers)
		l.add(of.count, h, max(h.worker, of.network))
	}
	if within == 0 { // until the sender has kept what it was sent, and begins anew
		l.idle = k.handover(&d.ring.inter) + 2*k.overhead + k.turn + k.moving(max(tail, slice*units.Bytes(2-s.Slices)), 1, end) + k.moving(slice, 1, begin)
	}
	// The last rank copies the slices out of its buffer, one after the other.
	l.last = float64(float64(s.Slices)*k.overhead) + float64(float64(s.Slices-1)*k.turn) + k.moving(slice, 1, end)
	if s.Slices > 1 {
		l.last += k.moving(tail, 1, end)
	}
	return l
}

// add puts hops to the lap whose steps follow each other at the given pace.
func (l *lap) add(count int, h hop, pace float64) {
	n := float64(count)
	l.chain += float64(n * h.latency)
	l.pace += float64(n * pace)
	l.data += float64(n * h.data)
	l.worker += float64(n * h.worker)
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
func (d *Predictor) limitOf(k *kernel, w *ways, b units.Bytes) string {
	intra, inter, copying := k.wire(b, &w.intra), k.wire(b, &w.inter), k.copying(b, 1)
	switch {
	case d.nodes > 1 && inter >= max(intra, copying):
		return "the network is the limit"
	case intra >= copying:
		return "the links are the limit"
	default:
		return "copying is the limit"
	}
}
