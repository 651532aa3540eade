package sim

import (
	"tutti/model"
	"tutti/model/profile"
	"tutti/model/schedule"
	"tutti/model/units"
	"tutti/sim/event"
	"tutti/topo"
)

// simulation is the state of a run.
type simulation struct {
	schedule schedule.Schedule
	task     schedule.Task
	overhead units.Time
	turn     units.Time // from the end of a step to the next
	ramp     units.Pace // of an item's first bytes, beside copying
	multimem float64    // share of a link's rate for multicasts and reductions

	workers     []worker
	ports       []port // of all workers, inbound before outbound
	connections []connection
	ends        []int32 // the workers at the ends of all connections
	slots       []slot  // of all connections
	links       []link
	routes      []int32 // the links of all connections

	queue    event.Queue // of worker numbers, and of ^link numbers
	now      units.Time
	events   int64
	finished int // workers
}

// none stands for no worker.
const none = -1

// state tells what a worker is doing.
type state uint8

const (
	waiting   state = iota // for an item or a slot
	scheduled              // its step begins at an instant that is known
	running
	finished
)

type worker struct {
	step        schedule.Step
	next, steps int
	recv, send  schedule.Ports // of the step, that are not known to be ready
	blocked     int32          // the connection that a waiting worker is tried again for
	in, out     int32          // first inbound and outbound port
	flows       int32          // on links and from writers, that the running step waits for
	state       state
	pace        units.Pace // of copying
	ready       units.Time // the step does not begin before or, once it runs, end
}

// port is a worker's end of a connection.
type port struct {
	connection int32
	slot       int32 // the next to use
	items      int32 // that have gone through
}

type connection struct {
	kind               schedule.Kind
	remote             bool  // through the network
	direct             bool  // the writer can reach the reader's output
	streams            bool  // the data carries flags: it can be read while it is written
	slots, firstSlot   int32 // credits
	firstEnd, from, to int32 // writers, then readers
	links, firstLink   int32
	// Items so far: filled in by the writer, there for the reader, and taken out
	// by all readers. The first two differ over a network only.
	staged, put, taken int32
	flows              int32      // on links, of the item that crosses the network
	arrival            units.Time // until the reader knows of an item that has crossed the links
	credit             units.Time // until the writer knows of a free slot
}

type slot struct {
	ready, free units.Time  // instants from which the item or the slot can be used
	last        units.Time  // instant at which an item that streams is complete, 0 before it is known
	puts, takes int32       // still to come, of all writers or readers
	reader      int32       // that takes an item which is not complete, or none
	wire        units.Bytes // of the item, to be sent over the network
}

// newSimulation lays out the workers, connections and links of a simulation.
func newSimulation(s schedule.Schedule, c *topo.Cluster, p *profile.Profile) *simulation {
	x := &simulation{schedule: s, task: s.Task(), workers: make([]worker, s.Workers()), connections: make([]connection, s.Connections())}
	x.overhead, x.multimem = p.Overhead[x.task.Protocol], p.Multimem
	x.turn = p.Turn[x.task.Algorithm][x.task.Protocol]
	if ramp := p.Ramp[x.task.Algorithm][x.task.Protocol]; ramp > 0 {
		x.ramp = profile.RampBytes.Over(ramp).Pace()
	}
	ranks := make([]int, len(x.workers))
	for i := range x.workers {
		described := s.Worker(i)
		w := &x.workers[i]
		ranks[i], w.steps = described.Rank, described.Steps
		if w.steps == 0 {
			continue
		}
		rate := p.Copy[x.task.Algorithm][x.task.Protocol]
		if described.Role == schedule.RoleScatter || described.Role == schedule.RoleGather {
			rate = p.LocalCopy
		}
		w.pace = (rate * units.Rate(described.Share)).Pace()
		w.in = int32(len(x.ports))
		for _, c := range described.In {
			x.ports = append(x.ports, port{connection: int32(c)})
		}
		w.out = int32(len(x.ports))
		for _, c := range described.Out {
			x.ports = append(x.ports, port{connection: int32(c)})
		}
	}
	wires := newWires(c, p, len(x.connections))
	for i := range x.connections {
		described := s.Connection(i)
		if len(described.From) == 0 {
			continue
		}
		hop, latency := wires.lay(i, described, pick(ranks, described.From), pick(ranks, described.To))
		n := &x.connections[i]
		*n = connection{
			kind: described.Kind, remote: hop == profile.HopNET,
			slots: int32(described.Slots), firstSlot: int32(len(x.slots)),
			firstEnd: int32(len(x.ends)), from: int32(len(described.From)), to: int32(len(described.To)),
			arrival: latency + p.Handover[hop][x.task.Algorithm][x.task.Protocol], credit: latency,
		}
		beside := n.kind == schedule.PointToPoint && !n.remote
		n.direct = beside && x.task.Protocol == model.Simple
		n.streams = beside && x.task.Protocol != model.Simple
		for range described.Slots {
			x.slots = append(x.slots, slot{puts: n.from, reader: none})
		}
		for _, ends := range [][]int{described.From, described.To} {
			for _, w := range ends {
				x.ends = append(x.ends, int32(w))
			}
		}
	}
	x.links, x.routes = wires.merge(func(i int, first, count int32) {
		x.connections[i].firstLink, x.connections[i].links = first, count
	})
	return x
}

// pick returns the values at the given places.
func pick(values, places []int) []int {
	picked := make([]int, len(places))
	for i, place := range places {
		picked[i] = values[place]
	}
	return picked
}
