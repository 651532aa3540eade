// Package scheduletest makes schedules for the tests of those that run them.
package scheduletest

import (
	"slices"

	"tutti/model"
	"tutti/model/schedule"
	"tutti/topo"
	"tutti/topo/search"
)

// Possible tells whether machines with an NVSwitch, on a network that reduces, can
// run a task: [schedule.New] fails for all others, and for no other.
func Possible(t schedule.Task) bool {
	several, gpus := t.Nodes > 1, t.Ranks/t.Nodes
	if t.InPlace && !t.CanOverlap() {
		return false
	}
	switch t.Algorithm {
	case model.NVLS:
		heads := t.Collective == model.AllReduce || !several && t.Ranks <= 32
		return gpus > 2 && heads
	case model.NVLSTree:
		return gpus > 2 && several
	case model.CollNet, model.CollNetChain:
		return several
	case model.RailRing:
		return gpus%2 == 0
	case model.OneShot, model.TwoShot:
		return !several
	default:
		return true
	}
}

// Builder makes schedules on DGX H100s, on rails that reduce, and remembers their channels. It is not
// safe for concurrent use.
type Builder struct{ clusters map[[2]int]cluster } // by nodes and GPUs

type cluster struct {
	*topo.Cluster
	graphs search.Graphs
}

// Build makes the schedule of a task on the first GPUs of the task's nodes.
func (b *Builder) Build(t schedule.Task, gpus int) (schedule.Schedule, error) {
	key := [...]int{t.Nodes, gpus}
	c, known := b.clusters[key]
	if !known {
		machine, err := topo.Open("dgx-h100")
		if err != nil {
			return nil, err
		}
		fabric := topo.RailOptimised
		fabric.Levels = slices.Clone(fabric.Levels)
		for i := range fabric.Levels {
			fabric.Levels[i].Reduces = true
		}
		if c.Cluster, err = topo.NewCluster(machine, t.Nodes, gpus, fabric); err != nil {
			return nil, err
		}
		c.graphs = search.Find(c.Cluster, search.Options{CollNet: true, SHARP: true})
		if b.clusters == nil {
			b.clusters = map[[2]int]cluster{}
		}
		b.clusters[key] = c
	}
	t.Ranks = c.Ranks()
	return schedule.New(t, c.Cluster, c.graphs)
}
