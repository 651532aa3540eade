package sim

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tutti/model"
	"tutti/model/profile"
	"tutti/model/schedule"
	"tutti/topo"
	"tutti/topo/search"
)

// The need of memory is that of what a simulation keeps, and of what is still to be
// collected, about.
func TestNeed(t *testing.T) {
	machine, err := topo.Open("dgx-h100")
	require.NoError(t, err)
	c, err := topo.NewCluster(machine, 16, 0, topo.RailOptimised)
	require.NoError(t, err)
	graphs := search.All(c)
	for _, a := range []model.Algorithm{model.Ring, model.Tree, model.NVLSTree, model.P2P} {
		s, err := schedule.New(schedule.Task{
			Collective: a.Collectives()[0], Algorithm: a, Protocol: model.Simple, Datatype: model.Float32, Count: 1 << 12, Channels: 8,
			Ranks: c.Ranks(), Nodes: c.Nodes,
		}, c, graphs)
		require.NoError(t, err)
		x, err := newSimulation(s, c, profile.ForGPU(90), unfolded(s), Options{NoSymmetry: true})
		require.NoError(t, err)
		kept := bytes(x.workers) + bytes(x.ports) + bytes(x.connections) + bytes(x.ends) + bytes(x.slots) + bytes(x.links) +
			bytes(x.flows) + bytes(x.routes) + bytes(x.wires.used) + bytes(x.wires.routes) + bytes(x.wires.all)
		for i := range x.wires.all {
			kept += bytes(x.wires.routes[i]) + bytes(x.wires.all[i])
		}
		need := float64(NewPlan(s, c, profile.ForGPU(90), Options{NoSymmetry: true}).Need())
		assert.Greater(t, need, kept, a.String())
		assert.Less(t, need, 4*kept, a.String())
	}
}

// bytes is how much memory a list takes.
func bytes[T any](list []T) float64 {
	var one T
	return float64(cap(list)) * float64(unsafe.Sizeof(one))
}
