package sim_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tutti/model"
	"tutti/model/profile"
	"tutti/model/schedule"
	"tutti/sim"
	"tutti/topo/search"
)

// The need of memory is that of what a simulation keeps, and as much again that is
// to be collected, about.
func TestNeed(t *testing.T) {
	w := newWorld(t, "dgx-h100", 16, 0)
	for _, a := range []model.Algorithm{model.Ring, model.Tree, model.NVLSTree, model.P2P} {
		s, err := schedule.New(schedule.Task{
			Collective: a.Collectives()[0], Algorithm: a, Protocol: model.Simple, Datatype: model.Float32, Count: 1 << 12, Channels: 8,
			Ranks: w.cluster.Ranks(), Nodes: w.cluster.Nodes,
		}, w.cluster, search.All(w.cluster))
		require.NoError(t, err)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		r, err := sim.RunWith(s, w.cluster, profile.ForGPU(90), sim.Options{NoSymmetry: true})
		require.NoError(t, err)
		runtime.GC()
		runtime.ReadMemStats(&after)
		runtime.KeepAlive(r)
		need := sim.Need(s, w.cluster, profile.ForGPU(90), sim.Options{NoSymmetry: true})
		kept := float64(after.HeapAlloc - before.HeapAlloc)
		assert.Greater(t, float64(need), .7*kept, a.String())
		assert.Less(t, float64(need), 4*kept, a.String())
	}
}
