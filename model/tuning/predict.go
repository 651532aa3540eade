package tuning

import (
	"errors"
	"fmt"
	"maps"

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

var errSingle = errors.New("a single rank has nothing to exchange")

// Predict predicts a task. It fails for what the model does not know.
func (d *Predictor) Predict(t schedule.Task) (Prediction, error) {
	switch rings := t.Algorithm == model.Ring || t.Algorithm == model.RailRing; {
	case t.Collective == model.AllReduce, rings && (t.Collective == model.AllGather || t.Collective == model.ReduceScatter):
	case rings:
		return Prediction{}, fmt.Errorf("no model of %v by %v yet: want %v, %v or %v", t.Collective, t.Algorithm, model.AllReduce, model.AllGather, model.ReduceScatter)
	default:
		return Prediction{}, fmt.Errorf("no model of %v by %v yet: want %v", t.Collective, t.Algorithm, model.AllReduce)
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
	case model.NVLS, model.NVLSTree:
		if d.nvls.err != nil {
			return p, d.nvls.err
		}
		if (t.Algorithm == model.NVLS) != (d.nodes == 1) {
			return p, fmt.Errorf("%v does not run on %d nodes", t.Algorithm, d.nodes)
		}
		p = d.predictNVLS(t)
	default:
		return p, fmt.Errorf("no model of %v yet: want ring, tree, nvls, nvlstree, simplering, railring, oneshot or twoshot", t.Algorithm)
	}
	for _, term := range p.terms {
		p.Time += term
	}
	return p, nil
}
