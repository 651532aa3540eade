package search_test

import (
	"math/bits"
	"testing"

	"tutti/topo/search"
)

// For every number of nodes both trees span all of them, agree on who is whose
// parent and whether it is the second child, have two children a node at the most
// and logarithmic depth; and no node is inner in both but the one that an odd
// count forces.
func TestDoubleBtree(t *testing.T) {
	for n := 1; n <= 4096; n++ {
		inner := make([]int, n)
		for tree := range 2 {
			places := make([]search.Position, n)
			for x := range places {
				places[x] = search.DoubleBtree(tree, n, x)
			}
			edges := 0
			depth := make([]int, n) // 0 while it is not known
			var below func(x, steps int) int
			below = func(x, steps int) int {
				if depth[x] == 0 && steps <= n {
					depth[x] = 1
					if up := places[x].Up; up >= 0 {
						depth[x] = 1 + below(up, steps+1)
					}
				}
				return depth[x]
			}
			for x := range places {
				down := places[x].Down()
				for i, child := range down {
					if c := places[child]; c.Up != x || c.Second != (i == 1 || places[x].Up < 0) {
						t.Fatalf("tree %d of %d: node %d has child %d, which has parent %d, second %v", tree, n, x, child, c.Up, c.Second)
					}
				}
				if len(down) > 0 {
					inner[x]++
				}
				edges += len(down)
				if d := below(x, 0); len(down) > 2 || d > bits.Len(uint(n))+1 {
					t.Fatalf("tree %d of %d: node %d has %d children and depth %d", tree, n, x, len(down), d)
				}
			}
			if edges != n-1 { // with parents for all but one, it is one tree
				t.Fatalf("tree %d of %d has %d edges", tree, n, edges)
			}
		}
		both := 0
		for _, trees := range inner {
			both += trees / 2
		}
		if both > n%2 {
			t.Fatalf("%d nodes are inner in both trees of %d", both, n)
		}
	}
}
