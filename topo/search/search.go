// Package search finds the channels of a cluster: in which order rings and
// trees pass through the GPUs of a machine, by which ports they leave it, which
// GPUs head NVLS, and how the machines are connected with each other.
//
// It is NCCL 2.28.3's search (src/graph/search.cc, connect.cc, trees.cc), whose
// results it gives channel by channel: for every setting, which is a speed per
// channel, the worst types of path to be used, and whether channels may differ,
// it goes through the orders of GPUs depth first and charges each channel's speed
// to the links that it takes. Where NCCL bounds its search, it counts steps rather
// than time, so that the result is the same on every machine.
//
// Rings and trees over all ranks are computed on demand: a ring over 100,000
// ranks takes no memory.
package search

import (
	"math"
	"slices"

	"tutti/model/units"
	"tutti/topo"
)

// Budgets of NCCL's search, in steps (NCCL 2.28.3, search.cc, NCCL_SEARCH_*).
const (
	stepsInAll     = 1 << 19
	stepsSame      = 1 << 8  // one setting, every channel the same
	stepsDifferent = 1 << 14 // one setting, channels of all orders
	stepsInOrder   = 1 << 10 // the first look, at the GPUs in order
)

// request says what graph to search for.
type request struct {
	pattern  Pattern
	min, max int  // channels
	collNet  bool // by NETs that do collectives
}

// try is one setting of the search, with the channels that it has so far.
type try struct {
	request
	crossNic             int
	same                 bool
	bwIntra, bwInter     float32
	typeIntra, typeInter topo.PathType
	latency              int // the NET whose latency counts, or -1
	length               int // of all paths, in links
	channels             []channel
}

// channel is a Channel in the search's own numbers: places of GPUs and NETs.
type channel struct {
	gpus    []int
	in, out int
}

// keep copies a try, so that the search can go on with it.
func (t *try) keep() *try {
	kept := *t
	kept.channels = make([]channel, len(t.channels))
	for i, ch := range t.channels {
		kept.channels[i] = channel{slices.Clone(ch.gpus), ch.in, ch.out}
	}
	return &kept
}

// bw is the rate of all channels within a machine, and inter between machines.
func (t *try) bw() float32    { return float32(float32(len(t.channels)) * t.bwIntra) }
func (t *try) inter() float32 { return float32(float32(len(t.channels)) * t.bwInter) }

// tries goes through the settings for one graph.
type tries struct {
	*space
	speeds []float32
	speed  int // index
	first  try // the start values
	now    try
	best   *try

	worstIntra, worstInter topo.PathType
	crosses                bool // NICs, if nothing else helps
	left                   int  // steps in all

	channels []channel   // room for a walk's
	ranking  []candidate // likewise
}

// find searches for a graph (NCCL 2.28.3, search.cc, ncclTopoCompute).
func (s *space) find(r request) Graph {
	t := s.newTries(r)
	for {
		if left := t.run(); left == perfect || t.enough() || !t.relax(left) {
			break
		}
	}
	t.duplicate()
	t.improve()
	if !t.found() && !r.collNet && r.pattern != NVLSPattern {
		t.inOrder()
	}
	if !t.found() {
		return Graph{}
	}
	return s.graph(t.best)
}

// newTries begins with the best that the machine has: the highest speed, the
// nearest paths.
func (s *space) newTries(r request) *tries {
	network, k := len(s.nets) > 0, len(s.gpus)
	t := &tries{space: s, speeds: speeds(s.sm, network), left: stepsInAll, worstIntra: topo.PathSYS, worstInter: topo.PathSYS}
	crossNic := 0
	if len(s.nets) > 1 && (r.pattern == RingPattern || r.pattern == BalancedTree || r.pattern == SplitTree) {
		t.crosses = s.crossing == CrossNicAuto
		if s.crossing == CrossNicAny {
			crossNic = 1
		}
	}
	switch r.pattern {
	case NVLSPattern: // at most as many heads as GPUs, and evenly so without a network
		r.max = min(maxHeads, k)
		if !network {
			r.min = r.max
		}
	case CollNetDirect:
		r.max = min(maxDirectHeads, k)
	case RingPattern: // trees do better on a split machine, but need two channels, as do rings then
		if s.split() && r.max >= 2 && r.min == 1 {
			r.min = 2
		}
	}
	if k == 1 && r.pattern != RingPattern {
		r.pattern = TreePattern
	}
	t.first = try{request: r, crossNic: crossNic, same: r.pattern != NVLSPattern, typeIntra: topo.PathLOC, typeInter: topo.PathPIX, latency: -1}
	if k > 1 {
		t.first.typeIntra, t.worstIntra = s.best(s.gpus), s.worst(s.gpus)
	}
	if network {
		t.first.typeInter, t.worstInter = s.best(s.nets), s.worst(s.nets)
	}
	for range r.max {
		t.channels = append(t.channels, channel{gpus: make([]int, k), in: -1, out: -1})
	}
	t.best = t.first.keep() // nothing yet
	t.now = t.first
	t.setSpeed(t.fastest(r.min))
	return t
}

// fastest is the index of the highest speed that the best path has, and that so
// many channels can have together. Chains leave one of a ring's links alone.
func (t *tries) fastest(channels int) int {
	total, k := t.totalBw, float64(len(t.gpus))
	if k > 1 && t.first.pattern != RingPattern {
		total = float32(float64(total) * (k / (k - 1)))
	}
	return dropTo(t.speeds, func(speed float32) bool {
		return speed <= t.maxBw && float32(speed*float32(channels)) <= total
	})
}

// setSpeed lets channels have the speed of an index, within machines and between.
func (t *tries) setSpeed(i int) {
	t.speed = i
	t.now.bwIntra, t.now.bwInter = t.speeds[i], t.speeds[i]
}

// found tells whether there is a solution at all.
func (t *tries) found() bool { return len(t.best.channels) > 0 }

// enough tells whether the best solution uses all that the GPUs have.
func (t *tries) enough() bool { return t.best.inter() >= t.totalBw }

// run searches with the setting of now. It returns what is left of the steps of
// this setting, or perfect.
func (t *tries) run() int {
	steps := stepsDifferent
	if t.now.same {
		steps = stepsSame
	}
	t.left -= steps
	w := &walk{space: t.space, try: t.now, best: t.best, steps: steps, ranking: t.ranking}
	w.channels = t.channels[:0]
	w.next()
	t.best, t.ranking = w.best, w.ranking
	return w.steps
}

// relax goes on to the next setting, given what the last one left of its steps.
// From one setting to the next, channels may first differ, then trees become
// plain, paths between GPUs worse, paths to the network worse, rings cross NICs,
// and at last channels are slower; each of these starts those before it anew. It
// reports whether there is a setting worth trying.
func (t *tries) relax(left int) bool {
	now := &t.now
	if now.same && !(t.AMD() && now.typeIntra == topo.PathSYS) {
		now.same = false
		return true
	}
	now.same = t.first.same
	if t.left += left; t.left < 0 && t.found() {
		return false
	}
	if t.sm >= 90 && now.pattern == BalancedTree {
		now.pattern = TreePattern
		return true
	}
	now.pattern = t.best.pattern

	network := len(t.nets) > 0
	worstIntra := t.worstIntra
	if network {
		worstIntra = now.typeInter
	}
	if now.typeIntra < worstIntra && (!t.found() || now.typeIntra < t.best.typeIntra) {
		if now.typeIntra++; now.typeIntra < topo.PathDIS {
			return true
		}
	}
	now.typeIntra = t.first.typeIntra
	if network && now.typeInter < t.worstInter && (!t.found() || now.typeInter < t.best.typeInter || now.typeInter < topo.PathPXN) {
		if now.typeInter++; now.typeInter < topo.PathDIS {
			return true
		}
	}
	now.typeInter = t.first.typeInter
	if t.crosses && now.crossNic == 0 && (t.best.pattern == RingPattern || t.best.pattern == BalancedTree) {
		now.crossNic = 2
		return true
	}
	now.crossNic = t.first.crossNic
	if t.speed+1 < len(t.speeds) && (!t.found() || float64(t.speeds[t.speed+1]/t.best.bwInter) > .49) {
		t.setSpeed(t.speed + 1)
		return true
	}
	return false
}

// duplicate splits wide channels in two, so that more blocks share the work
// (NCCL 2.28.3, search.cc, ncclTopoDupChannels).
func (t *tries) duplicate() {
	best, n := t.best, len(t.best.channels)
	if n == 0 || best.pattern == NVLSPattern || best.bwIntra < 25 || (t.sm > 80 && best.bwIntra < 50 && n > 4) {
		return
	}
	all := min(2*n, best.max)
	best.channels = append(best.channels, best.channels[:all-n]...)
	parts := float32((all + n - 1) / n)
	best.bwIntra /= parts
	best.bwInter /= parts
}

// improve looks for more bandwidth with the channels that there are: rings may
// have more of everything, heads more between machines, and trees and CollNet
// more within.
func (t *tries) improve() {
	t.now = *t.best
	t.now.min = len(t.best.channels)
	t.setSpeed(dropTo(t.speeds, func(speed float32) bool { return speed <= t.best.bwInter }))
	for left := perfect; left != 0 && t.speed > 0; left = t.run() {
		now := &t.now
		switch {
		case t.best.pattern == RingPattern:
			t.setSpeed(t.speed - 1)
		case t.best.pattern == NVLSPattern && now.bwInter == t.best.bwInter && now.bwInter < now.bwIntra*2:
			now.min, now.max = len(t.best.channels), len(t.best.channels)
			t.speed--
			now.bwInter = t.speeds[t.speed]
		case now.bwIntra == t.best.bwIntra && now.bwIntra < now.bwInter*2:
			t.speed--
			now.bwIntra = t.speeds[t.speed]
		default:
			return
		}
	}
}

// inOrder takes the GPUs in order where no search finds a way.
func (t *tries) inOrder() {
	ch := channel{in: -1, out: -1}
	for i := range t.gpus {
		ch.gpus = append(ch.gpus, i)
	}
	if len(t.nets) > 0 {
		ch.in, ch.out = 0, 0
	}
	t.best.channels = []channel{ch}
	t.best.bwIntra, t.best.bwInter = .1, .1
	t.best.typeIntra, t.best.typeInter = topo.PathSYS, topo.PathSYS
}

// graph tells a solution in the terms of the machine.
func (s *space) graph(t *try) Graph {
	g := Graph{
		Pattern: t.pattern, BwIntra: rate(t.bwIntra), BwInter: rate(t.bwInter),
		TypeIntra: t.typeIntra, TypeInter: t.typeInter, CrossNic: t.crossNic, SameChannels: t.same,
	}
	if t.latency >= 0 {
		g.LatencyInter = s.Nodes[s.nets[t.latency]].Latency
	}
	for _, ch := range t.channels {
		c := Channel{In: ch.in, Out: ch.out}
		members := ch.gpus
		if t.pattern == NVLSPattern {
			members = ch.gpus[:1]
		}
		for _, gpu := range members {
			c.GPUs = append(c.GPUs, s.rank[gpu])
		}
		g.Channels = append(g.Channels, c)
	}
	return g
}

// rate is a speed in whole MB/s, in which all speeds and their halves are.
func rate(gbps float32) units.Rate { return units.Rate(math.Round(float64(gbps)*1000)) * units.MBps }
