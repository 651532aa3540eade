package topo_test

import (
	"bytes"
	"fmt"
	"regexp"
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
	assert.Equal(t, c.Title(), topo.ShortName("far/slow.xml:2,dgx-h100:2"))
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

// without returns DGX H100 without some of its GPUs and NETs, by their numbers.
func without(t require.TestingT, name string, gpus, nets string) *topo.System {
	text, err := topo.XML("dgx-h100")
	require.NoError(t, err)
	text = regexp.MustCompile(`(?s)<gpu dev="[`+gpus+`]".*?</gpu>`).ReplaceAll(text, nil)
	text = regexp.MustCompile(`<net [^>]*dev="[`+nets+`]"[^>]*/>`).ReplaceAll(text, nil)
	rank := -1
	text = regexp.MustCompile(`rank="\d+"`).ReplaceAllFunc(text, func([]byte) []byte { rank++; return fmt.Appendf(nil, `rank="%d"`, rank) })
	m, err := topo.ReadXML(bytes.NewReader(text), name)
	require.NoError(t, err)
	return m
}

// Machines of any shape join: ranks count the GPUs that each has, NETs are on the
// rails that their names have elsewhere, and numbers that stand for no link carry
// nothing.
func TestMixedShapes(t *testing.T) {
	full, seven, half := open(t, "dgx-h100"), without(t, "seven.xml", "3", "-"), without(t, "half.xml", "-", "1357")
	c, err := topo.NewMixedCluster([]topo.Part{{Machine: seven, Nodes: 1}, {Machine: full, Nodes: 1}, {Machine: half, Nodes: 1}}, 0, topo.RailOptimised)
	require.NoError(t, err)
	assert.Equal(t, 23, c.Ranks())
	assert.Equal(t, []int{0, 0, 1, 1, 2}, []int{c.NodeOf(0), c.NodeOf(6), c.NodeOf(7), c.NodeOf(14), c.NodeOf(15)})
	assert.Equal(t, []int{7, 8, 8, 8}, []int{c.RanksOn(0), c.RanksOn(1), c.RanksOn(2), c.RanksPerNode()})
	assert.Equal(t, 4, c.Rail(2, 2))
	assert.Equal(t, 8+8+4, c.Tiers()[0].Cables)
	from, _ := ends(c, c.Route(3, 7, 4, 4)[0])
	assert.Equal(t, "node 0 GPU 0000:50:00.0", from) // after the one that is missing
	assert.Equal(t, "7 GPUs of seven.xml take part, and 8 of dgx-h100", c.Differs())
	missing := 0
	for link := range c.Links() {
		if _, rate := c.Link(link); !c.Has(link) {
			missing++
			assert.Zero(t, rate)
		} else {
			assert.Positive(t, rate)
			place, local := c.Place(link)
			assert.Equal(t, link, c.LinkAt(place, local))
		}
	}
	// A GPU's links with its switches and the NVSwitch, and a NET's, both ways; and
	// the cables of missing NETs.
	assert.Equal(t, 3*len(full.Links)-len(seven.Links)-len(full.Links)-len(half.Links)+2*4, missing)
	even, err := topo.NewMixedCluster([]topo.Part{{Machine: seven, Nodes: 1}, {Machine: full, Nodes: 1}}, 7, topo.RailOptimised)
	require.NoError(t, err)
	assert.Empty(t, even.Differs())
}

// A mixture fails where one machine does.
func TestMixedClusterErrors(t *testing.T) {
	fast := open(t, "dgx-h100")
	for want, part := range map[string]topo.Part{
		"0 nodes of dgx-h100: want 1 to 16384, of all together":                   {Machine: fast},
		"1 nodes of no.xml: the machine has no <net> to join them by":             {Machine: without(t, "no.xml", "-", "0-7"), Nodes: 1},
		"5 GPUs of gb200x4: want 1 to 4":                                          {Machine: open(t, "gb200x4"), Nodes: 1},
		"fabric rail-optimised: rails: 1 NETs stand on rails, but dgx-h100 has 8": {Machine: fast, Nodes: 1, Rails: []int{0}},
	} {
		_, err := topo.NewMixedCluster([]topo.Part{part, {Machine: without(t, "half.xml", "-", "1357"), Nodes: 1}}, 5, topo.RailOptimised)
		assert.EqualError(t, err, want)
	}
}
