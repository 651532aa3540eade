package sweep

import (
	"slices"

	"tutti/model"
	"tutti/model/schedule"
	"tutti/model/tuning"
	"tutti/model/units"
	"tutti/topo"
	"tutti/topo/search"
)

// Auto stands for an algorithm or a protocol that tuning chooses.
const Auto = -1

// Maker makes schedules on one cluster.
type Maker struct {
	cluster *topo.Cluster
	graphs  search.Graphs
	tuned   *tuning.Model
}

// NewMaker searches a cluster's channels.
func NewMaker(c *topo.Cluster) *Maker {
	graphs := search.All(c)
	return &Maker{c, graphs, tuning.New(c, graphs)}
}

// Schedule returns the schedule of a call of the given size. An algorithm or a
// protocol that is [Auto], and channels that are 0, are as tuning decides for the
// size; the ranks and nodes are the cluster's. It fails as [schedule.New] does.
func (m *Maker) Schedule(t schedule.Task, size units.Bytes) (schedule.Schedule, error) {
	t.Ranks, t.Nodes = m.cluster.Ranks(), m.cluster.Nodes
	if t.Algorithm == Auto {
		t.Algorithm = m.algorithm(t.Collective, size)
	}
	if t.Protocol == Auto {
		t.Protocol = m.tuned.Protocol(t.Algorithm, size)
	}
	if t.Channels == 0 {
		t.Channels = m.tuned.Channels(t.Algorithm, t.Protocol, size)
	}
	return schedule.New(t.Sized(size), m.cluster, m.graphs)
}

// algorithm returns tuning's choice or, for a collective that it does not know,
// NCCL's: a ring, or rounds of sends.
func (m *Maker) algorithm(c model.Collective, size units.Bytes) model.Algorithm {
	switch {
	case c == model.AllReduce:
		return m.tuned.Algorithm(size)
	case slices.Contains(model.Ring.Collectives(), c):
		return model.Ring
	default:
		return model.P2P
	}
}
