// Package calibrate fits a machine's profile to measured rows, and says how well
// it predicts rows that it has not seen.
package calibrate

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"golang.org/x/sync/errgroup"

	"tutti/experiments/rows"
	"tutti/model"
	"tutti/model/profile"
	"tutti/model/schedule"
	"tutti/model/tuning"
	"tutti/model/units"
	"tutti/topo"
	"tutti/topo/search"
)

// World is what a row was measured on: a cluster and its graphs.
type World struct {
	Cluster *topo.Cluster
	Graphs  search.Graphs
	tuned   *tuning.Model
	model   *tuning.Predictor
}

// predictor returns the model of a cluster, measured anew only where the links have
// other constants than before.
func (w *World) predictor(p *profile.Profile) *tuning.Predictor {
	if w.model == nil || !w.model.SameLinks(p) {
		w.model = tuning.NewPredictor(w.Cluster, w.Graphs, p).BackToBack()
	}
	return w.model.With(p)
}

// Worlds opens the machines of rows, each cluster once.
type Worlds struct {
	// Machine, unless empty, stands in for the machines that the rows name.
	Machine string
	// Open, unless nil, opens machines in the place of [topo.Open].
	Open func(name string) (*topo.System, error)

	open map[key]*World
}

type key struct {
	machine      string
	nodes, ranks int
}

// most is the largest call that is taken for one.
const most = units.TiB

// Of returns the world of a row. It fails for a machine that is not known, too
// small, or a mixture of another size.
func (w *Worlds) Of(r rows.Row) (*World, error) {
	if r.Bytes > most {
		return nil, fmt.Errorf("%v: want at most %v, more than a GPU's memory", r.Bytes, most)
	}
	k := key{cmp.Or(w.Machine, r.Machine), r.Nodes, r.Ranks}
	if world, ok := w.open[k]; ok {
		return world, nil
	}
	c, err := w.cluster(k)
	if err != nil {
		return nil, err
	}
	g := search.All(c)
	if w.open == nil {
		w.open = map[key]*World{}
	}
	w.open[k] = &World{Cluster: c, Graphs: g, tuned: tuning.New(c, g)}
	return w.open[k], nil
}

// cluster returns what a machine, or a mixture, of so many nodes and ranks stands for.
func (w *Worlds) cluster(k key) (*topo.Cluster, error) {
	open := w.Open
	if open == nil {
		open = topo.Open
	}
	parts, err := topo.OpenMixture(k.machine, k.nodes, open)
	if err != nil {
		return nil, err
	}
	gpus := 0 // of each machine: all
	switch {
	case k.ranks%k.nodes == 0:
		gpus = k.ranks / k.nodes
	case len(parts) == 1:
		return nil, fmt.Errorf("%d ranks on %d nodes: want as many on each", k.ranks, k.nodes)
	}
	c, err := topo.NewMixedCluster(parts, gpus, topo.RailOptimised)
	if err != nil && gpus > 0 && len(parts) > 1 { // no more than some have
		c, err = topo.NewMixedCluster(parts, 0, topo.RailOptimised)
	}
	if err == nil && (c.Nodes != k.nodes || c.Ranks() != k.ranks) {
		return nil, fmt.Errorf("%d ranks on %d nodes: %s has %d on %d", k.ranks, k.nodes, k.machine, c.Ranks(), c.Nodes)
	}
	return c, err
}

// Task returns the call that a row measured, on as many channels as NCCL takes.
func (w *World) Task(r rows.Row) schedule.Task {
	t := schedule.Task{
		Collective: r.Collective, Algorithm: r.Algorithm, Protocol: r.Protocol, Datatype: r.Datatype, Redop: r.Redop,
		Channels: w.tuned.On(r.Collective).Channels(r.Algorithm, r.Protocol, r.Bytes), Ranks: r.Ranks, Nodes: r.Nodes, InPlace: r.InPlace,
	}
	return t.Sized(r.Bytes)
}

// calls are what rows measured, each in its world.
type calls []struct {
	world  *World
	task   schedule.Task
	kernel string // of tutti's own, if one was measured
}

// calls finds them. It fails, with the row's number, for a machine that is not
// known, too small, or not the profile's.
func (w *Worlds) calls(list []rows.Row, p *profile.Profile) (calls, error) {
	all := make(calls, len(list))
	for i, r := range list {
		world, err := w.Of(r)
		if err != nil {
			return nil, fmt.Errorf("row %d: %w", i+1, err)
		}
		if err := p.Suits(world.Cluster.Machine); err != nil {
			return nil, err
		}
		all[i].world, all[i].task, all[i].kernel = world, world.Task(r), r.Kernel
	}
	return all, nil
}

// predict returns the model's time for every call. It fails, with the row's
// number, for one that the model cannot tell of.
func (c calls) predict(p *profile.Profile) ([]units.Time, error) {
	times := make([]units.Time, len(c))
	of := map[*World]*tuning.Predictor{}
	for i := range c {
		w := c[i].world
		if of[w] == nil {
			of[w] = w.predictor(p)
		}
		predicted, err := of[w].Predict(c[i].task)
		if c[i].kernel != "" {
			predicted, err = of[w].PredictKernel(c[i].kernel, c[i].task)
		}
		if err != nil {
			return nil, fmt.Errorf("row %d: %w", i+1, err)
		}
		times[i] = units.FromMicroseconds(predicted.Time)
	}
	return times, nil
}

// Predict returns the model's time for every row. It fails, with the row's
// number, for a row that the model cannot tell of.
func (w *Worlds) Predict(list []rows.Row, p *profile.Profile) ([]units.Time, error) {
	all, err := w.calls(list, p)
	if err != nil {
		return nil, err
	}
	return all.predict(p)
}

// Halves splits rows: of each series every other size, the first to be fitted,
// the second to be held out. A series is rows that differ in size and time only.
func Halves(list []rows.Row) (fitted, held []rows.Row) {
	seen := map[rows.Row]int{}
	for _, r := range slices.SortedStableFunc(slices.Values(list), func(a, b rows.Row) int { return cmp.Compare(a.Bytes, b.Bytes) }) {
		series := r.Series()
		if seen[series]%2 == 0 {
			fitted = append(fitted, r)
		} else {
			held = append(held, r)
		}
		seen[series]++
	}
	return fitted, held
}

// Constants names the constants that rows tell of: those of the kernels, by
// algorithm and protocol, and for NVLS those of the switch. Constants of the
// network are told of by rows of several nodes only. Those to keep are left out.
func Constants(list []rows.Row, keep ...string) (names []string) {
	add := func(format string, args ...any) {
		if name := fmt.Sprintf(format, args...); !slices.Contains(names, name) && !slices.Contains(keep, name) {
			names = append(names, name)
		}
	}
	for _, r := range list {
		a, p := r.Algorithm, r.Protocol
		if a == model.NVLS || a == model.NVLSTree {
			add("handover.nvlink.%v.%v", a, p)
			add("efficiency.multimem")
			add("copy.local")
			continue
		}
		add("overhead.%v", p)
		add("turn.%v.%v", a, p)
		add("copy.%v.%v", a, p)
		if p != model.Simple {
			add("miss.%v.%v", a, p)
		}
		add("base.%v.%v", a, p)
		add("ramp.%v.%v", a, p)
		if r.Ranks > r.Nodes {
			add("handover.nvlink.%v.%v", a, p)
		}
		if r.Nodes > 1 {
			add("handover.network.%v.%v", a, p)
		}
	}
	return names
}

// tooFew is how many rows for each constant are not enough to fit.
const tooFew = 2

// Fit fits the constants that the rows tell of, protocol by protocol, but for
// those to keep. It fails where there are too few rows, and where a row is none
// that the model can tell of.
func Fit(list []rows.Row, start *profile.Profile, worlds *Worlds, keep ...string) (*profile.Profile, error) {
	var parts []part
	for _, protocol := range model.Protocols() {
		of := part{rows: slices.DeleteFunc(slices.Clone(list), func(r rows.Row) bool { return r.Protocol != protocol })}
		if len(of.rows) == 0 {
			continue
		}
		of.names = Constants(of.rows, keep...)
		if len(of.rows) < tooFew*len(of.names) {
			return nil, fmt.Errorf("%d rows over %v for %d constants: want at least %d", len(of.rows), protocol, len(of.names), tooFew*len(of.names))
		}
		var err error
		if of.calls, err = worlds.calls(of.rows, start); err != nil {
			return nil, err
		}
		if _, err := of.calls.predict(start); err != nil {
			return nil, err
		}
		parts = append(parts, of)
	}
	// No part has constants of another, so that they are fitted at a time.
	fits := make([]*profile.Profile, len(parts))
	var group errgroup.Group
	for i := range parts {
		group.Go(func() (err error) {
			fits[i], err = profile.Fit(start, parts[i].names, parts[i].errors)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	p := start
	for i, fitted := range fits {
		p = p.With(fitted, parts[i].names)
	}
	return p, nil
}

// part is the rows of one protocol and the constants that they tell of.
type part struct {
	rows  []rows.Row
	names []string
	calls calls
}

// errors returns the logarithm of predicted over measured time for each row.
func (f *part) errors(p *profile.Profile) []float64 {
	times, err := f.calls.predict(p)
	if err != nil {
		panic(err) // it could before
	}
	errors := make([]float64, len(times))
	for i, r := range f.rows {
		errors[i] = math.Log(float64(times[i]) / float64(r.Time))
	}
	return errors
}

// Summary is how far predictions are off.
type Summary struct {
	Rows                   int
	Median, Ninetieth, Max float64 // of the errors' sizes, as shares
}

// Summarise sorts errors, given as predicted over measured time less one.
func Summarise(errors []float64) Summary {
	sizes := make([]float64, len(errors))
	for i, e := range errors {
		sizes[i] = math.Abs(e)
	}
	slices.Sort(sizes)
	n := len(sizes)
	if n == 0 {
		return Summary{}
	}
	median := sizes[n/2]
	if n%2 == 0 {
		median = (sizes[n/2-1] + sizes[n/2]) / 2
	}
	return Summary{n, median, sizes[min(n-1, int(math.Ceil(.9*float64(n)))-1)], sizes[n-1]}
}

// Errors returns predicted over measured time, less one, row by row.
func Errors(list []rows.Row, times []units.Time) []float64 {
	errors := make([]float64, len(list))
	for i, r := range list {
		errors[i] = float64(times[i])/float64(r.Time) - 1
	}
	return errors
}
