package sweep_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tutti/experiments/sweep"
	"tutti/model"
	"tutti/model/units"
	"tutti/sim"
	"tutti/topo"
)

func jobs(t *testing.T, nodes int, options sim.Options) []sweep.Job {
	machine, err := topo.Open("dgx-h100")
	require.NoError(t, err)
	c, err := topo.NewCluster(machine, nodes, 0, topo.RailOptimised)
	require.NoError(t, err)
	list, _, err := sweep.Study{
		Clusters: []*topo.Cluster{c}, Algorithms: []model.Algorithm{model.Ring, model.Tree},
		Sizes: []units.Bytes{units.KiB, units.MiB, units.GiB}, Datatype: model.Float32, Options: options,
	}.Jobs()
	require.NoError(t, err)
	return list
}

// What is done when a study is ended is kept, in its order.
func TestRunEnds(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	started := 0
	list := jobs(t, 2, sim.Options{})
	done, err := sweep.Run(ctx, list, 0, func(sweep.Job) {
		if started++; started == len(list) {
			end()
		}
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Less(t, len(done), len(list))
	for _, d := range done {
		assert.Equal(t, list[d.Job].Task().Bytes(), d.Row.Bytes)
	}
}

// What has no room is refused before anything runs.
func TestRunRefuses(t *testing.T) {
	list := jobs(t, 1024, sim.Options{NoSymmetry: true})
	_, err := sweep.Run(t.Context(), list, units.MiB, func(sweep.Job) { t.Fatal("runs") })
	tooLarge := (*sweep.MemoryError)(nil)
	require.ErrorAs(t, err, &tooLarge)
	assert.Greater(t, tooLarge.Need, tooLarge.Limit)
}

// Shards have every case once.
func TestShards(t *testing.T) {
	list := jobs(t, 2, sim.Options{})
	for count := 1; count < 8; count++ {
		seen := map[int]int{}
		for i := range count {
			for _, at := range (sweep.Shard{Index: i + 1, Count: count}).Of(list) {
				seen[at]++
			}
		}
		assert.Len(t, seen, len(list))
		for at, times := range seen {
			assert.Equal(t, 1, times, at)
		}
	}
}
