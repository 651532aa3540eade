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
)

// send makes a schedule by which two ranks on two machines send to each other.
func send(t *testing.T, w world, p model.Protocol, size units.Bytes) schedule.Schedule {
	s, err := schedule.New(schedule.Task{
		Collective: model.SendRecv, Algorithm: model.P2P, Protocol: p, Datatype: model.Float32, Count: int64(size / 4), Channels: 1, Ranks: 2, Nodes: 2,
	}, w.cluster, w.graphs)
	require.NoError(t, err)
	return s
}

// A lone message over the proxy takes what the constants say, one that the GPU
// posts less; of many the proxy makes a queue, and the GPU none.
func TestPosting(t *testing.T) {
	w, constants := newWorld(t, "dgx-h100", 2, 1), profile.ForGPU(90)
	for _, p := range model.Protocols() {
		run := func(poster profile.Poster) units.Time {
			r, err := sim.RunWith(send(t, w, p, 64), w.cluster, constants, sim.Options{NIC: sim.NIC{Poster: poster}})
			require.NoError(t, err)
			return r.Time
		}
		lone := run(profile.AsMeasured)
		assert.Equal(t, lone, run(profile.ByProxy), p)
		assert.Equal(t, lone-constants.Message[profile.ByProxy], run(profile.ByGPU), p)
	}
	ring, err := schedule.New(schedule.Task{Algorithm: model.Ring, Protocol: model.Simple, Datatype: model.Float32, Count: 1 << 14, Channels: 16, Ranks: 2, Nodes: 2}, w.cluster, w.graphs)
	require.NoError(t, err)
	var times [3]units.Time
	for poster := range times {
		r, err := sim.RunWith(ring, w.cluster, constants, sim.Options{NIC: sim.NIC{Poster: profile.Poster(poster)}})
		require.NoError(t, err)
		times[poster] = r.Time
	}
	assert.Greater(t, times[profile.ByProxy], times[profile.AsMeasured]+5*constants.Message[profile.ByProxy])
	assert.Less(t, times[profile.ByGPU], times[profile.AsMeasured])
}

// One queue pair carries what it carries; many are no limit.
func TestQueuePairs(t *testing.T) {
	w, constants := newWorld(t, "dgx-h100", 2, 1), profile.ForGPU(90)
	const size = units.GiB
	clear(constants.Handover[:]) // wires alone
	clear(constants.Overhead[:])
	clear(constants.Turn[:])
	clear(constants.Ramp[:])
	constants.Copy[model.P2P][model.Simple] *= 10
	run := func(pairs int) sim.Result {
		r, err := sim.RunWith(send(t, w, model.Simple, size), w.cluster, constants, sim.Options{NIC: sim.NIC{QueuePairs: pairs}})
		require.NoError(t, err)
		return r
	}
	one := run(1)
	assert.InEpsilon(t, float64(one.Base)+float64(size)/float64(constants.QueuePair)*1e12, float64(one.Time), .01)
	assert.Less(t, run(2).Time, one.Time)
	assert.Equal(t, run(0).Time, run(8).Time)
}

// Data that passes through the host takes longer, and crosses links of the CPU.
func TestThroughHost(t *testing.T) {
	w := newTroubled(t, 2, newWorld(t, "dgx-h100", 2, 0).cluster.Fabric, model.Ring, 64*units.MiB)
	w.cluster.ThroughHost = true
	staged, err := sim.Run(w.s, w.cluster, profile.ForGPU(90))
	require.NoError(t, err)
	assert.Greater(t, staged.Time, w.calm.Time)
	assert.Contains(t, w.cluster.LinkName(staged.Loads()[0].Link), "CPU")
}
