package tuning

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"tutti/model"
	"tutti/model/profile"
	"tutti/model/schedule"
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
	whole bool // what a kernel takes in all was measured: there are the ends of the call, and the rest
}

// Terms tells what the time is made of, in the order of a call: the terms add up
// to it.
func (p Prediction) Terms() []Term {
	if p.whole {
		return []Term{{"launch, waits and end of the kernel", p.terms[0]}, {p.limit, p.terms[3]}}
	}
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
	ranks, nodes, perNode    int
	profile                  *profile.Profile
	algorithms               []model.Algorithm // to choose from
	kernels                  bool              // tutti's own are to choose from, too
	backToBack               bool
	ring, rail, tree, simple ways
	depth                    [2]reach // of both trees
	cast                     func() *castWays
	rounds                   ways // from every rank to one of its node, or to its like in another
	crossing                 way  // to one of another place in another node, from one rank of each
	pairs                    way  // from a rank to each other of its node
	railError                error
	nvls                     nvlsWays
	collNet                  collNetWays
	others                   []*Predictor // of a mixture's other machines
	uneven                   string       // what these differ in
}

// NewPredictor measures the ways that the graphs of a cluster take. A mixed
// cluster counts as the one that would be slowest if all machines were of one of
// its kinds, with the channels that all have agreed on.
func NewPredictor(c *topo.Cluster, g search.Graphs, p *profile.Profile) *Predictor {
	var all *Predictor
	for kind := range c.Machines() {
		d := newPredictor(c.AllOf(kind), g.Of(kind), p)
		d.ranks, d.uneven = c.Ranks(), c.Differs()
		if all == nil {
			all = d
		} else {
			all.others = append(all.others, d)
		}
	}
	return all
}

// newPredictor is [NewPredictor] for equal machines.
func newPredictor(c *topo.Cluster, g search.Graphs, p *profile.Profile) *Predictor {
	d := &Predictor{ranks: c.Ranks(), nodes: c.Nodes, perNode: c.RanksPerNode(), profile: p, algorithms: model.Algorithms(), kernels: c.Machine.NVS >= 0}
	if d.ranks == 1 {
		return d
	}
	d.ring = d.ringWays(c, search.NewRings(c, g.Ring))
	d.simple = d.ring
	if d.ranks > 2 { // chunks go up and down in the same direction
		d.simple.intra, d.simple.inter = d.ring.intra.times(2), d.ring.inter.times(2)
	}
	rails, err := search.RailRings(c)
	if d.railError = err; err == nil {
		d.rail = d.ringWays(c, search.NewRings(c, rails))
	}
	if d.nodes == 1 {
		d.pairs = d.ring.intra
	}
	d.rounds, d.crossing = d.roundWays(c)
	trees := search.NewTrees(c, g.Tree)
	d.tree = d.treeWays(c, trees)
	d.cast = sync.OnceValue(func() *castWays { return d.castWays(c, trees) }) // which are long to find
	for i, ch := range []int{0, trees.Twin(0)} {
		d.depth[i] = newReach(trees, ch, top(trees, ch), d.perNode)
	}
	d.collNet = d.collNetWays(c, g)
	d.nvls.err = g.NVLSError
	if g.NVLSError == nil && len(g.NVLS.Channels) > 0 {
		d.nvls = d.nvlsWays(c, search.NewHeads(c, g.NVLS))
	}
	return d
}

// BackToBack returns the model of calls that are issued one behind the other, as
// benchmarks do: it tells how far they follow each other. Where every rank waits for
// all others that is what a call takes. In Broadcast and Reduce no rank waits for those
// behind it: all are at work on a call of their own, and the busiest counts.
func (d *Predictor) BackToBack() *Predictor {
	return d.each(func(c *Predictor) { c.backToBack = true })
}

// each returns a copy with a change to it and to those of a mixture's other machines.
func (d *Predictor) each(change func(*Predictor)) *Predictor {
	c := *d
	change(&c)
	c.others = nil
	for _, other := range d.others {
		c.others = append(c.others, other.each(change))
	}
	return &c
}

// With returns the model with the constants of another profile for kernels and
// handovers; links keep theirs. It takes no time, so that a fit can try many.
func (d *Predictor) With(p *profile.Profile) *Predictor {
	return d.each(func(c *Predictor) { c.profile = p })
}

// SameLinks tells whether a profile has the same constants for links.
func (d *Predictor) SameLinks(p *profile.Profile) bool {
	return maps.Equal(d.profile.Latency, p.Latency) && maps.Equal(d.profile.Efficiency, p.Efficiency)
}

var errSingle = errors.New("a single rank has nothing to exchange")

// Predict predicts a task. It fails for what does not run on the cluster and what
// the model does not know.
func (d *Predictor) Predict(t schedule.Task) (Prediction, error) {
	if d.ranks == 1 {
		return Prediction{}, errSingle
	}
	t.Ranks, t.Nodes = d.ranks, d.nodes
	t.Count, t.Channels = max(1, t.Count), max(1, t.Channels) // nothing takes as long as one element
	p, err := d.predict(t)
	if err != nil {
		return Prediction{}, err
	}
	p.Time = p.sum()
	for _, other := range d.others {
		q, err := other.Predict(t)
		if err != nil {
			return Prediction{}, err
		}
		if q.Time > p.Time {
			p = q
		}
	}
	return p, nil
}

// sum returns the time that the terms add up to.
func (p *Prediction) sum() (time float64) {
	for _, term := range p.terms {
		time += term
	}
	return time
}

func (d *Predictor) predict(t schedule.Task) (p Prediction, err error) {
	if d.uneven != "" && slices.Contains([]model.Algorithm{model.RailRing, model.Hierarchical, model.CollNet, model.CollNetChain}, t.Algorithm) {
		return p, fmt.Errorf("%v wants machines that are alike, and %s", t.Algorithm, d.uneven)
	}
	switch t.Algorithm {
	case model.Ring, model.RailRing:
		on := d
		if t.Algorithm == model.RailRing {
			if d.railError != nil {
				return p, d.railError
			}
			rails := *d
			rails.ring = d.rail
			on = &rails
		}
		switch t.Collective {
		case model.AllReduce, model.AllGather, model.ReduceScatter:
			return on.predictRing(t), nil
		case model.Broadcast, model.Reduce:
			return on.predictRingCast(t), nil
		}
	case model.Tree:
		if t.Collective.Rooted() {
			return d.predictTreeCast(t), nil
		}
	case model.P2P:
		switch t.Collective {
		case model.AllToAll:
			return d.predictAllToAll(t), nil
		case model.SendRecv, model.Exchange:
			return d.predictSend(t), nil
		}
	case model.OneShot:
		if d.nodes > 1 {
			return p, errNodes(t.Algorithm, d.nodes)
		}
		return d.predictOneShot(t), nil
	case model.TwoShot:
		switch {
		case d.nodes > 1:
			return p, errNodes(t.Algorithm, d.nodes)
		case t.Collective.Rooted():
			return d.predictTwoShotCast(t), nil
		}
	case model.NVLS:
		switch t.Collective {
		case model.AllGather, model.ReduceScatter:
			switch {
			case d.nvls.err != nil:
				return p, d.nvls.err
			case d.nodes > 1:
				return p, errNodes(t.Algorithm, d.nodes)
			}
			return d.predictNVLSBlocks(t), nil
		}
	case model.PAT:
		switch t.Collective {
		case model.AllGather, model.ReduceScatter:
			if d.perNode > 1 {
				return p, fmt.Errorf("%v is for one GPU a node, not %d", t.Algorithm, d.perNode)
			}
			return d.predictPAT(t), nil
		}
	}
	if t.Collective != model.AllReduce {
		return p, errUnknown(t)
	}
	switch t.Algorithm {
	case model.Tree:
		return d.predictTree(t), nil
	case model.SimpleRing:
		return d.predictSimpleRing(t), nil
	case model.TwoShot:
		return d.predictTwoShot(t), nil
	case model.Hierarchical:
		if d.nodes == 1 {
			return p, errNodes(t.Algorithm, d.nodes)
		}
		return d.predictHierarchical(t), nil
	case model.CollNet, model.CollNetChain:
		switch {
		case d.collNet.heads == 0:
			return p, fmt.Errorf("%v needs several nodes, and a network that reduces", t.Algorithm)
		case t.Algorithm == model.CollNet:
			return d.predictCollNet(t), nil
		default:
			return d.predictCollNetChain(t), nil
		}
	case model.NVLS, model.NVLSTree:
		switch {
		case d.nvls.err != nil:
			return p, d.nvls.err
		case (t.Algorithm == model.NVLS) != (d.nodes == 1):
			return p, errNodes(t.Algorithm, d.nodes)
		}
		return d.predictNVLS(t), nil
	}
	return p, errUnknown(t)
}

func errUnknown(t schedule.Task) error {
	return fmt.Errorf("no model of %v by %v yet", t.Collective, t.Algorithm)
}

func errNodes(a model.Algorithm, nodes int) error {
	return fmt.Errorf("%v does not run on %d nodes", a, nodes)
}
