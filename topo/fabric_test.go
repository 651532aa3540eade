package topo_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"tutti/model/units"
	"tutti/topo"
)

// drawFabric draws a sound fabric with room for the given number of machines.
func drawFabric(t *rapid.T, nodes int) topo.Fabric {
	f := topo.Fabric{
		Name: "drawn", Seed: rapid.Uint64().Draw(t, "seed"),
		Routing: rapid.SampledFrom([]topo.Routing{topo.Adaptive, topo.ECMP}).Draw(t, "routing"),
	}
	small := rapid.IntRange(1, 4)
	group, planes, apart := 1, 1, rapid.Bool().Draw(t, "per rail")
	for i := range rapid.IntRange(1, topo.MaxLevels).Draw(t, "levels") {
		l := topo.Level{Switches: 1, Links: 1, PerRail: apart, Reduces: true}
		if i > 0 {
			planes *= small.Draw(t, "parents")
			l.Switches, l.Links = planes, small.Draw(t, "links")
			l.Oversubscription = rapid.SampledFrom([]float64{0, 1, 2, 7}).Draw(t, "oversubscription")
		}
		group *= small.Draw(t, "children")
		l.Nodes = group
		apart = apart && rapid.Bool().Draw(t, "still per rail")
		f.Levels = append(f.Levels, l)
	}
	top := &f.Levels[len(f.Levels)-1]
	top.PerRail = false
	if top.Nodes < nodes {
		top.Nodes = 0
	}
	return f
}

// ends splits what LinkName says, and leaves out which of parallel cables it is.
func ends(c *topo.Cluster, link int) (from, to string) {
	from, to, _ = strings.Cut(regexp.MustCompile(` cable \d+`).ReplaceAllString(c.LinkName(link), ""), " > ")
	return from, to
}

func checkChain(t require.TestingT, c *topo.Cluster, route []int) {
	for i := 1; i < len(route); i++ {
		_, at := ends(c, route[i-1])
		next, _ := ends(c, route[i])
		require.Equal(t, at, next)
	}
}

// Whatever the fabric: every pair of ranks is joined by a chain of links that
// climbs and descends equally far, the same one each time; and from every rank
// a reduction meets at the same switch.
func TestFabricRoutes(t *testing.T) {
	machine := open(t, "dgx-h100")
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.IntRange(2, 70).Draw(t, "nodes")
		c, err := topo.NewCluster(machine, nodes, 0, drawFabric(t, nodes))
		require.NoError(t, err)
		c.ThroughHost = rapid.Bool().Draw(t, "through the host")
		rank := rapid.IntRange(0, c.Ranks()-1)
		a, b, flow := rank.Draw(t, "a"), rank.Draw(t, "b"), rapid.IntRange(0, 9).Draw(t, "flow")
		out, in := rapid.IntRange(0, 7).Draw(t, "out"), rapid.IntRange(0, 7).Draw(t, "in")
		route := c.RouteFlow(a, b, out, in, flow)
		require.Equal(t, route, c.RouteFlow(a, b, out, in, flow))
		checkChain(t, c, route)
		for _, dead := range route { // only cables have others beside them
			if around := c.RouteAround(a, b, out, in, flow, func(l int) bool { return l == dead }); around != nil {
				checkChain(t, c, around)
				require.NotContains(t, around, dead)
				require.Len(t, around, len(route))
				require.True(t, c.BetweenSwitches(dead))
			}
		}
		require.Equal(t, route, c.RouteAround(a, b, out, in, flow, func(l int) bool { return l == -1 }))
		if a/8 == b/8 {
			return
		}
		var up, down int
		for _, l := range route {
			require.Less(t, l, c.Links())
			if first := c.Tiers()[0].First; l >= first && (l-first)%2 == 0 {
				up++
			} else if l >= first {
				down++
			}
		}
		require.Equal(t, up, down)

		to, from := c.ToRoot(a, out), c.FromRoot(b, out)
		checkChain(t, c, to)
		checkChain(t, c, from)
		_, root := ends(c, to[len(to)-1])
		other, _ := ends(c, from[0])
		require.Equal(t, root, other)
		require.True(t, c.Reduces(out))
	})
}

// What a tier's links carry is its capacity, either way, and that is what comes
// up from below over the oversubscription.
func TestFabricCapacity(t *testing.T) {
	machine := open(t, "dgx-h100")
	rapid.Check(t, func(t *rapid.T) {
		f := drawFabric(t, 1)
		last := len(f.Levels) - 1
		nodes := rapid.IntRange(1, 3).Draw(t, "of the largest group") * f.Levels[max(0, last-1)].Nodes
		if nodes < 2 {
			return
		}
		f.Levels[last].Nodes = 0
		c, err := topo.NewCluster(machine, nodes, 0, f)
		require.NoError(t, err)
		want := 400 * units.Gbps * units.Rate(8*nodes)
		for i, tier := range c.Tiers() {
			if over := f.Levels[i].Oversubscription; over > 0 {
				want /= units.Rate(over)
			}
			var up, down units.Rate
			for l := tier.First; l < tier.First+tier.Links; l += 2 {
				_, rate := c.Link(l)
				up += rate
				_, rate = c.Link(l + 1)
				down += rate
			}
			require.InEpsilon(t, float64(want), float64(tier.Capacity), 1e-9)
			require.InEpsilon(t, float64(want), float64(up), 1e-9)
			require.InEpsilon(t, float64(want), float64(down), 1e-9)
			require.InEpsilon(t, float64(want), float64(tier.CableRate)*float64(tier.Cables), 1e-9)
			if f.Routing == topo.Adaptive && i > 0 {
				require.Less(t, tier.Links, c.Tiers()[0].Links*8)
			}
		}
	})
}

// ECMP's hash spreads flows over all cables, unevenly.
func TestECMP(t *testing.T) {
	f := topo.Fabric{Name: "ecmp", Routing: topo.ECMP, Levels: []topo.Level{
		{Nodes: 1, Switches: 1, Links: 1}, {Switches: 4, Links: 2},
	}}
	c, err := topo.NewCluster(open(t, "dgx-h100"), 2, 0, f)
	require.NoError(t, err)
	flows := map[string]int{}
	for flow := range 64 {
		route := c.RouteFlow(0, 8, 0, 0, flow)
		flows[c.LinkName(route[4])]++
	}
	require.Len(t, flows, 8)
	assert.Contains(t, flows, "leaf 0 > spine 3 cable 1")
	for cable, n := range flows {
		assert.InDelta(t, 8, n, 7, cable)
	}
	f.Seed = 1
	other, err := topo.NewCluster(c.Machine, 2, 0, f)
	require.NoError(t, err)
	moved := 0
	for flow := range 64 {
		if other.RouteFlow(0, 8, 0, 0, flow)[4] != c.RouteFlow(0, 8, 0, 0, flow)[4] {
			moved++
		}
	}
	assert.Greater(t, moved, 40)
}

// The switches of the DGX SuperPOD reference architecture for 16 scalable units:
// 128 leaves, 128 spines, 64 cores, and 4,096 cables in each tier.
func TestTiers(t *testing.T) {
	f := topo.Fabric{Name: "superpod", Levels: []topo.Level{
		{Nodes: 32, PerRail: true, Switches: 1, Links: 1},
		{Nodes: 512, PerRail: true, Switches: 16, Links: 2},
		{Switches: 64, Links: 8, Latency: 250 * units.Nanosecond},
	}}
	c, err := topo.NewCluster(open(t, "dgx-h100"), 512, 0, f)
	require.NoError(t, err)
	switches := []int{128, 128, 64}
	for i, tier := range c.Tiers() {
		assert.Equal(t, switches[i], tier.Switches)
		assert.Equal(t, 4096, tier.Cables)
		assert.Equal(t, 400*units.Gbps, tier.CableRate)
		assert.LessOrEqual(t, tier.Down+tier.Up, 64)
	}
	assert.Equal(t, 250*units.Nanosecond, c.Latency(c.Tiers()[2].First+1))
	assert.Zero(t, c.Latency(c.Tiers()[1].First))
	assert.Zero(t, c.Latency(0))
	assert.False(t, c.Reduces(0))
	assert.Equal(t, 5, c.Rail(0, 5))
}

// A cluster stores nothing per machine.
func TestClusterIsLazy(t *testing.T) {
	machine := open(t, "dgx-h100")
	assert.Less(t, testing.AllocsPerRun(10, func() {
		c, err := topo.NewCluster(machine, topo.MaxNodes, 0, topo.RailOptimised)
		require.NoError(t, err)
		require.Equal(t, 131072, c.Ranks())
	}), 50.)
}

// The largest cluster, 131,072 GPUs: building it, and finding routes.
func BenchmarkCluster(b *testing.B) {
	machine := open(b, "dgx-h100")
	for b.Loop() {
		c, err := topo.NewCluster(machine, topo.MaxNodes, 0, topo.RailOptimised)
		require.NoError(b, err)
		for rank := range 1000 {
			c.Route(rank, c.Ranks()-1-rank, rank%8, rank%8)
		}
	}
}

func TestFabricErrors(t *testing.T) {
	machine := open(t, "dgx-h100")
	leaf := topo.Level{Nodes: 4, Switches: 1, Links: 1}
	spine := topo.Level{Switches: 4, Links: 1}
	for want, f := range map[string]topo.Fabric{
		"fabric f: levels: 0 levels of switches: want 1 to 3":                                                         {},
		"fabric f: leaf.nodes: missing: the level above needs to know how many machines a leaf joins":                 {Levels: []topo.Level{{Switches: 1, Links: 1}, spine}},
		"fabric f: spine.nodes: 6 machines: want a multiple of the leaf's 4":                                          {Levels: []topo.Level{leaf, {Nodes: 6, Switches: 4, Links: 1}}},
		"fabric f: spine.nodes: room for 8 machines, and there are 9":                                                 {Levels: []topo.Level{leaf, {Nodes: 8, Switches: 4, Links: 1}}},
		"fabric f: spine.switches: 0: want 1 to 16384":                                                                {Levels: []topo.Level{leaf, {Links: 1}}},
		"fabric f: leaf.switches: 2: a port has one cable, want 1":                                                    {Levels: []topo.Level{{Nodes: 4, Switches: 2, Links: 1}, spine}},
		"fabric f: spine.per-rail: apart again after they met at the leaf":                                            {Levels: []topo.Level{leaf, {PerRail: true, Switches: 4, Links: 1}}},
		"fabric f: leaf.per-rail: apart at the top: want a level at which they meet":                                  {Levels: []topo.Level{{PerRail: true, Switches: 1, Links: 1}}},
		"fabric f: spine.oversubscription: -1: want 0.01 to 1000":                                                     {Levels: []topo.Level{leaf, {Switches: 4, Links: 1, Oversubscription: -1}}},
		"fabric f: spine.links: 0 cables: want 1 to 1024, and 1 at a port":                                            {Levels: []topo.Level{leaf, {Switches: 4}}},
		"fabric f: spine.rate: -1 Gb/s: want 0.001 to 1000000":                                                        {Levels: []topo.Level{leaf, {Switches: 4, Links: 1, Rate: -units.Gbps}}},
		"fabric f: rails: 2 NETs stand on rails, but dgx-h100 has 8":                                                  {Levels: []topo.Level{leaf, spine}, Rails: []int{0, 1}},
		"fabric f: rails: rail 8: want 0 to 7":                                                                        {Levels: []topo.Level{leaf, spine}, Rails: []int{0, 1, 2, 3, 4, 5, 6, 8}},
		"fabric f: rails: 2 rails are used of 3: want every one":                                                      {Levels: []topo.Level{leaf, spine}, Rails: []int{0, 0, 2, 2, 0, 0, 0, 0}},
		"fabric f: core.switches: 6: want a multiple of the 4 in a group of spine switches, so that each has its own": {Levels: []topo.Level{leaf, {Nodes: 8, Switches: 4, Links: 1}, {Switches: 6, Links: 1}}},
	} {
		f.Name = "f"
		_, err := topo.NewCluster(machine, 9, 0, f)
		assert.EqualError(t, err, want)
	}
}
