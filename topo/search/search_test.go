package search_test

import (
	"bufio"
	"fmt"
	"math/bits"
	"os"
	"slices"
	"strconv"
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

// The graphs of these machines are NCCL's own, channel by channel: count,
// rates, path types, crossNic, order of GPUs and ports. (The tree pattern of a
// single machine is not compared beyond the chain.)
func TestGraphsAreNCCLs(t *testing.T) {
	f, err := os.Open("testdata/nccl-2.28.3.txt")
	require.NoError(t, err)
	defer f.Close()
	var c *topo.Cluster
	var block string
	compared := 0
	want := []string{}
	flush := func() {
		if len(want) == 0 {
			return
		}
		kind, _, _ := strings.Cut(want[0], " ")
		var g search.Graph
		var err error
		switch kind {
		case "RING":
			g = search.Ring(c)
		case "TREE":
			g = search.Tree(c)
		case "NVLS":
			g, err = search.NVLS(c)
			require.NoError(t, err)
		}
		assert.Equal(t, want, describe(kind, g), block)
		compared++
		want = nil
	}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line := strings.TrimRight(lines.Text(), " ")
		switch {
		case strings.HasPrefix(line, "==="):
			flush()
			var machine string
			var nodes int
			_, err := fmt.Sscanf(line, "=== %s nodes=%d", &machine, &nodes)
			require.NoError(t, err)
			block, c = line, cluster(t, "testdata/"+machine, nodes, 0)
		case strings.Contains(line, "Pattern"):
			flush()
			line, _, _ = strings.Cut(line, ", sameChannels")
			want = []string{strings.Join(strings.Fields(line), " ")}
		case strings.HasPrefix(line, "CHANNELS"):
			flush()
			var coll int
			_, err := fmt.Sscanf(line, "CHANNELS coll %d", &coll)
			require.NoError(t, err)
			assert.Equal(t, coll, search.NewRings(c, search.Ring(c)).Channels(), block)
			assert.Equal(t, coll, search.NewTrees(c, search.Tree(c)).Channels(), block)
		case strings.HasPrefix(line, "TREE0"):
			trees := search.NewTrees(c, search.Tree(c))
			half := trees.Channels() / 2
			got := fmt.Sprintf("TREE0 up/down ch0: %s  ch%d: %s", position(trees.At(0, 0)), half, position(trees.At(half, 0)))
			assert.Equal(t, line, got, block)
		case strings.Contains(line, " : "):
			want = append(want, strings.TrimSpace(line))
		}
	}
	flush()
	assert.Equal(t, 3*3*3+2*2, compared)
}

// describe writes a graph as NCCL logs it, the bus ids being those of the
// machine that NCCL was run on: 10000 for the first GPU, and so on.
func describe(kind string, g search.Graph) []string {
	cross := 0
	if g.CrossNic {
		cross = 2
	}
	out := []string{fmt.Sprintf("%s Pattern %d, crossNic %d, nChannels %d, bw %f/%f, type %s/%s", kind, g.Pattern, cross, len(g.Channels),
		float64(g.BwIntra/units.GBps), float64(g.BwInter/units.GBps), g.TypeIntra, g.TypeInter)}
	for i, ch := range g.Channels {
		var words []string
		if ch.In >= 0 {
			words = append(words, "NET/0-"+strconv.Itoa(ch.In))
		}
		for _, gpu := range ch.GPUs {
			words = append(words, fmt.Sprintf("GPU/0-%d", 10000*(gpu+1)))
		}
		if ch.Out >= 0 {
			words = append(words, "NET/0-"+strconv.Itoa(ch.Out))
		}
		out = append(out, fmt.Sprintf("%d : %s", i, strings.Join(words, " ")))
	}
	return out
}

// position writes a place in a tree as NCCL does: up -> three children.
func position(p search.Position) string {
	down := append(slices.Clone(p.Down()), -1, -1, -1)
	return fmt.Sprintf("%d -> %d/%d/%d", p.Up, down[0], down[1], down[2])
}

// For every number of nodes both trees span all of them, agree on who is whose
// parent, have two children a node at the most and logarithmic depth; and no
// node is inner in both but the one that an odd count forces.
func TestDoubleBtree(t *testing.T) {
	for n := 1; n <= 1024; n++ {
		inner := make([]int, n)
		for tree := range 2 {
			up, children := make([]int, n), 0
			for x := range n {
				up[x] = search.DoubleBtree(tree, n, x).Up
			}
			for x := range n {
				p := search.DoubleBtree(tree, n, x)
				down := p.Down()
				for _, child := range down {
					require.Equal(t, x, up[child], "tree %d of %d, child %d", tree, n, child)
				}
				if len(down) > 0 {
					inner[x]++
				}
				children += len(down)
				depth := 0
				for at := up[x]; at >= 0 && depth < n; at = up[at] {
					depth++
				}
				if len(down) > 2 || depth > bits.Len(uint(n)) {
					t.Fatalf("tree %d of %d: node %d has %d children and depth %d", tree, n, x, len(down), depth)
				}
			}
			require.Equal(t, n-1, children) // and so a single root
		}
		both := 0
		for _, trees := range inner {
			if trees == 2 {
				both++
			}
		}
		require.LessOrEqual(t, both, 1, "%d nodes", n)
	}
}

// Rings pass through every rank once, At and Index undo each other, and data
// that leaves a machine by a rail enters the next one by the same rail when the
// number of machines is even.
func TestRings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := clusterOf(t)
		rings := search.NewRings(c, search.Ring(c))
		for ch := range rings.Channels() {
			seen := make([]bool, rings.Ranks())
			for i := range seen {
				rank := rings.At(ch, i)
				require.False(t, seen[rank])
				seen[rank] = true
				require.Equal(t, i, rings.Index(ch, rank))
				out, in := rings.NETs(ch, rank)
				require.Equal(t, rank/c.RanksPerNode() != rings.At(ch, i+1)/c.RanksPerNode(), out >= 0)
				if c.Nodes%2 == 0 {
					require.Equal(t, out, in)
				}
			}
		}
	})
}

// Trees over all ranks span them, and parents and children agree.
func TestTrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := clusterOf(t)
		trees := search.NewTrees(c, search.Tree(c))
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

func clusterOf(t *rapid.T) *topo.Cluster {
	m, err := topo.Open(rapid.SampledFrom(topo.Machines()).Draw(t, "machine"))
	require.NoError(t, err)
	c, err := topo.NewCluster(m, rapid.IntRange(1, 40).Draw(t, "nodes"), rapid.IntRange(1, len(m.GPUs)).Draw(t, "gpus"), topo.RailOptimised)
	require.NoError(t, err)
	return c
}

func TestNVLSRefuses(t *testing.T) {
	_, err := search.NVLS(cluster(t, "h200x4", 1, 2))
	assert.EqualError(t, err, "NVLS needs three GPUs or more on a machine, and 2 take part")
}
