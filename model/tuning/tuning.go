// Package tuning predicts in about a microsecond what a collective takes, and
// decides which algorithm and protocol carry it out and on how many channels,
// where the user leaves that open.
//
// [Predictor] is tutti's own model: what the simulator would say, in a formula,
// from the constants of a machine's profile. [Model] is NCCL's choice; package
// nccl has its whole cost model. Package export writes choices for other
// libraries.
package tuning

import (
	"tutti/model"
	"tutti/model/tuning/nccl"
	"tutti/model/units"
	"tutti/topo"
	"tutti/topo/search"
)

// Model decides for calls on one cluster: AllReduce, unless [Model.On] says
// otherwise, of floats.
type Model struct {
	nccl       *nccl.Model
	collective model.Collective
}

// New computes NCCL's costs for a cluster with the given graphs.
func New(c *topo.Cluster, g search.Graphs) *Model { return newModel(c, g, false) }

// NewCollNet is [New] where NCCL may use a network that reduces.
func NewCollNet(c *topo.Cluster, g search.Graphs) *Model { return newModel(c, g, true) }

func newModel(c *topo.Cluster, g search.Graphs, collNet bool) *Model {
	m, err := nccl.New(nccl.Describe(c, g), nccl.Settings{CollNet: collNet})
	if err != nil {
		panic(err) // nothing is wrong with the settings
	}
	return &Model{nccl: m}
}

// On returns the model that decides for another collective.
func (m *Model) On(c model.Collective) *Model { return &Model{m.nccl, c} }

// call is what is asked of NCCL's model.
func (m *Model) call(size units.Bytes) nccl.Call {
	return nccl.Call{Collective: m.collective, Datatype: model.Float32, Bytes: size}
}

// Cost is a latency and a bandwidth of NCCL's.
type Cost = nccl.Cost

// Cost returns NCCL's cost of an algorithm over a protocol; zero where the
// combination is not to be had.
func (m *Model) Cost(a model.Algorithm, p model.Protocol) Cost {
	if own, ok := nccl.Of(a); ok {
		if cost := m.nccl.Cost(m.collective, own, p); cost.Bandwidth > 0 {
			return cost
		}
	}
	return Cost{}
}

// Protocol returns the protocol over which the algorithm is predicted to be
// fastest at the given size: Simple where NCCL cannot tell.
func (m *Model) Protocol(a model.Algorithm, size units.Bytes) model.Protocol {
	own, ok := nccl.Of(a)
	if !ok {
		return model.Simple
	}
	choice, err := m.nccl.Choose(m.call(size), own)
	if err != nil {
		return model.Simple
	}
	return choice.Protocol
}

// Algorithm returns the algorithm that is predicted to be fastest at the given
// size, over the protocol that suits it best: a ring where NCCL cannot tell.
func (m *Model) Algorithm(size units.Bytes) model.Algorithm {
	var among []nccl.Algorithm
	for _, a := range model.Algorithms() {
		if own, ok := nccl.Of(a); ok {
			among = append(among, own)
		}
	}
	choice, err := m.nccl.Choose(m.call(size), among...)
	if err != nil {
		return model.Ring
	}
	a, _ := choice.Algorithm.Model()
	return a
}

// MaxChannels returns how many channels an algorithm uses at the most.
func (m *Model) MaxChannels(a model.Algorithm) int {
	own, ok := nccl.Of(a)
	if !ok {
		own = nccl.Ring
	}
	return m.nccl.MaxChannels(own)
}

// Channels returns how many channels a call of the given size uses.
func (m *Model) Channels(a model.Algorithm, p model.Protocol, size units.Bytes) int {
	own, ok := nccl.Of(a)
	if !ok {
		return m.MaxChannels(a)
	}
	channels, _ := m.nccl.Launch(m.call(size), own, p)
	return channels
}
