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
	best  *try
	steps int // left
}

// Orders in which the GPUs of a channel may be gone through.
type order int

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
	w.channels = append(w.channels, channel{gpus: make([]int, len(w.gpus)), in: -1, out: -1})
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
		case w.collNet && !w.Nodes[w.nets[net]].Coll, w.netLeft[net] < bw:
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
	gpu := w.localGPU(net)
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
	own := w.localGPU(net)
	if own >= 0 {
		w.enter(net, own, to, anyOrder)
	}
	for _, node := range w.NearestGPUs(w.nets[net]) {
		if gpu := slices.Index(w.gpus, node); gpu != own {
			w.enter(net, gpu, to, anyOrder)
		}
	}
}

// enter takes the path from a NET, or from nowhere (-1), to the first GPU of a
// channel.
func (w *walk) enter(net, gpu int, to goals, o order) {
	if net < 0 {
		w.visit(gpu, 0, to, o)
		return
	}
	w.along(w.nets[net], w.gpus[gpu], func() { w.visit(gpu, 0, to, o) })
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
	ch := &w.channels[len(w.channels)-1]
	ch.gpus[place] = gpu
	switch {
	case place == to.net:
		w.leave(gpu, place, to, o)
	case w.pattern == NVLSPattern:
		w.multicast(gpu)
	case w.pattern == CollNetDirect:
		w.scatter(gpu)
	case place < len(w.gpus)-1:
		for _, next := range w.following(gpu, place, to, o) {
			w.along(w.gpus[gpu], w.gpus[next], func() { w.visit(next, place+1, to, o) })
		}
	case place == to.first:
		first := ch.gpus[0]
		w.along(w.gpus[gpu], w.gpus[first], func() { w.visit(first, place+1, goals{to.net, -1}, o) })
	default:
		w.visit(gpu, len(w.gpus), goals{-1, -1}, o)
	}
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
		case w.crossNic == 0 && !w.sameCable(net, in):
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
		w.alongAt(w.gpus[gpu], w.nets[net], bw, 1, func() {
			w.channels[c].out = net
			w.visit(gpu, place, next, o)
		})
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
	return w.pattern == best.pattern && w.crossNic == best.crossNic && w.hops < best.hops
}

// along takes the path from one node to another at the speed of the setting, if
// it may and can be taken, does what is to be done there, and undoes it.
func (w *walk) along(from, to int, do func()) {
	bw := w.bwInter
	if w.intra(from, to) {
		bw = w.bwIntra
	}
	w.alongAt(from, to, bw, 1, do)
}

func (w *walk) alongAt(from, to int, bw, times float32, do func()) {
	if w.follow(from, to, bw, times) {
		do()
		w.follow(from, to, bw, -times)
	}
}

func (w *walk) intra(from, to int) bool {
	inside := func(node int) bool { t := w.Nodes[node].Type; return t == topo.GPU || t == topo.NVS }
	return inside(from) && inside(to)
}

// follow charges a path with so many times bw, if its type is allowed and there
// is enough left. It reports whether that was so (NCCL 2.28.3, search.cc,
// ncclTopoFollowPath). The type matters only for a single time.
func (w *walk) follow(from, to int, bw, times float32) bool {
	path := w.Path(from, to)
	allowed := w.typeInter
	if w.intra(from, to) {
		allowed = w.typeIntra
	}
	switch {
	case path.Type >= topo.PathDIS:
		return false
	case times == 1 && path.Type > allowed:
		return false
	case times == 1 && w.pattern.tree() && w.Path(to, from).Type > allowed:
		return false
	}
	bw = float32(bw * times)
	if done := w.take(path, from, len(path.Links), bw); done < len(path.Links) {
		w.take(path, from, done, -bw)
		return false
	}
	w.hops = int(float32(w.hops) + float32(times*float32(len(path.Links))))
	return true
}

// following lists the GPUs that may come after one, those to be tried first in
// front.
func (w *walk) following(gpu, place int, to goals, o order) []int {
	switch o {
	case inTurn:
		return []int{place + 1}
	case likeBefore:
		return w.channels[len(w.channels)-2].gpus[place+1 : place+2]
	}
	next := w.ranked(gpu, place, to)
	if w.NVS >= 0 {
		return w.neighbours(gpu, next)
	}
	return next
}

// candidate is a GPU that may come next, with what speaks for it.
type candidate struct {
	gpu                   int
	netBw, pciBw, netHops int
	bw, hops, distance    int
}

// ranked sorts the GPUs that are still to come (NCCL 2.28.3, search.cc,
// ncclTopoSearchNextGpuSort). As long as the way back to the NET is open, those
// near the channel's NET go first; if the others are all alike, and it is not for
// the next one to find that way, they go in reverse.
func (w *walk) ranked(gpu, place int, to goals) []int {
	k := len(w.gpus)
	ch := w.channels[len(w.channels)-1]
	var list []candidate
	for i := 1; i < k; i++ {
		g := (gpu + i) % k
		path := w.Path(w.gpus[gpu], w.gpus[g])
		if len(path.Links) == 0 || slices.Contains(ch.gpus[:place+1], g) {
			continue
		}
		c := candidate{gpu: g, distance: i, bw: int(gbps(path.Rate)), hops: len(path.Links)}
		if to.net >= 0 {
			in := w.Path(w.nets[ch.in], w.gpus[g])
			c.netBw, c.pciBw, c.netHops = int(gbps(in.Rate)), w.pciLeft(w.gpus[g]), len(in.Links)
		}
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b candidate) int {
		return cmp.Or(
			cmp.Compare(b.netBw, a.netBw), cmp.Compare(b.pciBw, a.pciBw), cmp.Compare(a.netHops, b.netHops),
			cmp.Compare(b.bw, a.bw), cmp.Compare(a.hops, b.hops), cmp.Compare(a.distance, b.distance))
	})
	next := make([]int, len(list))
	alike := true
	for i, c := range list {
		next[i] = c.gpu
		alike = alike && c.bw == list[0].bw && c.hops == list[0].hops
	}
	if alike && to.net >= 0 && to.net != place+1 {
		slices.Reverse(next)
	}
	return next
}

// neighbours leaves of the GPUs that may come next those before and after the
// given one: an NVSwitch does best with few pairs.
func (w *walk) neighbours(gpu int, next []int) []int {
	k := len(w.gpus)
	before, after := (gpu+k-1)%k, (gpu+1)%k
	var wanted []int
	switch w.pattern {
	case RingPattern:
		wanted = []int{before, after}
	case SplitTree, BalancedTree:
		wanted = []int{after, before}
	default:
		wanted = []int{after}
	}
	if before == after {
		wanted = wanted[:1]
	}
	return slices.DeleteFunc(wanted, func(g int) bool { return !slices.Contains(next, g) })
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
	down := w.all(func(g int, sign float32) bool { return w.follow(w.NVS, w.gpus[g], w.bwIntra, sign*times(g)) })
	up := w.all(func(g int, sign float32) bool { return w.follow(w.gpus[g], w.NVS, w.bwIntra, sign*times(g)) })
	down(func() { up(func() { w.visit(-1, len(w.gpus), goals{-1, -1}, anyOrder) }) })
}

// scatter charges what goes between a head of CollNetDirect and every other GPU,
// and lists them behind it (NCCL 2.28.3, search.cc, ncclTopoSearchTryCollnetDirect).
func (w *walk) scatter(head int) {
	share := 1 / float32(len(w.gpus)-1)
	out := w.all(func(g int, sign float32) bool { return w.follow(w.gpus[head], w.gpus[g], w.bwIntra, sign*share) })
	in := w.all(func(g int, sign float32) bool { return w.follow(w.gpus[g], w.gpus[head], w.bwIntra, sign*share) })
	out(func() {
		in(func() {
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

// all charges something for every GPU, and if that works out does what is to be
// done before it gives all back.
func (w *walk) all(charge func(gpu int, sign float32) bool) func(do func()) {
	return func(do func()) {
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
}
