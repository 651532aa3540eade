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
)

// sent returns what one GPU sends to one of another machine.
func sent(t *testing.T, fabric topo.Fabric, count int64) (*topo.Cluster, schedule.Schedule) {
	machine, err := topo.Open("dgx-h100")
	require.NoError(t, err)
	c, err := topo.NewCluster(machine, 2, 1, fabric)
	require.NoError(t, err)
	s, err := schedule.New(schedule.Task{
		Collective: model.SendRecv, Algorithm: model.P2P, Protocol: model.Simple, Datatype: model.Float32, Count: count, Channels: 1, Ranks: 2, Nodes: 2,
	}, c, graphsOf(c))
	require.NoError(t, err)
	return c, s
}

// Where two items are on a link at once, each takes twice as long; served in turn,
// the first takes as long as alone, and both are through at the same time.
func TestSharing(t *testing.T) {
	fabric := topo.Fabric{Name: "one switch", Levels: []topo.Level{{Switches: 1, Links: 1}}}
	spans := map[topo.Sharing][]sim.Span{}
	for _, sharing := range []topo.Sharing{topo.Fair, topo.FIFO} {
		fabric.Sharing = sharing
		c, s := sent(t, fabric, 4096)
		var err error
		_, spans[sharing], err = sim.RunTogether([]sim.Call{{Schedule: s}, {Schedule: s}}, c, profile.ForGPU(90), sim.Options{})
		require.NoError(t, err)
	}
	alone := (48 * units.GBps).Pace().Of(16 * units.KiB)
	fair, fifo := spans[topo.Fair], spans[topo.FIFO]
	first, last := min(fifo[0].End, fifo[1].End), max(fifo[0].End, fifo[1].End)
	assert.Equal(t, fair[0].End, fair[1].End)
	assert.InDelta(t, float64(fair[0].End), float64(last), 2)
	assert.InDelta(t, float64(alone), float64(last-first), 2)
}

// An item that crosses three switches which store its packets takes the time of
// three packets longer.
func TestStoreAndForward(t *testing.T) {
	fabric := topo.Fabric{Name: "leaves of one", Levels: []topo.Level{{Nodes: 1, Switches: 1, Links: 1}, {Switches: 2, Links: 4}}}
	times := map[topo.Switching]units.Time{}
	for _, switching := range []topo.Switching{topo.CutThrough, topo.StoreAndForward} {
		fabric.Switching = switching
		c, s := sent(t, fabric, 1024)
		r, err := sim.Run(s, c, profile.ForGPU(90))
		require.NoError(t, err)
		times[switching] = r.Time
	}
	packet := (50 * units.GBps).Pace().Of(topo.Packet)
	assert.Equal(t, times[topo.CutThrough]+3*packet, times[topo.StoreAndForward])
}
