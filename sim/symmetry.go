package sim

import (
	"runtime"
	"sync"

	"tutti/model/profile"
	"tutti/model/schedule"
	"tutti/topo"
)

// Equal parts of a schedule are simulated once. Parts are equal if nothing can
// tell them apart: an entity (worker, connection or link) only notices what its
// neighbours do, so that a division into classes is safe where all members of a
// class have the same constants and as many neighbours of each class, in the
// same roles (an equitable partition; Kemeny and Snell call a chain lumpable by
// it). Such a division is found in two parts: one of the entities within a
// machine, the same for all machines, such as that into rails; and one of the
// machines. Both begin with what is plainly different, and divide a class as
// long as its members have neighbours of different classes (colour refinement).
// Machines are compared as [schedule.Regular.Like] has it: in a double tree, one
// with its mirror image, of which it then has the other tree's channels.

// symmetry finds the fold of a schedule.
type symmetry struct {
	schedule schedule.Regular
	cluster  *topo.Cluster
	profile  *profile.Profile

	ranks, workers, connections blocks

	irregular  bool      // connections join machines otherwise than one with one
	neighbours [][]int32 // of each machine: machines, and then groups of leaves
	shape      []int32   // of each machine
	kinds      []*kind
	kindOf     []*kind // of each machine
	shapes     []*shape
}

// newSymmetry compares the machines of a schedule; it returns nil if too little
// is known of them, or too little is alike.
func newSymmetry(s schedule.Schedule, c *topo.Cluster, p *profile.Profile) *symmetry {
	r, regular := s.(schedule.Regular)
	if !regular || s.Workers() == 0 {
		return nil
	}
	y := &symmetry{
		schedule: r, cluster: c, profile: p, ranks: newBlocks(c.Nodes, c.FirstRank),
		workers:     newBlocks(c.Nodes, func(node int) int { worker, _ := r.First(node); return worker }),
		connections: newBlocks(c.Nodes, func(node int) int { _, connection := r.First(node); return connection }),
		neighbours:  make([][]int32, c.Nodes), shape: make([]int32, c.Nodes), kindOf: make([]*kind, c.Nodes),
	}
	if !y.findShapes() {
		return nil
	}
	return y
}

// inParallel calls f for 0 to n-1 on all cores.
func inParallel(n int, f func(int)) {
	var group sync.WaitGroup
	cores := runtime.GOMAXPROCS(0)
	for core := range cores {
		group.Go(func() {
			for i := core * n / cores; i < (core+1)*n/cores; i++ {
				f(i)
			}
		})
	}
	group.Wait()
}
