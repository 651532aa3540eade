package sim_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"tutti/model"
	"tutti/model/profile"
	"tutti/model/schedule"
	"tutti/model/units"
	"tutti/sim"
	"tutti/topo"
	"tutti/topo/search"
)

// What is alike is simulated once, or what is guessed to do the same; links that
// never hold anything up are left out, what repeats itself is skipped, and cores
// share out the machines; yet the time is that of simulating everything, to the
// picosecond, and so is what crosses the links, summed up. This holds on fabrics
// that are not symmetric, for machines that differ in speed, and for sizes that no
// division fits.
func TestSymmetryIsExact(t *testing.T) {
	machine, err := topo.Open("dgx-h100")
	require.NoError(t, err)
	machines := map[string]*topo.System{}
	rapid.Check(t, func(t *rapid.T) {
		fabric := topo.Fabric{
			Name: "drawn", Routing: rapid.SampledFrom([]topo.Routing{topo.Adaptive, topo.ECMP}).Draw(t, "routing"),
			Switching: rapid.SampledFrom([]topo.Switching{topo.CutThrough, topo.StoreAndForward}).Draw(t, "switching"),
			Levels: []topo.Level{
				{Nodes: rapid.SampledFrom([]int{1, 2, 4, 8}).Draw(t, "nodes of a leaf"), PerRail: rapid.Bool().Draw(t, "rails"), Switches: 1, Links: 1},
				{Switches: 4, Links: 1, Oversubscription: rapid.SampledFrom([]float64{1, 2, 5}).Draw(t, "oversubscription")},
			},
		}
		nodes, gpus := rapid.SampledFrom([]int{1, 2, 4, 5, 8, 12, 40}).Draw(t, "nodes"), rapid.SampledFrom([]int{0, 0, 4, 5}).Draw(t, "gpus")
		c, err := topo.NewCluster(machine, nodes, gpus, fabric)
		require.NoError(t, err)
		if rapid.Bool().Draw(t, "mixed") {
			c = drawMixture(t, "dgx-h100", nodes, gpus, fabric, machines)
		}
		a := rapid.SampledFrom(model.Algorithms()).Draw(t, "algorithm")
		task := schedule.Task{
			Collective: a.Collectives()[0], Algorithm: a, Protocol: rapid.SampledFrom(a.Protocols()).Draw(t, "protocol"),
			Datatype: model.Float32, Channels: rapid.SampledFrom([]int{1, 2, 8, 16}).Draw(t, "channels"), Ranks: c.Ranks(), Nodes: c.Nodes,
		}
		sizes := rapid.OneOf(rapid.SampledFrom([]units.Bytes{units.MiB, 4 * units.MiB}), rapid.Custom(func(t *rapid.T) units.Bytes {
			return units.Bytes(rapid.Int64Range(1, 1<<20).Draw(t, "elements")) * 4
		}))
		s, err := schedule.New(task.Sized(sizes.Draw(t, "size")), c, search.All(c))
		if err != nil {
			return
		}
		all, err := sim.RunWith(s, c, profile.ForGPU(90), sim.EveryLink(sim.Options{NoSymmetry: true}))
		require.NoError(t, err)
		o := rapid.SampledFrom([]sim.Options{{}, sim.AnyGuess(sim.Options{}), sim.AnyParts(sim.Options{})}).Draw(t, "options")
		folded, err := sim.RunWith(s, c, profile.ForGPU(90), o)
		require.NoError(t, err)
		require.Equal(t, all.Time, folded.Time)
		require.Equal(t, total(c, all.Loads()), total(c, folded.Loads()))
		require.GreaterOrEqual(t, all.Time, sim.Bound(s.Task(), c))
	})
}

// total sums up the bytes by the kind of link.
func total(c *topo.Cluster, loads []sim.Load) map[topo.LinkType]units.Bytes {
	sums := map[topo.LinkType]units.Bytes{}
	for _, l := range loads {
		kind, _ := c.Link(l.Link)
		sums[kind] += l.Bytes * units.Bytes(l.Like)
	}
	return sums
}

// Rings on rails are alike from leaf to leaf, and in them from rail to rail. In
// double trees a machine is like its mirror image.
func TestSymmetryFolds(t *testing.T) {
	w := newWorld(t, "dgx-h100", 128, 0)
	for a, most := range map[model.Algorithm]int{model.Ring: 32 * 8 * 2, model.Tree: 64 * 32, model.NVLSTree: 64 * 8} {
		r := w.run(t, a, model.Simple, units.GiB, profile.ForGPU(90))
		require.LessOrEqual(t, r.Workers, most, "%v: of %d", a, r.Of)
	}
}

// A machine's mirror image has the other tree's channels, and ECMP's hash other
// cables for them.
func TestMirrorsUnderECMP(t *testing.T) {
	machine, err := topo.Open("dgx-h100")
	require.NoError(t, err)
	fabric := topo.Fabric{Name: "fat tree", Routing: topo.ECMP, Levels: []topo.Level{{Nodes: 4, Switches: 1, Links: 1}, {Switches: 32, Links: 1}}}
	for _, nodes := range []int{6, 8} {
		c, err := topo.NewCluster(machine, nodes, 0, fabric)
		require.NoError(t, err)
		for a, over := range map[model.Algorithm]model.Protocol{model.Tree: model.LL128, model.NVLSTree: model.Simple} {
			s, err := schedule.New(schedule.Task{
				Algorithm: a, Protocol: over, Datatype: model.Float32, Count: 1 << 18, Channels: 16, Ranks: c.Ranks(), Nodes: c.Nodes,
			}, c, search.All(c))
			require.NoError(t, err)
			folded, err := sim.Run(s, c, profile.ForGPU(90))
			require.NoError(t, err)
			all, err := sim.RunWith(s, c, profile.ForGPU(90), sim.Options{NoSymmetry: true})
			require.NoError(t, err)
			require.Equal(t, all.Time, folded.Time, "%v on %d machines", a, nodes)
		}
	}
}
