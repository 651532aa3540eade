package sim_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tutti/model"
	"tutti/model/profile"
	"tutti/model/schedule"
	"tutti/model/units"
	"tutti/sim"
	"tutti/topo"
)

// Rings on rails are alike from leaf to leaf, and in them from rail to rail. In
// double trees a machine is like its mirror image.
func TestSymmetryFolds(t *testing.T) {
	w := newWorld(t, "dgx-h100", 128, 0)
	for a, most := range map[model.Algorithm]int{model.Ring: 32 * 8 * 2, model.Tree: 64 * 32, model.NVLSTree: 64 * 8} {
		r := w.run(t, a, model.Simple, units.GiB, profile.ForGPU(90))
		require.LessOrEqual(t, r.Workers, most, "%v: of %d", a, r.Of)
	}
}

// In all-to-all every machine, rail and channel is like any other: one worker that
// sends and one that receives stand for all.
func TestSymmetryOfAllToAll(t *testing.T) {
	w := newWorld(t, "dgx-h100", 8, 0)
	task := schedule.Task{Collective: model.AllToAll, Algorithm: model.P2P, Protocol: model.Simple, Datatype: model.Float32, Channels: 16, Ranks: 64, Nodes: 8}
	s, err := schedule.New(task.Sized(units.MiB), w.cluster, w.graphs)
	require.NoError(t, err)
	r, err := sim.Run(s, w.cluster, profile.ForGPU(90))
	require.NoError(t, err)
	require.Equal(t, 2, r.Workers)
	require.Equal(t, 2*16*64, r.Of)
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
			}, c, graphsOf(c))
			require.NoError(t, err)
			folded, err := sim.Run(s, c, profile.ForGPU(90))
			require.NoError(t, err)
			all, err := sim.RunWith(s, c, profile.ForGPU(90), sim.Options{NoSymmetry: true})
			require.NoError(t, err)
			require.Equal(t, all.Time, folded.Time, "%v on %d machines", a, nodes)
		}
	}
}
