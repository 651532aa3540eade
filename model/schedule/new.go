package schedule

import (
	"fmt"
	"slices"

	"tutti/model"
	"tutti/topo"
	"tutti/topo/search"
)

// Known fails for a collective that has no schedule yet.
func Known(c model.Collective) error {
	if c != model.AllReduce {
		return fmt.Errorf("%v has no schedule yet: want %v", c, model.AllReduce)
	}
	return nil
}

// New returns the schedule of a task on the graphs of a cluster. It fails for a
// collective that has no schedule yet, for a protocol that the algorithm does
// not know, and for an algorithm that the cluster cannot run: NVLS spans one machine, NVLSTree several.
func New(t Task, c *topo.Cluster, g search.Graphs) (Schedule, error) {
	if err := Known(t.Collective); err != nil {
		return nil, err
	}
	if !slices.Contains(t.Algorithm.Protocols(), t.Protocol) {
		return nil, fmt.Errorf("%v does not run over %v", t.Algorithm, t.Protocol)
	}
	switch t.Algorithm {
	case model.Ring:
		return NewRing(t, search.NewRings(c, g.Ring)), nil
	case model.Tree:
		return NewTree(t, search.NewTrees(c, g.Tree)), nil
	}
	switch {
	case g.NVLSError != nil:
		return nil, g.NVLSError
	case t.Algorithm == model.NVLS && c.Nodes > 1:
		return nil, fmt.Errorf("nvls spans one machine, not %d: want nvlstree", c.Nodes)
	case t.Algorithm == model.NVLSTree && c.Nodes == 1:
		return nil, fmt.Errorf("nvlstree joins several machines: want nvls on one")
	}
	return NewNVLS(t, search.NewHeads(c, g.NVLS)), nil
}
