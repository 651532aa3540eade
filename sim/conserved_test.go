package sim_test

import (
	"regexp"
	"strings"
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

// What enters a NIC, a CPU or a switch leaves it, whatever the routing; more
// bandwidth does not slow a call, nor does less data on the same channels.
func TestConserved(t *testing.T) {
	machine, err := topo.Open("dgx-h100")
	require.NoError(t, err)
	rapid.Check(t, func(t *rapid.T) {
		fabric := topo.Fabric{Name: "drawn", Routing: rapid.SampledFrom([]topo.Routing{topo.Adaptive, topo.ECMP}).Draw(t, "routing"), Levels: []topo.Level{
			{Nodes: 1, Switches: 1, Links: 1, PerRail: rapid.Bool().Draw(t, "rails")}, {Switches: 2, Links: 1, Oversubscription: rapid.SampledFrom([]float64{1, 3}).Draw(t, "oversubscription")},
		}}
		c, err := topo.NewCluster(machine, rapid.IntRange(2, 3).Draw(t, "nodes"), 4, fabric)
		require.NoError(t, err)
		w := newWorldOn(c)
		c.ThroughHost = rapid.Bool().Draw(t, "through the host")
		a := rapid.SampledFrom([]model.Algorithm{model.Ring, model.Tree}).Draw(t, "algorithm")
		size := units.Bytes(rapid.IntRange(1, 1<<17).Draw(t, "elements")) * 8
		s := w.schedule(t, a, model.Simple, size)
		r, err := sim.RunWith(s, c, profile.ForGPU(90), sim.Options{NoSymmetry: true})
		require.NoError(t, err)
		requireConserved(t, c, r)
		faster := profile.ForGPU(90)
		for kind := range faster.Efficiency {
			faster.Efficiency[kind] *= 2
		}
		require.LessOrEqual(t, w.run(t, a, model.Simple, size, faster).Time, r.Time, "twice the bandwidth")
		half, err := schedule.New(s.Task().Sized(size/2), c, w.graphs)
		require.NoError(t, err)
		less, err := sim.Run(half, c, profile.ForGPU(90))
		require.NoError(t, err)
		require.LessOrEqual(t, less.Time, r.Time, "half the data")
	})
}

// parallel tells cables between the same switches apart.
var parallel = regexp.MustCompile(` cable \d+`)

// requireConserved makes sure that what enters a part leaves it, GPUs aside.
func requireConserved(t require.TestingT, c *topo.Cluster, r sim.Result) {
	left := map[string]units.Bytes{}
	for _, l := range r.Loads() {
		from, to, _ := strings.Cut(parallel.ReplaceAllString(c.LinkName(l.Link), ""), " > ")
		left[from] -= l.Bytes
		left[to] += l.Bytes
	}
	for part, bytes := range left {
		if !strings.Contains(part, "GPU") {
			require.Zero(t, bytes, part)
		}
	}
}
