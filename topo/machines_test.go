package topo_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tutti/topo"
)

// What the built-in machines are, and how far the best NIC is from each GPU.
func TestMachines(t *testing.T) {
	for name, want := range map[string]struct {
		gpus, sm, nvlinks, nets int
		netRate                 string
		peers                   topo.PathType // the worst
		nearest                 topo.PathType
	}{
		"a100x4-pcie":      {4, 80, 12, 2, "25.0 GB/s", topo.PathSYS, topo.PathPIX},
		"aws-p4d":          {8, 80, 12, 4, "12.5 GB/s", topo.PathNVL, topo.PathPIX},
		"aws-p5":           {8, 90, 18, 32, "12.5 GB/s", topo.PathNVL, topo.PathPIX},
		"azure-nd-a100-v4": {8, 80, 12, 8, "25.0 GB/s", topo.PathNVL, topo.PathPIX},
		"azure-nd-h100-v5": {8, 90, 18, 8, "50.0 GB/s", topo.PathNVL, topo.PathPIX},
		"azure-nd-h200-v5": {8, 90, 18, 8, "50.0 GB/s", topo.PathNVL, topo.PathPIX},
		"dgx-1v":           {8, 70, 6, 4, "12.5 GB/s", topo.PathNVB, topo.PathPIX},
		"dgx-a100":         {8, 80, 12, 8, "25.0 GB/s", topo.PathNVL, topo.PathPIX},
		"dgx-b200":         {8, 100, 18, 8, "50.0 GB/s", topo.PathNVL, topo.PathPIX},
		"dgx-h100":         {8, 90, 18, 8, "50.0 GB/s", topo.PathNVL, topo.PathPIX},
		"dgx-h200":         {8, 90, 18, 8, "50.0 GB/s", topo.PathNVL, topo.PathPIX},
		"gb200-nvl72":      {72, 100, 18, 72, "50.0 GB/s", topo.PathNVL, topo.PathPHB},
		"gb200x4":          {4, 100, 18, 4, "50.0 GB/s", topo.PathNVL, topo.PathPHB},
		"h200x2":           {2, 90, 18, 2, "50.0 GB/s", topo.PathNVL, topo.PathPIX},
		"h200x4":           {4, 90, 18, 1, "1.2 GB/s", topo.PathNVL, topo.PathPHB},
		"l40x4-pcie":       {4, 89, 0, 2, "12.5 GB/s", topo.PathSYS, topo.PathPIX},
	} {
		s := open(t, name)
		assert.Len(t, s.GPUs, want.gpus, name)
		assert.Equal(t, want.sm, s.SM(), name)
		require.Len(t, s.NETs, want.nets, name)
		worst := topo.PathLOC
		for _, g := range s.GPUs {
			nvlinks := 0
			for _, l := range s.Nodes[g].Out {
				nvlinks += s.NVLinks(l)
			}
			assert.Equal(t, want.nvlinks, nvlinks, name)
			for _, peer := range s.GPUs {
				worst = max(worst, s.Path(g, peer).Type)
			}
			nearest := topo.PathDIS
			for _, net := range s.NETs {
				assert.Equal(t, want.netRate, s.Links[s.Nodes[net].Out[0]].Rate.String(), name)
				nearest = min(nearest, s.Path(net, g).Type)
			}
			if want.nearest == topo.PathPHB { // C2C counts as nearer
				nearest = max(nearest, topo.PathPHB)
			}
			assert.Equal(t, want.nearest, nearest, name)
		}
		assert.Equal(t, want.peers, worst, name)
		for _, alias := range topo.Aliases(name) {
			other := open(t, alias)
			assert.Equal(t, alias, other.Name)
			assert.Len(t, other.Nodes, len(s.Nodes))
		}
	}
	assert.Len(t, topo.Machines(), 16)
}
