package search_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"tutti/model/units"
	"tutti/topo"
	"tutti/topo/search"
)

func cluster(t testing.TB, machine string, nodes, gpus int) *topo.Cluster {
	m, err := topo.Open(machine)
	require.NoError(t, err)
	c, err := topo.NewCluster(m, nodes, gpus, topo.RailOptimised)
	require.NoError(t, err)
	return c
}

// The search and the connection of these machines are NCCL's own, line by line.
func TestGolden(t *testing.T) {
	text, err := os.ReadFile("testdata/golden.txt")
	require.NoError(t, err)
	blocks := strings.Split(string(text), "=== ")[1:]
	for _, block := range blocks {
		header, want, _ := strings.Cut(block, "\n")
		t.Run(header, func(t *testing.T) {
			var file string
			var nodes, nvls, collnet int
			_, err := fmt.Sscanf(header, "xml/%s nodes=%d nvls=%d collnet=%d", &file, &nodes, &nvls, &collnet)
			require.NoError(t, err)
			c := cluster(t, "testdata/"+file, nodes, 0)
			g := search.Find(c, search.Options{NoNVLS: nvls == 0, CollNet: collnet == 1})
			var got strings.Builder
			require.NoError(t, search.WriteNCCL(&got, c, g, false))
			assert.Equal(t, want, got.String())
		})
	}
	assert.Equal(t, 22, len(blocks))
}

// Rings pass through every rank once, At and Index undo each other, and data
// that leaves a machine by a rail enters the next one by the same rail when the
// number of machines is even, and all are equal.
func TestRings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, g := clusterOf(t)
		rings := search.Connect(c, g).Rings
		for ch := range rings.Channels() {
			seen := make([]bool, rings.Ranks())
			for i := range seen {
				rank := rings.At(ch, i)
				require.False(t, seen[rank])
				seen[rank] = true
				require.Equal(t, i, rings.Index(ch, rank))
				out, in := rings.NETs(ch, rank)
				require.Equal(t, c.NodeOf(rank) != c.NodeOf(rings.At(ch, i+1)), out >= 0)
				if c.Nodes%2 == 0 && !c.Mixed() {
					require.Equal(t, out, in)
				}
			}
		}
	})
}

// Trees over all ranks span them, and parents and children agree.
func TestTrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, g := clusterOf(t)
		if c.RanksPerNode() > 1 && rapid.Bool().Draw(t, "split") { // which only graph files ask for
			g.Tree.Pattern = search.SplitTree
		}
		trees := search.NewTrees(c, g.Tree)
		ch := rapid.IntRange(0, trees.Channels()-1).Draw(t, "channel")
		roots, children := 0, 0
		for rank := range trees.Ranks() {
			p := trees.At(ch, rank)
			if p.Up < 0 {
				roots++
			}
			require.LessOrEqual(t, len(p.Down()), 3)
			children += len(p.Down())
			for _, child := range p.Down() {
				require.Equal(t, rank, trees.At(ch, child).Up)
			}
		}
		require.Equal(t, 1, roots)
		require.Equal(t, trees.Ranks()-1, children)
	})
}

func clusterOf(t *rapid.T) (*topo.Cluster, search.Graphs) {
	var parts []topo.Part
	kinds := ""
	for range rapid.IntRange(1, 2).Draw(t, "parts") {
		name := rapid.SampledFrom([]string{"testdata/h100x8.xml", "testdata/dgxa100.xml", "testdata/l40x4_pcie.xml"}).Draw(t, "machine")
		if opened[name] == nil {
			m, err := topo.Open(name)
			require.NoError(t, err)
			opened[name] = m
		}
		parts = append(parts, topo.Part{Machine: opened[name], Nodes: rapid.IntRange(1, 20).Draw(t, "nodes")})
		kinds += name
	}
	gpus := rapid.SampledFrom([]int{1, 2, 0}).Draw(t, "gpus")
	c, err := topo.NewMixedCluster(parts, gpus, topo.RailOptimised)
	require.NoError(t, err)
	key := fmt.Sprint(kinds, gpus, c.Nodes > 1)
	if _, known := found[key]; !known {
		found[key] = search.All(c)
	}
	return c, found[key]
}

// found is what was searched before: further nodes change nothing.
var found, opened = map[string]search.Graphs{}, map[string]*topo.System{}

// The rings over two machines of four GPUs are those that Penny's kernel walks:
// from every rank to send_peer, as its source computes it.
func TestRailRings(t *testing.T) {
	const perNode = 8
	for _, nodes := range []int{2, 4, 6} {
		c := cluster(t, "testdata/h100x8.xml", nodes, perNode)
		g, err := search.RailRings(c)
		require.NoError(t, err)
		rings := search.NewRings(c, g)
		require.Equal(t, perNode, rings.Channels())
		for ring := range rings.Channels() {
			next, at := make([]int, c.Ranks()), 0
			for range c.Ranks() { // as for an even ring
				node, local := at/perNode, at%perNode
				odd, pair := node%2 == 1, ring/2*2
				var to int
				switch {
				case local == pair && !odd, local == pair+1 && odd:
					to = (at + perNode) % c.Ranks()
				case odd:
					to = node*perNode + (local+perNode-1)%perNode
				default:
					to = node*perNode + (local+1)%perNode
				}
				next[at], at = to, to
			}
			require.Zero(t, at)
			for rank := range next {
				from, to := rank, next[rank]
				if ring%2 == 1 { // odd rings run backwards
					from, to = to, from
				}
				require.Equal(t, to, rings.At(ring, rings.Index(ring, from)+1), "ring %d", ring)
				if out, in := rings.NETs(ring, from); from/perNode != to/perNode {
					require.Equal(t, out, in, "rings keep to their rail")
					require.Equal(t, from%perNode, out)
				}
			}
		}
	}
	_, err := search.RailRings(cluster(t, "testdata/h100x8.xml", 2, 3))
	assert.EqualError(t, err, "rail rings pair the GPUs of a machine, and 3 take part: want an even number")
	_, err = search.RailRings(cluster(t, "testdata/l40x4_pcie.xml", 2, 4))
	assert.EqualError(t, err, "rail rings need a NET for every GPU, and some share theirs")
}

// What NCCL's own search gave for these machines is known by its outline only.
func TestOutlines(t *testing.T) {
	gen6 := strings.NewReplacer(`speed="400000"`, `speed="800000"`, "32.0 GT/s PCIe", "64.0 GT/s PCIe")
	for _, c := range []struct {
		machine  string
		edit     *strings.Replacer
		nodes    int
		outlines []string
	}{
		{"testdata/gb200x4.xml", nil, 2, []string{"8x24/24 NVL/P2C", "8x48/24 NVL/P2C", "4x48/48 NVL/P2C", "16 32 16 2"}},
		{"testdata/b200x8.xml", gen6, 4, []string{"16x48/48 NVL/PIX", "16x48/48 NVL/PIX", "8x48/96 NVL/PIX", "32 32 32 2"}},
		{"testdata/l40x4_pcie.xml", nil, 4, []string{"2x12/12 SYS/SYS", "2x9/9 SYS/SYS", "0x0/0 LOC/LOC", "4 0 4 1"}},
		{"../testdata/modal-b200-8gpu-nvswitch.xml", nil, 2, []string{"9x12/12 NVL/PHB", "9x24/12 NVL/PHB", "8x6/6 NVL/PHB", "18 32 32 2"}},
	} {
		text, err := os.ReadFile(c.machine)
		require.NoError(t, err)
		if c.edit != nil {
			text = []byte(c.edit.Replace(string(text)))
		}
		m, err := topo.ReadXML(bytes.NewReader(text), c.machine)
		require.NoError(t, err)
		cluster, err := topo.NewCluster(m, c.nodes, 0, topo.RailOptimised)
		require.NoError(t, err)
		found := search.All(cluster)
		var got []string
		for _, g := range []search.Graph{found.Ring, found.Tree, found.NVLS} {
			got = append(got, fmt.Sprintf("%dx%g/%g %v/%v", len(g.Channels), g.BwIntra/units.GBps, g.BwInter/units.GBps, g.TypeIntra, g.TypeInter))
		}
		k := search.Connect(cluster, found)
		got = append(got, fmt.Sprint(k.Collective, k.NVLS, k.P2P, k.PerPeer))
		assert.Equal(t, c.outlines, got, c.machine)
	}
}

func TestNVLSRefuses(t *testing.T) {
	g := search.All(cluster(t, "h200x4", 1, 2))
	assert.Empty(t, g.NVLS.Channels)
	assert.EqualError(t, g.NVLSError, "NVLS needs three GPUs or more on a machine, and 2 take part")
}

// The machine of 8 GPUs and 8 NICs takes less than 20 ms.
func BenchmarkFind(b *testing.B) {
	for _, nodes := range []int{1, 2} {
		c := cluster(b, "testdata/h100x8.xml", nodes, 0)
		b.Run(fmt.Sprintf("h100x8/nodes=%d", nodes), func(b *testing.B) {
			for b.Loop() {
				search.All(c)
			}
		})
	}
}

// A cluster of 131,072 GPUs is searched and connected, and every rank of every
// ring and tree placed, in less than 5 s.
func BenchmarkConnect(b *testing.B) {
	c := cluster(b, "testdata/h100x8.xml", topo.MaxNodes, 0)
	for b.Loop() {
		k := search.Connect(c, search.All(c))
		for ch := range k.Collective {
			for rank := range c.Ranks() {
				if k.Rings.At(ch, k.Rings.Index(ch, rank)) != rank || k.Trees.At(ch, rank).Up == rank {
					b.Fatal("lost a rank")
				}
			}
		}
	}
	b.ReportMetric(float64(c.Ranks()), "GPUs")
}

// In a mixed cluster all machines take what the weakest allows, and each keeps its
// own way.
func TestMixedTakesTheWeakest(t *testing.T) {
	text, err := topo.XML("dgx-h100")
	require.NoError(t, err)
	variant := func(old, new string) *topo.System {
		m, err := topo.ReadXML(strings.NewReader(strings.ReplaceAll(string(text), old, new)), new)
		require.NoError(t, err)
		return m
	}
	fast, slow, one := variant("", ""), variant(`speed="400000"`, `speed="200000"`), variant(`"mlx5_3" dev="3" speed="400000"`, `"mlx5_3" dev="3" speed="200000"`)
	find := func(machines ...*topo.System) search.Graphs {
		var parts []topo.Part
		for _, m := range machines {
			parts = append(parts, topo.Part{Machine: m, Nodes: 4 / len(machines)})
		}
		c, err := topo.NewMixedCluster(parts, 0, topo.RailOptimised)
		require.NoError(t, err)
		return search.All(c)
	}
	for _, mixed := range []search.Graphs{find(fast, slow), find(slow, fast)} {
		assert.Equal(t, find(slow).Ring.BwInter, mixed.Ring.BwInter)
		assert.Equal(t, find(slow).Tree.BwInter, mixed.Tree.BwInter)
		assert.Equal(t, find(slow).NVLS.BwInter, mixed.NVLS.BwInter)
	}
	// Neither is weaker in all: the one has fewer channels, the other slower ones.
	a, b, both := find(fast).Ring, find(one).Ring, find(fast, one).Ring
	n := len(a.Channels)
	assert.Less(t, n, len(b.Channels))
	assert.Less(t, b.BwInter, a.BwInter)
	assert.Equal(t, a.Channels, both.On(0).Channels)
	assert.Equal(t, b.Channels[:n], both.On(1).Channels)
	for kind := range 2 {
		assert.Equal(t, b.BwInter, both.On(kind).BwInter)
		assert.Equal(t, b.TypeInter, both.On(kind).TypeInter)
	}
}
