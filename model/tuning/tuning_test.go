package tuning_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tutti/model"
	"tutti/model/tuning"
	"tutti/model/units"
	"tutti/topo"
	"tutti/topo/search"
)

func tune(t *testing.T, machine string, nodes int) *tuning.Model {
	m, err := topo.Open(machine)
	require.NoError(t, err)
	c, err := topo.NewCluster(m, nodes, 0, topo.RailOptimised)
	require.NoError(t, err)
	return tuning.New(c, search.All(c))
}

// Every latency and bandwidth of AllReduce equals NCCL's table to the digit
// that it prints.
func TestCostsAreNCCLs(t *testing.T) {
	text, err := os.ReadFile("testdata/nccl-2.28.3.txt")
	require.NoError(t, err)
	titles := map[string]model.Algorithm{"Tree": model.Tree, "Ring": model.Ring, "NVLS": model.NVLS, "NVLSTree": model.NVLSTree}
	var m *tuning.Model
	var columns []string
	compared := 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		for i := range cells {
			cells[i] = strings.Join(strings.Fields(cells[i]), "")
		}
		switch {
		case strings.HasPrefix(line, "==="):
			var machine string
			var nodes int
			_, err := fmt.Sscanf(line, "=== %s nodes=%d", &machine, &nodes)
			require.NoError(t, err)
			m = tune(t, "../../topo/search/testdata/"+machine, nodes)
		case cells[0] == "Algorithm":
			columns = cells[1:]
		case cells[0] == "AllReduce":
			for i, column := range columns[:len(columns)-1] {
				algorithm, ours := titles[column]
				for p := range model.Protocols() {
					want := cells[1+3*i+min(p, 2)]
					if !ours || strings.HasSuffix(want, "/0.0") {
						continue
					}
					cost := m.Cost(algorithm, model.Protocol(p))
					assert.Equal(t, want, fmt.Sprintf("%.1f/%.1f", cost.Latency, cost.Bandwidth), "%s %v", column, model.Protocol(p))
					compared++
				}
			}
		}
	}
	assert.Equal(t, 11*6+9, compared)
}

// Where NCCL's choice of algorithm falls on ring or tree, the protocol is the
// one that it takes (its own times by size, machine by machine).
func TestProtocolIsNCCLs(t *testing.T) {
	one, two := tune(t, "h200x4", 1), tune(t, "dgx-h100", 2)
	for _, c := range []struct {
		m    *tuning.Model
		a    model.Algorithm
		size units.Bytes
		want model.Protocol
		us   float64
	}{
		{one, model.Ring, 8, model.LL, 10.20},
		{one, model.Ring, 2 * units.MiB, model.LL, 32.51},
		{one, model.Ring, 4 * units.MiB, model.LL128, 44.40},
		{one, model.Ring, 8 * units.MiB, model.LL128, 63.39},
		{one, model.Ring, 16 * units.MiB, model.Simple, 98.71},
		{one, model.Ring, 8 * units.GiB, model.Simple, 35820.20},
		{two, model.Tree, 8, model.LL, 25.20},
		{two, model.Tree, 128 * units.KiB, model.LL, 41.02},
		{two, model.Tree, 256 * units.KiB, model.LL128, 52.00},
		{two, model.NVLSTree, 512 * units.KiB, model.Simple, 55.13},
	} {
		assert.Equal(t, c.want, c.m.Protocol(c.a, c.size), "%v %v", c.a, c.size)
		assert.InDelta(t, c.us, c.m.Time(c.a, c.want, c.size), .006, "%v %v", c.a, c.size)
	}
}

// The blocks that NCCL launched on 4x H200 for ring LL: 1 to 16 KiB, then one
// more for each 16 KiB.
func TestChannels(t *testing.T) {
	m := tune(t, "h200x4", 1)
	for size, want := range map[units.Bytes]int{units.KiB: 1, 16 * units.KiB: 1, 32 * units.KiB: 2, 256 * units.KiB: 16, 512 * units.KiB: 24, units.GiB: 24} {
		assert.Equal(t, want, m.Channels(model.Ring, model.LL, size), size.String())
	}
	assert.Equal(t, 24, m.Channels(model.Ring, model.Simple, 16*units.MiB))
	assert.Equal(t, 16, m.Channels(model.NVLS, model.Simple, 8))
	assert.Zero(t, m.Cost(model.NVLSTree, model.Simple))
}
