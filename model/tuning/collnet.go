package tuning

import (
	"tutti/model/profile"
	"tutti/model/schedule"
	"tutti/model/units"
	"tutti/topo"
	"tutti/topo/search"
)

// collNetWays are those of algorithms whose sums the network makes: within the
// nodes, and up to the switch that joins them and down again.
type collNetWays struct {
	heads  int
	direct way
	chain  way
	intra  ways
}

// collNetWays measures them; there are none where the graphs have none.
func (d *Predictor) collNetWays(c *topo.Cluster, g search.Graphs) (w collNetWays) {
	if d.nodes == 1 || len(g.CollNetChain.Channels) == 0 || len(g.CollNetDirect.Channels) == 0 {
		return w
	}
	through := func(rank, net int) []int { return append(c.ToRoot(rank, net), c.FromRoot(rank, net)...) }
	heads, direct := search.NewHeads(c, g.CollNetDirect), newLoad(c, d.profile, profile.HopNET)
	w.heads = heads.Heads()
	for h := range w.heads {
		direct.add(through(heads.Rank(0, h), heads.NET(0, h)))
	}
	direct.channel() // every channel goes through every head
	chains, chain := search.NewTrees(c, g.CollNetChain), newLoad(c, d.profile, profile.HopNET)
	w.intra = d.treeWays(c, chains)
	for ch := range chains.Channels() {
		for rank := range d.perNode {
			if up := chains.At(ch, rank).Up; up < 0 || up/d.perNode != 0 {
				chain.add(through(rank, chains.NET(ch, rank)))
			}
		}
		chain.channel()
	}
	w.direct, w.chain = direct.way, chain.way
	return w
}

// predictCollNetChain predicts chains to one rank of each node, whose sums the
// network adds up and hands back.
func (d *Predictor) predictCollNetChain(t schedule.Task) Prediction {
	s := schedule.RoundsShape(t)
	k := d.kernel(t, &s)
	intra := &d.collNet.intra.intra
	within := d.perNode - 1
	begins := min(1, within)
	return k.pipe(&s, []leg{
		{begins, share, k.sends(), intra, false}, {within - begins, share, k.reduces(), intra, false},
		{1, share, k.reduces(), &d.collNet.chain, false}, {within, share, k.passes(), intra, false},
	}, leg{share: share, buffers: k.keeps(), last: true})
}

// predictCollNet predicts shares for the heads of each node, which the network
// adds up and hands back.
func (d *Predictor) predictCollNet(t schedule.Task) Prediction {
	heads := d.collNet.heads
	s := schedule.CollNetShape(t, heads)
	k := d.kernel(t, &s)
	const share = .25
	others, local := units.Bytes(heads-1), float64(d.perNode)
	inside := func(b units.Bytes) float64 { return k.wire(others*b, &d.rounds.intra) }
	stages := func(b units.Bytes) (scatter, reduce, network, broadcast, gather float64) {
		return max(k.moving(others*b, share, 3), inside(b)), k.moving(b, share, local+1+k.input),
			k.wire(b, &d.collNet.direct), max(k.moving(b, share, local+1), inside(b)), k.moving(others*b, share, 3)
	}
	first := s.Chunk
	if s.Loops == 1 {
		first = s.Last
	}
	scatter, reduce, network, broadcast, gather := stages(first)
	data := scatter + reduce + network + broadcast + gather
	p := Prediction{limit: "the slowest of scatter, reduction, network, broadcast and gather"}
	hops := 2*k.overhead + k.handover(&d.collNet.direct)
	if d.perNode > 1 { // there are others to scatter to, and to gather from
		hops += 2 * (k.overhead + k.handover(&d.rounds.intra))
	}
	p.terms = [4]float64{k.base, hops, data, 0}
	pace := func(b units.Bytes) float64 {
		scatter, reduce, network, broadcast, gather := stages(b)
		return max(k.overhead+k.turn+max(scatter, reduce, broadcast, gather), network, 2*inside(b))
	}
	if s.Loops > 1 {
		p.terms[3] = float64(float64(s.Loops-2)*pace(s.Chunk)) + pace(s.Last)
	}
	return p
}
