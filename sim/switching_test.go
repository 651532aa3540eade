package sim_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tutti/model"
	"tutti/model/profile"
	"tutti/model/schedule"
	"tutti/model/units"
	"tutti/sim"
	"tutti/topo"
	"tutti/topo/search"
)

// An item that crosses three switches which store its packets takes the time of
// three packets longer.
func TestStoreAndForward(t *testing.T) {
	machine, err := topo.Open("dgx-h100")
	require.NoError(t, err)
	fabric := topo.Fabric{Name: "leaves of one", Levels: []topo.Level{{Nodes: 1, Switches: 1, Links: 1}, {Switches: 2, Links: 4}}}
	times := map[topo.Switching]units.Time{}
	for _, switching := range []topo.Switching{topo.CutThrough, topo.StoreAndForward} {
		fabric.Switching = switching
		c, err := topo.NewCluster(machine, 2, 1, fabric)
		require.NoError(t, err)
		s, err := schedule.New(schedule.Task{
			Collective: model.SendRecv, Algorithm: model.P2P, Protocol: model.Simple, Datatype: model.Float32, Count: 1024, Channels: 1, Ranks: 2, Nodes: 2,
		}, c, search.All(c))
		require.NoError(t, err)
		r, err := sim.Run(s, c, profile.ForGPU(90))
		require.NoError(t, err)
		times[switching] = r.Time
	}
	packet := (50 * units.GBps).Pace().Of(topo.Packet)
	assert.Equal(t, times[topo.CutThrough]+3*packet, times[topo.StoreAndForward])
}
