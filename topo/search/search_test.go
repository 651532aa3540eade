package search_test

import (
	"fmt"
	"math/bits"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

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
