package sweep

import (
	"fmt"
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

// NewMaker searches a cluster's channels. If algorithms are named that may need
// it, these are also those of reductions by the network's switches, which NCCL
// has with a plugin only.
func NewMaker(c *topo.Cluster, named ...model.Algorithm) *Maker {
	offloads := slices.ContainsFunc(named, func(a model.Algorithm) bool {
		return a == model.CollNet || a == model.CollNetChain || a == model.NVLS
	})
	graphs := search.Find(c, search.Options{CollNet: offloads, SHARP: offloads})
	return &Maker{c, graphs, tuning.New(c, graphs)}
}

// Choose returns the task of a call of the given size. An algorithm or a protocol
// that is [Auto], and channels that are 0, are as tuning decides for the size; the
// ranks and nodes are the cluster's.
func (m *Maker) Choose(t schedule.Task, size units.Bytes) schedule.Task {
	t.Ranks, t.Nodes = m.cluster.Ranks(), m.cluster.Nodes
	tuned := m.tuned.On(t.Collective)
	if t.Algorithm == Auto {
		t.Algorithm = algorithm(tuned, t.Collective, size)
	}
	if t.Protocol == Auto {
		t.Protocol = protocol(tuned, t, size)
	}
	if t.Channels == 0 {
		t.Channels = tuned.Channels(likeNCCL(t.Algorithm), t.Protocol, size)
	}
	return t.Sized(size)
}

// Schedule returns the schedule of a call of the given size, as [Maker.Choose] has it.
// It fails as [schedule.New] does, and for a size that has no element for each rank.
func (m *Maker) Schedule(t schedule.Task, size units.Bytes) (schedule.Schedule, error) {
	sized := m.Choose(t, size)
	if sized.Count == 0 && size > 0 {
		return nil, fmt.Errorf("%v of %v has no whole element of %v for each of %d ranks", t.Collective, size, t.Datatype, sized.Ranks)
	}
	return schedule.New(sized, m.cluster, m.graphs)
}

// algorithm returns tuning's choice or, for a collective that it does not know,
// NCCL's: rounds of sends.
func algorithm(tuned *tuning.Model, c model.Collective, size units.Bytes) model.Algorithm {
	if slices.Contains(model.Ring.Collectives(), c) {
		return tuned.Algorithm(size)
	}
	return model.P2P
}

// lowLatency is up to which size a rank sends to another over LL: NCCL 2.28.3's
// NCCL_P2P_LL_THRESHOLD.
const lowLatency = 16 * units.KiB

// protocol returns tuning's choice. For what NCCL's costs do not cover there are
// two rules: whatever goes round all ranks takes what a ring would; and what
// goes straight from rank to rank takes LL if each is sent little, as NCCL's
// sends do, else Simple.
func protocol(tuned *tuning.Model, t schedule.Task, size units.Bytes) model.Protocol {
	switch t.Algorithm {
	case model.P2P, model.OneShot, model.TwoShot, model.Hierarchical:
		if each := t.Sized(size); units.Bytes(each.Count)*t.Datatype.Size() <= lowLatency {
			return model.LL
		}
		return model.Simple
	}
	a := likeNCCL(t.Algorithm)
	if a == model.Tree && t.Collective != model.AllReduce { // NCCL has no such trees
		a = model.Ring
	}
	return tuned.Protocol(a, size)
}

// likeNCCL returns the algorithm whose protocols and channels an algorithm takes
// that NCCL does not have.
func likeNCCL(a model.Algorithm) model.Algorithm {
	if a == model.SimpleRing || a == model.RailRing {
		return model.Ring
	}
	return a
}
