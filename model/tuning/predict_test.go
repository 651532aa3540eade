package tuning_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"tutti/model"
	"tutti/model/profile"
	"tutti/model/schedule"
	"tutti/model/tuning"
	"tutti/model/units"
	"tutti/sim"
	"tutti/topo"
	"tutti/topo/search"
)

type world struct {
	cluster *topo.Cluster
	graphs  search.Graphs
	profile *profile.Profile
	tuned   *tuning.Model
	model   *tuning.Predictor
}

func newWorld(t require.TestingT, machine string, nodes, gpus int) world {
	m, err := topo.Open(machine)
	require.NoError(t, err)
	fabric := topo.RailOptimised
	fabric.Levels = slices.Clone(fabric.Levels)
	for i := range fabric.Levels {
		fabric.Levels[i].Reduces = true
	}
	c, err := topo.NewCluster(m, nodes, gpus, fabric)
	require.NoError(t, err)
	g, p := search.Find(c, search.Options{CollNet: true, SHARP: true}), profile.ForGPU(m.SM())
	return world{c, g, p, tuning.New(c, g), tuning.NewPredictor(c, g, p)}
}

func (w world) task(a model.Algorithm, p model.Protocol, size units.Bytes) schedule.Task {
	return schedule.Task{
		Collective: model.AllReduce, Algorithm: a, Protocol: p, Datatype: model.Float32, Count: int64(size / 4),
		Channels: w.tuned.Channels(a, p, size), Ranks: w.cluster.Ranks(), Nodes: w.cluster.Nodes,
	}
}

// tolerance returns how far the model may be from the simulator: 5 %, but more
// where chunks of several kinds meet on links for a part of the time, which a
// formula for the pace of all does not see:
//   - 8 % for rings that gather or reduce blocks on several nodes, where the worst
//     way is not that of the first chunk;
//   - 9 % for simple rings, 10 % for trees and 13 % for NVLS trees, for calls of so
//     few chunks that up and down meet in part;
//   - 10 % for all-to-all, and for Broadcast and Reduce of few chunks; on trees 13 %
//     and 19 %.
func tolerance(w world, t schedule.Task) float64 {
	nodes, blocks := w.cluster.Nodes, t.Collective == model.AllGather || t.Collective == model.ReduceScatter
	switch {
	case t.Collective == model.Reduce && t.Algorithm == model.Tree:
		return .19
	case t.Algorithm == model.NVLSTree, t.Collective == model.Broadcast && t.Algorithm == model.Tree:
		return .13
	case t.Algorithm == model.P2P, t.Collective.Rooted():
		return .1
	case t.Algorithm == model.Tree:
		return .1
	case t.Algorithm == model.SimpleRing:
		return .09
	case blocks && nodes > 1:
		return .08
	default:
		return .05
	}
}

// The model says what the simulator says: of every algorithm and protocol, for
// every collective, by size.
func TestPredictorAgreesWithSimulator(t *testing.T) {
	worlds := []world{newWorld(t, "h200x4", 1, 0), newWorld(t, "h200x4", 1, 2), newWorld(t, "h200x4", 1, 3)}
	for _, nodes := range []int{1, 2, 3, 4} {
		worlds = append(worlds, newWorld(t, "dgx-h100", nodes, 0))
	}
	cases, close := 0, 0
	for _, w := range worlds {
		for _, a := range model.Algorithms() {
			for _, c := range a.Collectives() {
				for _, p := range a.Protocols() {
					for size := units.Bytes(32); size <= 512*units.MiB; size *= 32 {
						task := w.task(a, p, size)
						task.Collective = c
						task = task.Sized(size)
						s, err := schedule.New(task, w.cluster, w.graphs)
						if err != nil || task.Count == 0 {
							continue // not on this cluster
						}
						predicted, err := w.model.Predict(s.Task())
						if err != nil {
							assert.Regexp(t, "one GPU a node|does not run on", err.Error())
							continue
						}
						simulated, err := sim.Run(s, w.cluster, w.profile)
						require.NoError(t, err)
						off := math.Abs(predicted.Time/simulated.Time.Microseconds() - 1)
						assert.LessOrEqual(t, off, tolerance(w, task), "%v by %v over %v, %v on %d ranks of %d nodes", c, a, p, size, task.Ranks, task.Nodes)
						if cases++; off <= .05 {
							close++
						}
						sum := 0.0
						for _, term := range predicted.Terms() {
							sum += term.Time
						}
						assert.InDelta(t, predicted.Time, sum, 1e-9*predicted.Time)
					}
				}
			}
		}
	}
	t.Logf("%d of %d within 5 %%", close, cases)
	assert.GreaterOrEqual(t, float64(close), .97*float64(cases))
}

// BenchmarkPredict predicts a ring on 16,384 nodes.
func BenchmarkPredict(b *testing.B) {
	w := newWorld(b, "dgx-h100", topo.MaxNodes, 0)
	task := w.task(model.Ring, model.Simple, units.GiB)
	for b.Loop() {
		if _, err := w.model.Predict(task); err != nil {
			b.Fatal(err)
		}
	}
}
