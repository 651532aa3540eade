package search_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"tutti/model/units"
	"tutti/topo"
	"tutti/topo/search"
)

// On whatever machine, channels pass every GPU once, have ports exactly between
// machines, keep to the types of path that the graph states, and together take no
// more of any link than it has.
func TestRandomMachines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := randomCluster(t)
		g := search.Find(c, search.Options{CollNet: true})
		m := c.Machine.Restrict(c.RanksPerNode(), c.Nodes > 1)
		for _, graph := range []search.Graph{g.Ring, g.Tree, g.NVLS, g.CollNetChain, g.CollNetDirect} {
			for _, ch := range graph.Channels {
				require.Equal(t, c.Nodes > 1, ch.In >= 0 && ch.Out >= 0)
				order := slices.Sorted(slices.Values(ch.GPUs))
				require.Len(t, slices.Compact(order), len(ch.GPUs))
				if graph.Pattern != search.NVLSPattern {
					require.Len(t, ch.GPUs, c.RanksPerNode())
				}
			}
		}
		require.NotEmpty(t, g.Ring.Channels)
		require.NotEmpty(t, g.Tree.Channels)
		if g.Ring.BwIntra == 100*units.MBps {
			return // no way was found, and the GPUs are in order
		}
		load := make([]units.Rate, len(m.Links))
		use := func(from, to int, bw units.Rate, worst topo.PathType) {
			p := m.Path(from, to)
			require.LessOrEqual(t, p.Type, worst)
			for _, l := range p.Links {
				load[l] += bw
			}
		}
		for _, ch := range g.Ring.Channels {
			k := len(ch.GPUs)
			for i, gpu := range ch.GPUs {
				if i+1 < k || ch.In < 0 {
					use(m.GPUs[gpu], m.GPUs[ch.GPUs[(i+1)%k]], g.Ring.BwIntra, g.Ring.TypeIntra)
				}
			}
			if ch.In >= 0 {
				use(m.NETs[ch.In], m.GPUs[ch.GPUs[0]], g.Ring.BwInter, g.Ring.TypeInter)
				use(m.GPUs[ch.GPUs[k-1]], m.NETs[ch.Out], g.Ring.BwInter, g.Ring.TypeInter)
			}
		}
		for l, taken := range load {
			require.LessOrEqual(t, taken, m.Links[l].Rate+units.MBps, "link %d", l)
		}
		k := search.Connect(c, g)
		for ch := range k.Collective {
			for rank := range c.Ranks() {
				require.Equal(t, rank, k.Rings.At(ch, k.Rings.Index(ch, rank)))
				p := k.Trees.At(ch, rank)
				for _, child := range p.Down() {
					require.Equal(t, rank, k.Trees.At(ch, child).Up)
				}
			}
		}
	})
}

// randomCluster draws a machine of one or two sockets, with or without PCI
// switches, NVLinks and ports.
func randomCluster(t *rapid.T) *topo.Cluster {
	var text strings.Builder
	bus := 0
	slot := func(class, inside string, width int) string {
		bus++
		return fmt.Sprintf(`<pci busid="%04x:00.0" class="%s" link_speed="16.0 GT/s PCIe" link_width="%d">%s</pci>`, bus, class, width, inside)
	}
	some := func(label string, lo, hi int) int { return rapid.IntRange(lo, hi).Draw(t, label) }
	sm := rapid.SampledFrom([]int{70, 80, 90, 100}).Draw(t, "sm")
	switched := rapid.Bool().Draw(t, "NVSwitch")
	vendor := rapid.SampledFrom([]string{topo.VendorIntel, topo.VendorAMD}).Draw(t, "vendor")
	gpus, nets := 0, 0
	text.WriteString(`<system version="1">`)
	sockets := some("sockets", 1, 2)
	for numa := range sockets {
		fmt.Fprintf(&text, `<cpu numaid="%d" arch="x86_64" vendor="%s" familyid="6" modelid="143">`, numa, vendor)
		roots := some("roots", 1, 2)
		for root := range roots {
			var inside strings.Builder
			least := 0
			if gpus == 0 && numa == sockets-1 && root == roots-1 {
				least = 1 // a machine has some
			}
			for range some("GPUs", least, 2) {
				link := ""
				if switched {
					link = fmt.Sprintf(`<nvlink count="%d" tclass="0x068000"/>`, some("links", 1, 18))
				}
				gpus++
				inside.WriteString(slot("0x030200", fmt.Sprintf(`<gpu sm="%d" gdr="%d">%s</gpu>`, sm, some("GPU's gdr", 0, 1), link), 16))
			}
			for range some("ports", 0, 2) {
				net := fmt.Sprintf(`<net dev="%d" speed="%d" guid="0x%x" port="1" gdr="1" coll="1"/>`, nets, some("Gb/s", 1, 8)*100000, some("chip", 0, 9))
				nets++
				inside.WriteString(slot("0x020700", "<nic>"+net+"</nic>", 16))
			}
			if rapid.Bool().Draw(t, "switch") {
				text.WriteString(slot("0x060400", inside.String(), some("width", 1, 2)*8))
			} else {
				text.WriteString(inside.String())
			}
		}
		text.WriteString("</cpu>")
	}
	text.WriteString("</system>")
	m, err := topo.ReadXML(strings.NewReader(text.String()), "random")
	require.NoError(t, err)
	nodes := 1
	if nets > 0 {
		nodes = some("nodes", 1, 5)
	}
	c, err := topo.NewCluster(m, nodes, some("ranks", 1, gpus), topo.RailOptimised)
	require.NoError(t, err)
	return c
}
