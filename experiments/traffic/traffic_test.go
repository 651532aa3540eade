package traffic_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"tutti/experiments/traffic"
	"tutti/model"
	"tutti/model/profile"
	"tutti/model/schedule"
	"tutti/model/units"
	"tutti/sim"
	"tutti/topo"
	"tutti/topo/search"
)

// Whatever the fabric: links that stand for others, and links for themselves, have
// the same bytes by kind, those of a simulation of every worker; and every link in
// use is in the map, at its machine, as busy as the list says.
func TestTraffic(t *testing.T) {
	machine, err := topo.Open("dgx-h100")
	require.NoError(t, err)
	rapid.Check(t, func(t *rapid.T) {
		fabric := topo.Fabric{
			Name: "drawn", Routing: rapid.SampledFrom([]topo.Routing{topo.Adaptive, topo.ECMP}).Draw(t, "routing"),
			Levels: []topo.Level{
				{Nodes: rapid.SampledFrom([]int{1, 2, 4}).Draw(t, "nodes of a leaf"), PerRail: rapid.Bool().Draw(t, "rails"), Switches: 1, Links: 1},
				{Switches: 2, Links: 1},
			},
		}
		c, err := topo.NewCluster(machine, rapid.IntRange(1, 6).Draw(t, "nodes"), 0, fabric)
		require.NoError(t, err)
		s, err := schedule.New(schedule.Task{
			Algorithm: rapid.SampledFrom([]model.Algorithm{model.Ring, model.Tree}).Draw(t, "algorithm"), Protocol: model.Simple,
			Datatype: model.Float32, Count: 1 << 14, Channels: 2, Ranks: c.Ranks(), Nodes: c.Nodes,
		}, c, search.All(c))
		require.NoError(t, err)
		r, err := sim.Run(s, c, profile.ForGPU(90))
		require.NoError(t, err)
		full, err := sim.RunWith(s, c, profile.ForGPU(90), sim.Options{NoSymmetry: true})
		require.NoError(t, err)
		want := sums(traffic.Links(full, c))
		require.Equal(t, want, sums(traffic.Links(r, c)))
		each := traffic.Each(r, c)
		require.Equal(t, want, sums(each))
		require.Equal(t, each, traffic.Each(full, c))

		busiest, cells := map[string]float64{}, 0
		for _, b := range traffic.NewMap(r, c).Bands {
			require.Equal(t, (c.Nodes+b.Span-1)/b.Span, len(b.Busy[0]))
			for _, row := range b.Busy {
				for _, busy := range row {
					if !math.IsNaN(busy) {
						cells++
						busiest[b.Kind] = max(busiest[b.Kind], busy)
					}
				}
			}
		}
		require.Equal(t, len(each), cells)
		for _, l := range traffic.Links(r, c) {
			require.LessOrEqual(t, l.Busy, busiest[l.Kind])
		}
	})
}

func sums(links []traffic.Link) map[string]units.Bytes {
	sum := map[string]units.Bytes{}
	for _, l := range links {
		sum[l.Kind] += l.Bytes * units.Bytes(l.Alike)
	}
	return sum
}

// A map of a large cluster keeps to its size.
func TestMapIsSmall(t *testing.T) {
	machine, err := topo.Open("dgx-h100")
	require.NoError(t, err)
	c, err := topo.NewCluster(machine, 1000, 0, topo.RailOptimised)
	require.NoError(t, err)
	s, err := schedule.New(schedule.Task{
		Algorithm: model.Tree, Protocol: model.Simple, Datatype: model.Float32, Count: 1 << 14, Channels: 2, Ranks: c.Ranks(), Nodes: c.Nodes,
	}, c, search.All(c))
	require.NoError(t, err)
	r, err := sim.Run(s, c, profile.ForGPU(90))
	require.NoError(t, err)
	for _, b := range traffic.NewMap(r, c).Bands {
		require.LessOrEqual(t, len(b.Busy[0]), traffic.MaxColumns)
		require.Greater(t, b.Span*len(b.Busy[0]), 1000-b.Span, "all machines have a column")
	}
}
