package tuning

import (
	"errors"
	"fmt"
	"maps"
	"math/bits"

	"tutti/model"
	"tutti/model/profile"
	"tutti/model/schedule"
	"tutti/model/units"
	"tutti/topo"
	"tutti/topo/search"
)

// Term is a part of a predicted time and what it comes from.
type Term struct {
	Name string
	// Time is in microseconds.
	Time float64
}

// Prediction is a time and its terms.
type Prediction struct {
	// Time is in microseconds.
	Time  float64
	terms [4]float64
	limit string
}

// Terms tells what the time is made of, in the order of a call: the terms add up
// to it.
func (p Prediction) Terms() []Term {
	return []Term{
		{"launch and end of the kernel", p.terms[0]},
		{"way of the first chunk: hops and handovers", p.terms[1]},
		{"way of the first chunk: its data", p.terms[2]},
		{"the chunks behind it: " + p.limit, p.terms[3]},
	}
}

// Predictor is tutti's own model of a cluster: what the simulator would say of a
// schedule that nothing else disturbs, in a formula. It follows one worker in
// the lockstep that uncontended schedules fall into, and takes all constants
// from a machine's profile.
//
// A prediction takes well under ten microseconds, whatever the cluster's size.
type Predictor struct {
	ranks, nodes, perNode int
	profile               *profile.Profile
	algorithms            []model.Algorithm // to choose from
	ring, rail, tree      ways
	pairs                 way // from a rank to each other of its node
	railError             error
	nvls                  nvlsWays
}

// way is what it takes to get from one rank to the next.
type way struct {
	hop profile.Hop
	// latency is that of the links, in microseconds.
	latency float64
	// perByte is microseconds for each byte on the wire and each channel that is
	// in use: the slowest link's time, shared by all that cross it.
	perByte float64
}

// ways are the ways that the chunks of an algorithm take within a node and
// between nodes.
type ways struct {
	intra, inter way
	// bothIntra and bothInter are those when chunks travel up and down at a time.
	bothIntra, bothInter way
}

type nvlsWays struct {
	heads       int
	latency     float64 // GPU to switch to GPU
	link        float64 // microseconds for each byte, of a GPU's link with the switch
	inter, both way     // between nodes: up alone, and up and down at a time
	err         error
}

// NewPredictor measures the ways that the graphs of a cluster take.
func NewPredictor(c *topo.Cluster, g search.Graphs, p *profile.Profile) *Predictor {
	d := &Predictor{ranks: c.Ranks(), nodes: c.Nodes, perNode: c.RanksPerNode(), profile: p, algorithms: model.Algorithms()}
	if d.ranks == 1 {
		return d
	}
	d.ring = d.ringWays(c, search.NewRings(c, g.Ring))
	rails, err := search.RailRings(c)
	if d.railError = err; err == nil {
		d.rail = d.ringWays(c, search.NewRings(c, rails))
	}
	if d.nodes == 1 {
		d.pairs = d.ring.intra
	}
	d.tree = d.treeWays(c, search.NewTrees(c, g.Tree))
	d.nvls.err = g.NVLSError
	if g.NVLSError == nil && len(g.NVLS.Channels) > 0 {
		d.nvls = d.nvlsWays(c, search.NewHeads(c, g.NVLS))
	}
	return d
}

// With returns the model with the constants of another profile for kernels and
// handovers; links keep theirs. It takes no time, so that a fit can try many.
func (d *Predictor) With(p *profile.Profile) *Predictor {
	c := *d
	c.profile = p
	return &c
}

// SameLinks tells whether a profile has the same constants for links.
func (d *Predictor) SameLinks(p *profile.Profile) bool {
	return maps.Equal(d.profile.Latency, p.Latency) && maps.Equal(d.profile.Efficiency, p.Efficiency)
}

// load counts, link by link, how many channels cross it.
type load struct {
	cluster *topo.Cluster
	profile *profile.Profile
	count   map[int]int
}

func newLoad(c *topo.Cluster, p *profile.Profile) *load {
	return &load{cluster: c, profile: p, count: map[int]int{}}
}

func (l *load) add(route []int) {
	for _, link := range route {
		l.count[link]++
	}
}

// way returns the slowest of the routes, with the links shared by channels.
func (l *load) way(routes [][]int, hop profile.Hop, channels int) way {
	w := way{hop: hop}
	for _, route := range routes {
		latency := 0.0
		for _, link := range route {
			kind, rate := l.cluster.Link(link)
			latency += l.profile.Latency[kind].Microseconds()
			if kind != topo.LinkNVL && hop == profile.HopNVLink {
				w.hop = profile.HopPCI
			}
			each := float64(l.count[link]) / float64(channels) * 1e6 / (float64(rate) * l.profile.Efficiency[kind])
			w.perByte = max(w.perByte, each)
		}
		w.latency = max(w.latency, latency)
	}
	return w
}

// ringWays goes through the hops that leave the ranks of one node: of the first,
// and of the second where channels are swapped there.
func (d *Predictor) ringWays(c *topo.Cluster, r *search.Rings) ways {
	l := newLoad(c, d.profile)
	var intra, inter [][]int
	for ch := range r.Channels() {
		for rank := range min(d.ranks, 2*d.perNode) {
			next := r.At(ch, r.Index(ch, rank)+1)
			out, in := r.NETs(ch, rank)
			route := c.Route(rank, next, out, in)
			l.add(route)
			if out < 0 {
				intra = append(intra, route)
			} else {
				inter = append(inter, route)
			}
		}
	}
	return ways{intra: l.way(intra, profile.HopNVLink, r.Channels()), inter: l.way(inter, profile.HopNET, r.Channels())}
}

// treeWays goes through the hops up and down at the ranks of the first nodes.
//
// The first chunk of every channel is at the same place of its chain, so that
// what loads a link at a time are the hops from that place.
func (d *Predictor) treeWays(c *topo.Cluster, t *search.Trees) ways {
	up, both := newLoad(c, d.profile), newLoad(c, d.profile)
	var intra, inter [][]int
	places := map[int][][]int{} // the routes within nodes, by place in the chain
	for ch := range t.Channels() {
		for rank := range min(d.ranks, 4*d.perNode) {
			p := t.At(ch, rank)
			if p.Up < 0 {
				continue
			}
			node := rank / d.perNode
			if p.Up/d.perNode != node {
				route := c.Route(rank, p.Up, t.NET(ch), t.NET(ch))
				inter = append(inter, route)
				up.add(route)
				both.add(route)
				both.add(c.Route(p.Up, rank, t.NET(ch), t.NET(ch)))
				continue
			}
			place := 0
			for at := p; at.Up >= 0 && at.Up/d.perNode == node; at = t.At(ch, at.Up) {
				place++
			}
			route := c.Route(rank, p.Up, -1, -1)
			intra, places[place] = append(intra, route), append(places[place], route)
			both.add(route)
			both.add(c.Route(p.Up, rank, -1, -1))
		}
	}
	w := ways{
		bothIntra: both.way(intra, profile.HopNVLink, t.Channels()),
		inter:     up.way(inter, profile.HopNET, t.Channels()), bothInter: both.way(inter, profile.HopNET, t.Channels()),
	}
	w.intra = way{hop: w.bothIntra.hop, latency: w.bothIntra.latency}
	for _, routes := range places {
		alone := newLoad(c, d.profile)
		for _, route := range routes {
			alone.add(route)
		}
		w.intra.perByte = max(w.intra.perByte, alone.way(routes, profile.HopNVLink, t.Channels()).perByte)
	}
	return w
}

func (d *Predictor) nvlsWays(c *topo.Cluster, h *search.Heads) nvlsWays {
	w := nvlsWays{heads: h.Heads()}
	for _, link := range append(c.ToSwitch(0), c.FromSwitch(0)...) {
		kind, rate := c.Link(link)
		w.latency += d.profile.Latency[kind].Microseconds()
		w.link = max(w.link, 1e6/(float64(rate)*d.profile.Efficiency[kind]))
	}
	if c.Nodes > 1 {
		alone, both := newLoad(c, d.profile), newLoad(c, d.profile)
		var up [][]int
		for tree := range 2 {
			for node := range min(c.Nodes, 4) {
				if p := h.At(tree, node); p.Up >= 0 {
					child, parent := node*d.perNode+h.GPU(0), p.Up*d.perNode+h.GPU(0)
					route := c.Route(child, parent, h.NET(0), h.NET(0))
					up = append(up, route)
					alone.add(route)
					both.add(route)
					both.add(c.Route(parent, child, h.NET(0), h.NET(0)))
				}
			}
		}
		w.inter, w.both = alone.way(up, profile.HopNET, 2), both.way(up, profile.HopNET, 2)
	}
	return w
}

var errSingle = errors.New("a single rank has nothing to exchange")

// Predict predicts a task. It fails for what the model does not know.
func (d *Predictor) Predict(t schedule.Task) (Prediction, error) {
	if t.Collective != model.AllReduce {
		return Prediction{}, fmt.Errorf("no model of %v yet: want %v", t.Collective, model.AllReduce)
	}
	if d.ranks == 1 {
		return Prediction{}, errSingle
	}
	t.Ranks, t.Nodes = d.ranks, d.nodes
	var p Prediction
	switch t.Algorithm {
	case model.Ring:
		p = d.predictRing(t)
	case model.Tree:
		p = d.predictTree(t)
	case model.SimpleRing:
		p = d.predictSimpleRing(t)
	case model.RailRing:
		if d.railError != nil {
			return p, d.railError
		}
		rails := *d
		rails.ring = d.rail
		p = rails.predictRing(t)
	case model.OneShot, model.TwoShot:
		switch {
		case d.nodes > 1:
			return p, fmt.Errorf("%v spans one machine, not %d", t.Algorithm, d.nodes)
		case t.Protocol == model.Simple:
			return p, fmt.Errorf("no model of %v over %v yet: want ll or ll128", t.Algorithm, t.Protocol)
		}
		p = d.predictPairs(t)
	default:
		return p, fmt.Errorf("no model of %v yet: want ring, tree, nvls, nvlstree, simplering, railring, oneshot or twoshot", t.Algorithm)
	case model.NVLS, model.NVLSTree:
		if d.nvls.err != nil {
			return p, d.nvls.err
		}
		if (t.Algorithm == model.NVLS) != (d.nodes == 1) {
			return p, fmt.Errorf("%v does not run on %d nodes", t.Algorithm, d.nodes)
		}
		p = d.predictNVLS(t)
	}
	for _, term := range p.terms {
		p.Time += term
	}
	return p, nil
}

// kernel holds the constants of an algorithm over a protocol, in microseconds.
type kernel struct {
	*Predictor
	a                        model.Algorithm
	p                        model.Protocol
	base, overhead, turn     float64
	perByte, ramp, rampBytes float64 // of copying, with all threads
	streams                  bool
	channels                 float64 // in use
}

func (d *Predictor) kernel(t schedule.Task, channels int) kernel {
	c := d.profile
	return kernel{
		Predictor: d, a: t.Algorithm, p: t.Protocol, base: c.Base[t.Algorithm][t.Protocol].Microseconds(),
		overhead: c.Overhead[t.Protocol].Microseconds(), turn: c.Turn[t.Algorithm][t.Protocol].Microseconds(),
		perByte: 1e6 / float64(c.Copy[t.Algorithm][t.Protocol]), ramp: c.Ramp[t.Algorithm][t.Protocol].Microseconds(), rampBytes: float64(profile.RampBytes),
		streams: t.Protocol != model.Simple, channels: float64(channels),
	}
}

// handover returns what passes until the next rank knows of an item.
func (k *kernel) handover(w way) float64 {
	return w.latency + k.profile.Handover[w.hop][k.a][k.p].Microseconds()
}

// copying returns what a share of the block's threads takes for an item.
func (k *kernel) copying(b units.Bytes, share float64) float64 {
	return k.moving(b, share, profile.Streams)
}

// moving is copying in a step that reads and writes the given number of buffers.
func (k *kernel) moving(b units.Bytes, share float64, streams int) float64 {
	return float64(b)*k.perByte/share*float64(streams)/profile.Streams + k.ramp*min(1, float64(b)/k.rampBytes)
}

// wire returns what an item takes on a way that all channels in use share.
func (k *kernel) wire(b units.Bytes, w way) float64 {
	return float64(k.p.Wire(b)) * w.perByte * k.channels
}

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

// predictRing follows a chunk for 2(n-1) hops, of which every k-th is between
// nodes of k ranks, and the last receive; loops come one after the other. All
// ranks are at it in lockstep, so that no step is faster than the busiest
// worker.
func (d *Predictor) predictRing(t schedule.Task) Prediction {
	s := schedule.RingShape(t)
	k := d.kernel(t, s.Channels)
	steps, across := 2*(d.ranks-1), 0
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
		for streams, count := range [...]int{ends, within - 2*ends, ends} {
			latency, busy, item := k.hop(s, slice, tail, d.ring.intra, 2+streams)
			chain += float64(float64(count) * latency)
			pace += float64(float64(count) * max(busy, network))
			data += float64(float64(count) * item)
		}
		last := float64(s.Slices) * k.overhead
		if k.streams || across > 0 { // the data is not where it belongs yet
			last += k.moving(slice, 1, 2)
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

// chain is what trees and simple rings are: chunks go up to a root, where the
// sum begins its way down.
type chain struct {
	schedule.Shape
	up, down float64 // the shares of the block's threads
	// within and between are the hops up inside nodes and between them.
	within, between int
	// busiest is how many buffers the busiest worker reads and writes.
	busiest int
	ways
}

// predictTree predicts double binary trees: a chain in each node, a tree between
// nodes.
func (d *Predictor) predictTree(t schedule.Task) Prediction {
	c := chain{Shape: schedule.TreeShape(t), up: .5, down: .5, within: d.perNode - 1, ways: d.tree}
	if t.Protocol != model.Simple {
		c.up, c.down = .7, .3
	}
	if d.nodes > 1 {
		c.between = bits.Len(uint(d.nodes - 1))
	}
	// The busiest worker passes on what it keeps: to the next of its node and, as
	// the head of an inner node, to one or two nodes more.
	c.busiest = 3 + min(2, max(0, d.nodes-2))
	if d.ranks == 2 {
		c.busiest = 2
	}
	return d.predictChain(t, c)
}

// predictSimpleRing predicts rings that pass whole buffers: a chain over all
// ranks, whose links carry both directions the same way.
func (d *Predictor) predictSimpleRing(t schedule.Task) Prediction {
	c := chain{Shape: schedule.PairsShape(t), up: .5, down: .5, between: d.nodes - 1, busiest: 3, ways: d.ring}
	c.within = d.ranks - 1 - c.between
	c.bothIntra, c.bothInter = c.intra, c.inter
	if d.ranks > 2 {
		c.bothIntra.perByte *= 2
		c.bothInter.perByte *= 2
	} else {
		c.busiest = 2
	}
	return d.predictChain(t, c)
}

// predictChain follows the first chunk up to the root and down again, and the
// others behind it at the pace of the slowest worker.
func (d *Predictor) predictChain(t schedule.Task, c chain) Prediction {
	s := c.Shape
	k := d.kernel(t, s.Channels)
	first := s.Chunk
	if s.Loops == 1 {
		first = s.Last
	}
	up, down := c.up, c.down
	step := func(share float64, streams int, w way) (whole, data float64) {
		copying, wire, h := k.moving(first, share, streams), k.wire(first, w), k.handover(w)
		switch {
		case w.hop == profile.HopNET:
			return k.overhead + copying + wire + h, copying + wire
		case k.streams:
			return k.overhead + h, 0
		default:
			return k.overhead + max(copying, wire) + h, max(copying, wire)
		}
	}
	var whole, data float64
	add := func(n int, share float64, streams int, w way) {
		if n > 0 {
			one, item := step(share, streams, w)
			whole += float64(float64(n) * one)
			data += float64(float64(n) * item)
		}
	}
	// A leaf sends what it has, the others reduce it with theirs; the root keeps
	// and sends the sum with all threads; the others keep it and pass it on.
	within, between := c.within, c.between
	if within > 0 {
		add(1, up, 2, c.intra)
		within--
	} else {
		add(1, up, 2, c.inter)
		between--
	}
	add(within, up, 3, c.intra)
	add(between, up, 3, c.inter)
	within, between = c.within, c.between
	if between > 0 {
		add(1, 1, 4, c.inter)
		between--
	} else {
		add(1, 1, 4, c.intra)
		within--
	}
	add(between, down, 3, c.inter)
	add(within, down, 3, c.intra)
	// How far chunks follow each other when all workers are at it: the NIC sends
	// beside them, what copies does not.
	pace := func(b units.Bytes, intra, inter way) float64 {
		return max(k.overhead+k.turn+max(k.moving(b, min(up, down), c.busiest), k.wire(b, intra)), k.wire(b, inter))
	}
	both := func(b units.Bytes) float64 { return pace(b, c.bothIntra, c.bothInter) }
	whole += k.overhead
	if k.streams { // the last reader comes to the end with the slowest writer
		// The way down begins when the way up is half done, more or less.
		item := (pace(first, c.intra, c.inter)+both(first))/2 - k.overhead - k.turn
		data += item
		whole += item
	}
	p := Prediction{limit: d.limitOf(&k, ways{intra: c.bothIntra, inter: c.bothInter}, first)}
	p.terms = [4]float64{k.base, whole - data, data, 0}
	if s.Loops > 1 {
		p.terms[3] = both(s.Last)
	}
	if s.Loops > 2 { // until the first comes back down, links carry one direction
		p.terms[3] += pace(s.Chunk, c.intra, c.inter) + float64(s.Loops-3)*both(s.Chunk)
	}
	return p
}

// predictNVLS follows the first loop through scatter, reduction and multicast,
// and gather, and the others behind it at the pace of the slowest.
func (d *Predictor) predictNVLS(t schedule.Task) Prediction {
	s := schedule.NVLSShape(t, d.nvls.heads)
	k := d.kernel(t, s.Channels)
	heads := float64(d.nvls.heads)
	local := 1e6 / float64(d.profile.LocalCopy)
	warps := [4]float64{6, 5, 5, 4} // of 16: scatter, gather, reduce, broadcast
	if d.nodes == 1 {
		warps = [4]float64{8, 7, 5, 0}
		if d.ranks <= 6 {
			warps = [4]float64{7, 6, 7, 0}
		}
	}
	h := d.nvls.latency + d.profile.Handover[profile.HopNVLink][t.Algorithm][t.Protocol].Microseconds()
	stage := func(b units.Bytes, n int) float64 {
		switch share := warps[n] / 16; n {
		case 0, 1:
			return float64(b) * heads * local / share
		default:
			// A GPU's link carries every head's share once in each direction, and its
			// own twice.
			link := float64(b) * (heads + 1) * d.nvls.link * k.channels / d.profile.Multimem
			return max(float64(b)*k.perByte/share, link)
		}
	}
	first := s.Chunk
	if s.Loops == 1 {
		first = s.Last
	}
	whole := stage(first, 0) + stage(first, 2) + stage(first, 1)
	hops := 3*k.overhead + 2*h
	busy := func(b units.Bytes) float64 { return max(stage(b, 0), stage(b, 1), stage(b, 2)) }
	if d.nodes > 1 {
		levels := 2 * (bits.Len(uint(d.nodes - 1)))
		net := k.copying(first, warps[2]/16) + k.wire(first, d.nvls.inter)
		hops += float64(levels) * (k.overhead + k.handover(d.nvls.inter))
		whole += float64(levels) * net
		one := busy
		busy = func(b units.Bytes) float64 { return max(one(b), k.wire(b, d.nvls.both)) }
	}
	p := Prediction{limit: "the slowest of scatter, switch, network and gather"}
	p.terms = [4]float64{k.base, hops, whole, 0}
	if s.Loops > 1 {
		p.terms[3] = float64(s.Loops-1)*(busy(s.Chunk)+k.overhead) - busy(s.Chunk) + busy(s.Last)
	}
	return p
}
