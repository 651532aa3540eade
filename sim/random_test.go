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
)

// Whatever the machine, the fabric, the collective and the algorithm: what is alike is
// simulated once, or what is guessed to do the same; links that never hold anything up
// are left out, what repeats itself is skipped, and cores share out the machines; yet
// the time is that of simulating everything, to the picosecond, and so is what crosses
// the links. Nothing is lost on the way, and no time is below the bound.
func TestRandomClusters(t *testing.T) {
	machines := map[string]*topo.System{}
	rapid.Check(t, func(t *rapid.T) {
		machine := rapid.SampledFrom([]string{"dgx-h100", "dgx-a100", "aws-p5", "azure-nd-h100-v5", "dgx-b200", "gb200x4"}).Draw(t, "machine")
		nodes, gpus := rapid.OneOf(rapid.IntRange(1, 9), rapid.SampledFrom([]int{12, 16, 40})).Draw(t, "nodes"), rapid.SampledFrom([]int{0, 1, 2, 3}).Draw(t, "gpus")
		if nodes > 9 {
			gpus = 1 // so that the test is quick
		}
		if machines[machine] == nil {
			m, err := topo.Open(machine)
			require.NoError(t, err)
			machines[machine] = m
		}
		fabric := drawFabric(t)
		c, err := topo.NewCluster(machines[machine], nodes, gpus, fabric)
		require.NoError(t, err)
		if rapid.Bool().Draw(t, "mixed") {
			c = drawMixture(t, machine, nodes, gpus, fabric, machines)
		}
		a := rapid.SampledFrom(model.Algorithms()).Draw(t, "algorithm")
		task := schedule.Task{
			Collective: rapid.SampledFrom(a.Collectives()).Draw(t, "collective"), Algorithm: a, Protocol: rapid.SampledFrom(a.Protocols()).Draw(t, "protocol"), Datatype: model.Float32,
			Channels: rapid.SampledFrom([]int{1, 2, 4, 16}).Draw(t, "channels"), Ranks: c.Ranks(), Nodes: c.Nodes,
		}
		s, err := schedule.New(task.Sized(units.Bytes(rapid.IntRange(1, 1<<19).Draw(t, "elements"))*4), c, graphsOf(c))
		if err != nil {
			return // not what the algorithm does, or not there
		}
		p := profile.ForGPU(c.Machine.SM())
		all, err := sim.RunWith(s, c, p, sim.EveryLink(sim.Options{NoSymmetry: true}))
		require.NoError(t, err)
		for _, o := range []sim.Options{{}, sim.AnyGuess(sim.Options{}), sim.AnyShards(sim.Options{})} {
			folded, err := sim.RunWith(s, c, p, o)
			require.NoError(t, err)
			require.Equal(t, all.Time, folded.Time, "%+v", o)
			require.Equal(t, total(c, all.Loads()), total(c, folded.Loads()), "%+v", o)
		}
		require.GreaterOrEqual(t, all.Time, sim.Bound(s.Task(), c))
		if a != model.NVLS && a != model.NVLSTree { // with these NVSwitches multiply what they get, and add it up
			requireConserved(t, c, all)
		}
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

// drawFabric draws a fabric of one to three levels, with room for any number of
// machines.
func drawFabric(t *rapid.T) topo.Fabric {
	f := topo.Fabric{
		Name: "drawn", Seed: rapid.Uint64().Draw(t, "seed"),
		Routing:   rapid.SampledFrom([]topo.Routing{topo.Adaptive, topo.ECMP}).Draw(t, "routing"),
		Switching: rapid.SampledFrom([]topo.Switching{topo.CutThrough, topo.StoreAndForward}).Draw(t, "switching"),
	}
	small := rapid.IntRange(1, 4)
	nodes, switches := 1, 1
	apart := rapid.Bool().Draw(t, "per rail")
	levels := rapid.IntRange(1, topo.MaxLevels).Draw(t, "levels")
	for i := range levels {
		l := topo.Level{Switches: 1, Links: 1, PerRail: apart && i < levels-1}
		if i > 0 {
			switches *= small.Draw(t, "parents")
			l.Switches, l.Links = switches, small.Draw(t, "links")
			l.Oversubscription = rapid.SampledFrom([]float64{0, 1, 2, 7}).Draw(t, "oversubscription")
		}
		nodes *= small.Draw(t, "children")
		if l.Nodes = nodes; i == levels-1 {
			l.Nodes = 0
		}
		apart = apart && rapid.Bool().Draw(t, "still per rail")
		f.Levels = append(f.Levels, l)
	}
	return f
}
