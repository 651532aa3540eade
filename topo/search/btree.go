package search

import "math/bits"

// Position is the place of a node in a tree.
type Position struct {
	// Up is the parent, or -1 at the root.
	Up int
	// Second says that the node is the second of its parent's children, as the
	// only child of the root is.
	Second   bool
	down     [3]int
	children int
}

// Down returns the children.
func (p *Position) Down() []int { return p.down[:p.children] }

func (p *Position) add(child int) {
	p.down[p.children] = child
	p.children++
}

// halves returns the first and the second child, or -1.
func (p *Position) halves() (first, second int) {
	down := append(p.Down(), -1, -1)
	if p.Up < 0 {
		return -1, down[0]
	}
	return down[0], down[1]
}

// Btree places x among the n nodes of the binary tree rooted at 0, in which
// inner nodes and leaves alternate: the lowest set bit of x gives its height
// (NCCL 2.28.3, src/graph/trees.cc, ncclGetBtree).
func Btree(n, x int) Position {
	if x == 0 {
		p := Position{Up: -1}
		if n > 1 {
			p.add(1 << (bits.Len(uint(n-1)) - 1)) // the largest power of two below n
		}
		return p
	}
	bit := x & -x
	p := Position{Up: x&^bit | bit<<1}
	if p.Up >= n {
		p.Up = x &^ bit
	}
	p.Second = x > p.Up
	if bit > 1 {
		p.add(x - bit/2)
		for step := bit / 2; step > 0; step /= 2 {
			if x+step < n {
				p.add(x + step)
				break
			}
		}
	}
	return p
}

// DoubleBtree places x in one of the two trees (0 or 1) over n nodes. The
// second is the first mirrored, or shifted by one if n is odd, so that a node
// which is inner in one is a leaf in the other. Each tree carries half of the
// data. Source: Sanders, Speck, Träff, "Two-tree algorithms for full bandwidth
// broadcast, reduction and scan", 2009; NCCL 2.28.3, trees.cc, ncclGetDtree.
func DoubleBtree(tree, n, x int) Position {
	if tree == 0 {
		return Btree(n, x)
	}
	there, back := n-1-x, func(v int) int { return n - 1 - v }
	if n%2 == 1 {
		there, back = (x-1+n)%n, func(v int) int { return (v + 1) % n }
	}
	p := Btree(n, there)
	if p.Up >= 0 {
		p.Up = back(p.Up)
	}
	for i, child := range p.Down() {
		p.down[i] = back(child)
	}
	return p
}
