package search

import (
	"cmp"
	"slices"

	"tutti/topo"
)

// perfect is what stands for the steps left when a search has found as many
// channels as were asked for.
const perfect = -1

// walk is the search with one setting: depth first through the GPUs of a channel,
// then on to the next channel. All that a step takes from the links it gives back
// when it is undone.
type walk struct {
	*space
	try
	best    *try
	steps   int         // left
	ranking []candidate // of all GPUs on the way, one after the other
}

// order is how the GPUs of a channel are gone through.
type order int

// The orders.
const (
	anyOrder   order = iota
	inTurn           // as NCCL counts them
	likeBefore       // as in the channel before
)

// goals are the places of a channel's order from which it has to come back to a
// NET, or to its first GPU; -1 for none.
type goals struct{ net, first int }

// goals of a pattern (NCCL 2.28.3, search.cc, ncclTopoSearchParams).
func (w *walk) goals() goals {
	g := goals{net: 0, first: -1}
	switch {
	case w.pattern == RingPattern:
		g.net = len(w.gpus) - 1
	case w.pattern == SplitTree:
		g.net = 1
	}
	if len(w.nets) == 0 {
		g.first, g.net = g.net, -1
		if w.pattern != RingPattern {
			g.first = -1
		}
	}
	return g
}

// next starts a further channel (NCCL 2.28.3, search.cc, ncclTopoSearchRec).
func (w *walk) next() {
	c := len(w.channels)
	w.channels = w.channels[:c+1]
	w.start(c)
	w.channels = w.channels[:c]
}

func (w *walk) start(c int) {
	to := w.goals()
	switch {
	case len(w.nets) > 0:
		w.fromNets(c, to)
		return
	case w.pattern == NVLSPattern: // channel c has GPU c as its head
		w.enter(-1, c, to, anyOrder)
		return
	case c == 0:
		w.enter(-1, 0, to, inTurn)
	default:
		w.enter(-1, w.channels[c-1].gpus[0], to, likeBefore)
	}
	if c == 0 || !w.same {
		for g := range w.gpus {
			w.enter(-1, g, to, anyOrder)
		}
	}
}

// fromNets starts a channel at each NET in turn (NCCL 2.28.3, search.cc,
// ncclTopoSearchRecNet). Only whole GB/s are taken from the NETs, as in NCCL.
func (w *walk) fromNets(c int, to goals) {
	bw := float32(int(w.bwInter))
	nets := w.netsFor(-1, w.typeInter)
	heads := w.pattern == NVLSPattern || w.pattern == CollNetDirect
	for i := range nets {
		net := nets[(c+i)%len(nets)]
		switch {
		case w.collNet && !w.offloads[net], w.netLeft[net] < bw:
			continue
		case w.pattern == RingPattern && w.crossNic == 2 && c%2 == 1 && net != w.channels[c-1].out:
			continue
		}
		w.channels[c].in, w.latency = net, net
		w.takeNet(net, bw)
		done := false
		switch {
		case heads:
			done = w.head(c, net, len(nets), to)
		case c > 0 && w.same:
			w.enter(net, w.channels[c-1].gpus[0], to, likeBefore)
		default:
			w.near(c, net, to)
		}
		w.takeNet(net, -bw)
		if done {
			return
		}
	}
}

// head makes the GPU that has the NET as its own the head of a channel, unless it
// is one already. It reports whether it was tried.
func (w *walk) head(c, net, nets int, to goals) bool {
	gpu := w.ownGPU[net]
	if c >= nets || gpu < 0 || slices.ContainsFunc(w.channels[:c], func(ch channel) bool { return ch.gpus[0] == gpu }) {
		return false
	}
	w.enter(net, gpu, to, anyOrder)
	return true
}

// near enters by the GPUs nearest to a NET, first of all by that which has it as
// its own. Where there is no NVSwitch, a short look at the GPUs in order comes
// before, to have something to compare with.
func (w *walk) near(c, net int, to goals) {
	if c == 0 && w.NVS < 0 {
		steps := w.steps
		w.steps = stepsInOrder
		w.enter(net, 0, to, inTurn)
		if w.steps != perfect {
			w.steps = steps
		}
	}
	own := w.ownGPU[net]
	if own >= 0 {
		w.enter(net, own, to, anyOrder)
	}
	for _, gpu := range w.nearGPUs[net] {
		if gpu != own {
			w.enter(net, gpu, to, anyOrder)
		}
	}
}

// enter takes the path from a NET, or from nowhere (-1), to the first GPU of a
// channel.
func (w *walk) enter(net, gpu int, to goals, o order) {
	if net < 0 {
		w.visit(gpu, 0, to, o)
	} else if r := w.route(w.net(net), gpu); w.follow(r, w.bwInter, 1) {
		w.visit(gpu, 0, to, o)
		w.follow(r, w.bwInter, -1)
	}
}

// visit puts a GPU in the given place of the last channel and goes on from there
// (NCCL 2.28.3, search.cc, ncclTopoSearchRecGpu).
func (w *walk) visit(gpu, place int, to goals, o order) {
	if w.steps <= 0 {
		return
	}
	w.steps--
	if place == len(w.gpus) {
		w.complete()
		return
	}
	c := len(w.channels) - 1
	gpus := w.channels[c].gpus
	gpus[place] = gpu
	switch {
	case place == to.net:
		w.leave(gpu, place, to, o)
	case w.pattern == NVLSPattern:
		w.multicast(gpu)
	case w.pattern == CollNetDirect:
		w.scatter(gpu)
	case place < len(w.gpus)-1:
		switch {
		case o == inTurn:
			w.goOn(gpu, place+1, place+1, to, o)
		case o == likeBefore:
			w.goOn(gpu, w.channels[c-1].gpus[place+1], place+1, to, o)
		case w.NVS >= 0:
			for _, next := range w.neighbours(gpu) {
				if next >= 0 && !slices.Contains(gpus[:place+1], next) {
					w.goOn(gpu, next, place+1, to, o)
				}
			}
		default:
			w.goAnywhere(gpu, place+1, to)
		}
	case place == to.first:
		w.goOn(gpu, gpus[0], place+1, goals{to.net, -1}, o)
	default:
		w.visit(gpu, len(w.gpus), goals{-1, -1}, o)
	}
}

// goOn takes the path from one GPU to another, which comes in the given place.
func (w *walk) goOn(gpu, next, place int, to goals, o order) {
	if r := w.route(gpu, next); w.follow(r, w.bwIntra, 1) {
		w.visit(next, place, to, o)
		w.follow(r, w.bwIntra, -1)
	}
}

// goAnywhere tries all GPUs that may come in the given place.
func (w *walk) goAnywhere(gpu, place int, to goals) {
	first := len(w.ranking)
	w.sortNext(gpu, place, to)
	for i := first; i < len(w.ranking); i++ { // it grows and shrinks meanwhile
		w.goOn(gpu, w.ranking[i].gpu, place, to, anyOrder)
	}
	w.ranking = w.ranking[:first]
}

// leave takes the path from a GPU to a NET, by which the channel leaves the
// machine. Balanced trees do so at two GPUs, with half of the traffic each.
func (w *walk) leave(gpu, place int, to goals, o order) {
	c := len(w.channels) - 1
	in := w.channels[c].in
	next := goals{-1, to.first}
	for _, net := range w.netsFor(gpu, w.typeInter) {
		switch {
		case w.pattern == TreePattern && net != in: // trees are symmetric
			continue
		case w.pattern == RingPattern && w.crossNic == 2:
			if c%2 == 1 && net != w.channels[c-1].in {
				continue
			}
		case w.crossNic == 0 && w.cable[net] != w.cable[in]:
			continue
		}
		bw := w.bwInter
		if w.pattern == BalancedTree {
			if place == 0 {
				next.net = 1
			} else if net != w.channels[c].out {
				continue
			}
			bw /= 2
		}
		if r := w.route(gpu, w.net(net)); w.follow(r, bw, 1) {
			w.channels[c].out = net
			w.visit(gpu, place, next, o)
			w.follow(r, bw, -1)
		}
	}
}

// complete compares what there is with the best solution, and goes on to the next
// channel.
func (w *walk) complete() {
	if w.better() {
		w.best = w.keep()
		if len(w.channels) == w.max {
			w.steps = perfect
		}
	}
	if len(w.channels) < w.max {
		w.next()
	}
}

// better tells whether a solution beats the best one: by bandwidth and then by
// hops. Heads of NVLS are the better the more there are (NCCL 2.28.3, search.cc,
// ncclTopoCompareGraphs).
func (w *walk) better() bool {
	n, best := len(w.channels), w.best
	switch {
	case n < w.min:
		return false
	case w.pattern == NVLSPattern:
		return n > len(best.channels) && n <= len(w.gpus) || w.inter() > best.inter()
	case w.bw() != best.bw():
		return w.bw() > best.bw()
	}
	return w.pattern == best.pattern && w.crossNic == best.crossNic && w.length < best.length
}

// follow charges a route with so many times bw, if its type is allowed and there
// is enough left. It reports whether that was so (NCCL 2.28.3, search.cc,
// ncclTopoFollowPath). The type matters only for a single time.
func (w *walk) follow(r *route, bw, times float32) bool {
	allowed := w.typeInter
	if r.intra {
		allowed = w.typeIntra
	}
	switch {
	case r.kind >= topo.PathDIS:
		return false
	case times == 1 && (r.kind > allowed || w.pattern.tree() && r.backKind > allowed):
		return false
	}
	bw = float32(bw * times)
	if done := w.take(r, r.links, bw); done < len(r.links) {
		w.take(r, r.links[:done], -bw)
		return false
	}
	w.length = int(float32(w.length) + float32(times*float32(len(r.links))))
	return true
}

// neighbours are the GPUs before and after one, to be tried in this order; -1
// stands for none. An NVSwitch does best with few pairs.
func (w *walk) neighbours(gpu int) [2]int {
	k := len(w.gpus)
	before, after := (gpu+k-1)%k, (gpu+1)%k
	switch {
	case before == after:
		return [2]int{after, -1}
	case w.pattern == RingPattern:
		return [2]int{before, after}
	case w.pattern == SplitTree || w.pattern == BalancedTree:
		return [2]int{after, before}
	default:
		return [2]int{after, -1}
	}
}

// candidate is a GPU that may come next, with what speaks for it.
type candidate struct {
	gpu                   int
	netBw, pciBw, netHops int
	bw, hops, distance    int
}

// sortNext appends to the ranking the GPUs that may come in the given place, those
// to be tried first in front (NCCL 2.28.3, search.cc, ncclTopoSearchNextGpuSort).
// As long as the way back to the NET is open, those near the channel's NET go
// first; if the others are all alike, and it is not for the next one to find that
// way, they go in reverse.
func (w *walk) sortNext(gpu, place int, to goals) {
	k := len(w.gpus)
	ch := &w.channels[len(w.channels)-1]
	first := len(w.ranking)
	alike := true
	for i := 1; i < k; i++ {
		g := (gpu + i) % k
		r := w.route(gpu, g)
		if len(r.links) == 0 || slices.Contains(ch.gpus[:place], g) {
			continue
		}
		c := candidate{gpu: g, distance: i, bw: r.bw, hops: len(r.links)}
		if to.net >= 0 {
			in := w.route(w.net(ch.in), g)
			c.netBw, c.pciBw, c.netHops = in.bw, w.pciLeft(g), len(in.links)
		}
		w.ranking = append(w.ranking, c)
		alike = alike && c.bw == w.ranking[first].bw && c.hops == w.ranking[first].hops
	}
	list := w.ranking[first:]
	slices.SortFunc(list, func(a, b candidate) int {
		return cmp.Or(
			b.netBw-a.netBw, b.pciBw-a.pciBw, a.netHops-b.netHops,
			b.bw-a.bw, a.hops-b.hops, a.distance-b.distance)
	})
	if alike && to.net >= 0 && to.net != place {
		slices.Reverse(list)
	}
}

// multicast charges the switch with what goes to and from a head of NVLS: the
// share of every GPU, and its own twice (NCCL 2.28.3, search.cc,
// ncclTopoSearchTryNvls).
func (w *walk) multicast(head int) {
	times := func(g int) float32 {
		if g == head {
			return 2
		}
		return 1
	}
	down := func(g int, sign float32) bool { return w.follow(w.route(w.nvs(), g), w.bwIntra, sign*times(g)) }
	up := func(g int, sign float32) bool { return w.follow(w.route(g, w.nvs()), w.bwIntra, sign*times(g)) }
	w.forAll(down, func() {
		w.forAll(up, func() { w.visit(-1, len(w.gpus), goals{-1, -1}, anyOrder) })
	})
}

// scatter charges what goes between a head of CollNetDirect and every other GPU,
// and lists them behind it (NCCL 2.28.3, search.cc, ncclTopoSearchTryCollnetDirect).
func (w *walk) scatter(head int) {
	share := 1 / float32(len(w.gpus)-1)
	out := func(g int, sign float32) bool { return w.follow(w.route(head, g), w.bwIntra, sign*share) }
	in := func(g int, sign float32) bool { return w.follow(w.route(g, head), w.bwIntra, sign*share) }
	w.forAll(out, func() {
		w.forAll(in, func() {
			others := w.channels[len(w.channels)-1].gpus[1:1]
			for g := range w.gpus {
				if g != head {
					others = append(others, g)
				}
			}
			w.visit(-1, len(w.gpus), goals{-1, -1}, anyOrder)
		})
	})
}

// forAll charges something for every GPU, and if that works out does what is to
// be done before it gives all back.
func (w *walk) forAll(charge func(gpu int, sign float32) bool, do func()) {
	done := 0
	for done < len(w.gpus) && charge(done, 1) {
		done++
	}
	if done == len(w.gpus) {
		do()
	}
	for done--; done >= 0; done-- {
		charge(done, -1)
	}
}
