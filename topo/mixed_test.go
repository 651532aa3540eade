package topo_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tutti/model/units"
	"tutti/topo"
)

// changed returns DGX H100 with some of its text replaced, old by new.
func changed(t *testing.T, name string, changes ...string) *topo.System {
	text, err := topo.XML("dgx-h100")
	require.NoError(t, err)
	m, err := topo.ReadXML(strings.NewReader(strings.NewReplacer(changes...).Replace(string(text))), name)
	require.NoError(t, err)
	return m
}

// Each machine of a mixture has links at rates of its own, what all have in common
// is the least, and the switches are built for the fastest.
func TestMixedCluster(t *testing.T) {
	fast := open(t, "dgx-h100")
	slow := changed(t, "slow.xml", `speed="400000"`, `speed="200000"`, `sm="90"`, `sm="80"`)
	c, err := topo.NewMixedCluster([]topo.Part{{Machine: slow, Nodes: 2}, {Machine: fast, Nodes: 2}}, 0, topo.RailOptimised)
	require.NoError(t, err)
	assert.Equal(t, "slow.xml:2,dgx-h100:2", c.Title())
	assert.Equal(t, 80, c.Machine.SM())
	assert.Equal(t, []int{80, 90}, []int{c.SM(15), c.SM(16)})
	rates := func(from, to int) (list []float64) {
		for _, link := range c.Route(from, to, 0, 0) {
			if kind, rate := c.Link(link); kind == topo.LinkNET {
				list = append(list, float64(rate/units.Gbps))
			}
		}
		return list
	}
	assert.Equal(t, []float64{200, 200, 400, 400}, rates(8, 16)) // NIC to port to leaf to port to NIC
	assert.Equal(t, []float64{400, 400, 200, 200}, rates(24, 0))
	assert.Equal(t, []float64{400, 400, 400, 400}, rates(16, 24))
	leaves := c.Tiers()[0]
	assert.Equal(t, 400*units.Gbps, leaves.CableRate)
	assert.Equal(t, 2*8*600*units.Gbps, leaves.Capacity)
}

// A mixture is of one build.
func TestMixedClusterErrors(t *testing.T) {
	fast := open(t, "dgx-h100")
	for want, other := range map[string]*topo.System{
		"machines of one cluster may differ in speed alone, and dgx-h100 has 8 nodes of type GPU, and gb200x4 has 4: want machines of one build":                                                                        open(t, "gb200x4"),
		"machines of one cluster may differ in speed alone, and GPU 0000:10:00.0 of dgx-h100 has GPUDirect RDMA true and CollNet false, and 0000:10:00.0 of no-gdr.xml has false and false: want machines of one build": changed(t, "no-gdr.xml", `gdr="1"`, `gdr="0"`),
		"machines of one cluster may differ in speed alone, and link 64 of dgx-h100 joins GPU 0000:10:00.0 and NVS 0 by NVL, and that of apart.xml GPU 0000:20:00.0 and NVS 0 by NVL: want machines of one build": changed(t, "apart.xml",
			"rank=\"0\" gdr=\"1\">\n          <nvlink target=\"fffffff:ffff:ff\" count=\"18\" tclass=\"0x068000\"/>", `rank="0" gdr="1">`),
		"the NETs of dgx-h100 are on rails [0 1 2 3 4 5 6 7] by their names, and those of twins.xml on [0 0 1 2 3 4 5 6]: want the same names": changed(t, "twins.xml", `"mlx5_1"`, `"mlx5_0"`),
		"0 nodes of none.xml: want 1 to 16384, of all together":                                                                                nil,
	} {
		parts := []topo.Part{{Machine: fast, Nodes: 1}, {Machine: other, Nodes: 1}}
		if other == nil {
			parts = []topo.Part{{Machine: fast, Nodes: 1}, {Machine: changed(t, "none.xml"), Nodes: 0}}
		}
		_, err := topo.NewMixedCluster(parts, 0, topo.RailOptimised)
		assert.EqualError(t, err, want)
	}
}
