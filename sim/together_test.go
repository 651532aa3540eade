package sim_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"tutti/model"
	"tutti/model/profile"
	"tutti/model/schedule"
	"tutti/model/units"
	"tutti/sim"
	"tutti/topo"
)

// Calls that run apart take what they take alone; those that overlap take no less
// than that, and together no longer than one after another; and all their bytes
// cross the links.
func TestTogether(t *testing.T) {
	w := newWorld(t, "dgx-h100", 2, 4)
	constants := profile.ForGPU(90)
	run := func(t require.TestingT, calls ...sim.Call) (sim.Result, []sim.Span) {
		r, spans, err := sim.RunTogether(calls, w.cluster, constants, sim.Options{})
		require.NoError(t, err)
		return r, spans
	}
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) (schedule.Schedule, sim.Result) {
			a := rapid.SampledFrom([]model.Algorithm{model.Ring, model.Tree, model.NVLSTree, model.P2P}).Draw(t, name)
			task := schedule.Task{
				Collective: a.Collectives()[0], Algorithm: a, Protocol: rapid.SampledFrom(a.Protocols()).Draw(t, "protocol of "+name),
				Datatype: rapid.SampledFrom([]model.Datatype{model.Float16, model.Float32}).Draw(t, "datatype"), Channels: rapid.SampledFrom([]int{1, 4}).Draw(t, "channels"),
				Ranks: w.cluster.Ranks(), Nodes: w.cluster.Nodes,
			}
			s, err := schedule.New(task.Sized(units.Bytes(rapid.IntRange(256, 1<<21).Draw(t, "bytes"))), w.cluster, w.graphs)
			require.NoError(t, err)
			alone, err := sim.RunWith(s, w.cluster, constants, sim.Options{})
			require.NoError(t, err)
			return s, alone
		}
		a, aloneA := draw("a")
		b, aloneB := draw("b")
		_, spans := run(t, sim.Call{Schedule: a}, sim.Call{Schedule: b, Start: units.Second})
		require.Equal(t, []sim.Span{{End: aloneA.Time}, {Begin: units.Second, End: units.Second + aloneB.Time}}, spans)

		r, spans := run(t, sim.Call{Schedule: a}, sim.Call{Schedule: b})
		require.Greater(t, float64(spans[0].End)*anomaly, float64(aloneA.Time))
		require.Greater(t, float64(spans[1].End)*anomaly, float64(aloneB.Time))
		require.Less(t, float64(r.Time), float64(aloneA.Time+aloneB.Time)*anomaly)
		sums := total(w.cluster, r.Loads())
		for _, alone := range []sim.Result{aloneA, aloneB} {
			for kind, bytes := range total(w.cluster, alone.Loads()) {
				sums[kind] -= bytes
			}
		}
		for kind, left := range sums {
			require.Zero(t, left, kind)
		}

		r, spans = run(t, sim.Call{Schedule: a}, sim.Call{Schedule: b, After: []int{0}})
		require.Greater(t, float64(spans[0].End)*anomaly, float64(aloneA.Time), "b may begin on some ranks before a ends on others")
		require.Greater(t, float64(r.Time)*anomaly, float64(max(aloneA.Time, aloneB.Time)))
		require.Less(t, float64(r.Time), float64(aloneA.Time+aloneB.Time)*1.25, "ranks come to b at different times")
	})
}

func TestTogetherErrors(t *testing.T) {
	w := newTroubled(t, 1, topo.RailOptimised, model.Ring, 1024)
	_, _, err := sim.RunTogether([]sim.Call{{Schedule: w.s}, {Schedule: w.s, After: []int{1}}}, w.cluster, profile.ForGPU(90), sim.Options{})
	assert.EqualError(t, err, "call 1: it is to follow call 1, and want one before it")
	other := newWorld(t, "dgx-h100", 2, 0)
	_, _, err = sim.RunTogether([]sim.Call{{Schedule: w.s}}, other.cluster, profile.ForGPU(90), sim.Options{})
	assert.EqualError(t, err, "call 0: a schedule for 8 ranks does not run on 16")
}
