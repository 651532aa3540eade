package sim

import (
	"encoding/binary"
	"slices"

	"tutti/model"
	"tutti/model/profile"
	"tutti/model/schedule"
	"tutti/model/units"
	"tutti/sim/event"
	"tutti/topo"
)

// simulation is the state of a run. What is touched for each event is small and
// free of pointers; what is needed now and then stands apart. Workers, connections
// and links take a line of the cache each.
type simulation struct {
	workers     []worker
	ports       []port // of all workers, inbound before outbound
	connections []connection
	ends        []int32 // the workers at the ends of all connections
	slots       []slot  // of all connections
	links       []link
	alarms      []alarm    // of all links
	flows       []flow     // of all links
	routes      []crossing // of all connections
	operations  []operation
	uses        []use // of all operations
	ways        []way

	watch                Watcher
	begins, froms, sends []units.Time // for the watcher: of the steps and items under way
	wires                *wires
	changes              []change // of links' rates, and of routes
	stretches            map[int32][]stretch
	starts               []units.Time // of workers, or nil: at once
	slow                 []float64    // how many times as long workers take, or nil
	jitter               *Jitter      // or nil
	posts                *posts       // or nil
	steady               *steady      // or nil: nothing is skipped
	shard                *shard       // or nil: one core does it all
	told                 units.Time   // the first instant at which others were told something
	traces               []trace      // of halves
	listeners            [][]int32    // by half: those that have their other part from it
	early                [][]message  // by half: of slots that become free before their items are delivered here
	multimem             float64      // share of a link's rate for multicasts and reductions
	queue                event.Queue  // of connection numbers, and of ^link numbers
	soon                 []int32      // links whose events are fetched
	fetched              units.Time   // so that what is fetched has a use
	able                 []int32      // workers that can go on, last come first served: they are in the cache
	touched              []int32      // links whose event is to be set at the end of this instant
	now                  units.Time
	events               int64
	finished             int        // workers
	last                 units.Time // instant at which a step ended

	schedule  schedule.Schedule
	repeats   schedule.Repeating // the schedule, if it tells where its steps repeat
	calls     []call
	order     *order  // or nil: all workers begin at once
	ranks     []int32 // of workers
	fold      *fold
	paces     []units.Pace  // of the workers' copying
	atOnce    []units.Bytes // what they copy at once
	places    []int32       // by worker: which of the lists of ports that have become one, from 1, or 0
	portLists [][]int32
	lists     map[string]int32
	forms     map[form]int32
	patterns  map[[maxPeriod]int32]int32
}

// none stands for no worker.
const none = -1

// state tells what a worker is doing.
type state uint8

const (
	able    state = iota // to begin a step, as far as is known
	waiting              // for an item or a slot
	running              // until links or writers are done
	ending               // the step's end is known
	finished
)

type worker struct {
	busy      units.Time // sum of what its threads take
	ready     units.Time // the step does not begin before or, once it is known, begins or ends
	operation int32      // of the step
	first     int32      // operation of the run
	next      int32      // step
	until     int32      // the step after the run's last
	steps     int32
	ports     int32 // the first
	blocked   int32 // the connection that a waiting worker is tried again for
	flows     int32 // on links and from writers, that the running step waits for
	inbound   int32 // ports
	tried     int16 // uses of the step that are known to be ready
	period    int8
	state     state
	_         [8]byte // fills the line
}

// port is a worker's end of a connection.
type port struct {
	connection int32
	slot       int32 // the next to use
	items      int32 // that have gone through
}

type connection struct {
	// Items so far: filled in by the writer, there for the reader, and taken out
	// by all readers. The first two differ over a network only.
	staged, put, taken int32
	slots, firstSlot   int32 // credits
	firstEnd, from, to int32 // writers, then readers
	firstLink, links   int32
	bytes              int64 // on the links, of all items so far
	flows              int32 // on links, or announced, of the item that crosses the network
	ahead              int16 // of a half: how many items more have left the other end's links
	way                uint16
	kind               uint8
	mover              mover
	remote             bool // through the network
	alone              bool // on its links, which have been merged into one
	direct             bool // the writer can reach the reader's output
	half               bool // the other end's part comes from another half
	crossed            bool // of a half: an item has left this end's links, and not the other's
	streams            bool // the data carries flags: it can be read while it is written
}

// unknown stands for an instant.
const unknown = -1

// mover tells whose step has a connection's items on links: nobody's, as there
// are none or as the network sends by itself, the readers' or the writers'.
type mover uint8

const (
	nobody mover = iota
	theWriters
	theReaders
)

// way is what the ways of connections over wires of the same kinds have in
// common.
type way struct {
	arrival units.Time // until the reader knows of an item that has crossed the links
	credit  units.Time // until the writer knows of a free slot
}

// slot holds an item, or waits for one.
type slot struct {
	// ready is the instant from which the item can be used or, until it has
	// crossed the network, at which it was ready to be sent.
	ready units.Time
	// free is the instant from which the slot can be used again.
	free units.Time
	// last is the instant at which an item that streams is complete, or unknown;
	// the bytes of an item that is to be sent over the network; and else the
	// instant at which the last of several writers so far was done.
	last   int64
	left   int32 // writers or readers that have not been here yet
	reader int32 // that takes an item which is not complete, or none
}

// crossing is a link that a connection crosses, and how often.
type crossing struct{ link, weight int32 }

// newSimulation lays out the workers, connections and links of a simulation,
// each of which stands for a class of a fold.
func newSimulation(s schedule.Schedule, c *topo.Cluster, p *profile.Profile, f *fold, o Options) (*simulation, error) {
	x := &simulation{
		schedule: s, calls: callsOf(s, p), fold: f, watch: o.Watch, told: never, multimem: p.Multimem,
		workers: make([]worker, f.workers.count()), connections: make([]connection, f.split.items()),
		forms: map[form]int32{}, patterns: map[[maxPeriod]int32]int32{},
	}
	x.repeats, _ = s.(schedule.Repeating)
	channels := x.layWorkers(c, p)
	if err := x.straggle(o.Stragglers, c.Ranks()); err != nil {
		return nil, err
	}
	if o.Jitter.Deviation > 0 {
		x.jitter = &o.Jitter
	}
	x.posts = newPosts(o.NIC, p, len(x.connections), c.Ranks())
	x.wires = newWires(c, p, f, len(x.connections), o.Faults)
	at := workers(newRemembered(s))
	if f.workers.place == nil {
		at = seats{x.ranks, channels}
	}
	x.layConnections(p, at, o.NIC.Poster)
	x.wires.detour(s, at)
	changes, err := x.wires.fault(o.Faults)
	if err != nil {
		return nil, err
	}
	x.halve()
	x.wires.keep()
	if !o.everyLink && x.jitter == nil && len(x.calls) == 1 { // jitter may make steps quicker
		x.wires.drop(x)
	}
	x.layLinks(changes)
	return x, nil
}

// layWorkers lays out the workers and their ports, and returns their channels.
func (x *simulation) layWorkers(c *topo.Cluster, p *profile.Profile) (channels []int32) {
	x.places, x.lists = make([]int32, len(x.workers)), map[string]int32{}
	x.paces = make([]units.Pace, len(x.workers))
	x.atOnce = make([]units.Bytes, len(x.workers))
	x.ranks = make([]int32, len(x.workers))
	channels = make([]int32, len(x.workers))
	kinds := generations{c, p, map[int]*profile.Profile{}}
	for i := range x.workers {
		number := x.fold.workers.first(i)
		described := x.schedule.Worker(number)
		w := &x.workers[i]
		x.ranks[i], channels[i], w.steps = int32(described.Rank), int32(described.Channel), int32(described.Steps)
		if w.steps == 0 {
			continue
		}
		task := x.calls[x.callOf(int32(i))].task
		own := kinds.of(described.Rank)
		rate := own.Copy[task.Algorithm][task.Protocol] * units.Rate(task.Block().Working())
		beside := described.Role == schedule.RoleScatter || described.Role == schedule.RoleGather
		if beside && (task.Algorithm == model.NVLS || task.Algorithm == model.NVLSTree) { // within a GPU
			rate = own.LocalCopy
		}
		x.paces[i] = (rate * units.Rate(described.Share)).Pace()
		x.atOnce[i] = task.Block().AtOnce(described.Share)
		w.ports = int32(len(x.ports))
		in := x.addPorts(number, described.In, int(w.ports))
		w.inbound = int32(len(described.In))
		out := x.addPorts(number, described.Out, len(x.ports))
		x.places[i] = x.merged(w.ports, in, out)
	}
	return channels
}

// layConnections lays out the connections, with their ends and slots, and lays them
// over the cluster's links.
func (x *simulation) layConnections(p *profile.Profile, at workers, poster profile.Poster) {
	ways := map[way]uint16{}
	for i := range x.connections {
		described := x.schedule.Connection(x.fold.split.example(i))
		if len(described.From) == 0 {
			continue
		}
		caller := &x.calls[x.callOf(x.fold.workers.of(described.From[0]))]
		task := &caller.task
		hop, latency, stored := x.wires.lay(int32(i), described, at, task.Protocol.Wire(caller.size(described.Room)))
		n := &x.connections[i]
		n.kind, n.remote, n.slots, n.firstSlot = uint8(described.Kind), hop == profile.HopNET, int32(described.Slots), int32(len(x.slots))
		n.half = x.fold.split.other(i) != none
		n.firstEnd, n.from = int32(len(x.ends)), x.addEnds(i, described.From)
		n.to = x.addEnds(i, described.To)
		beside := described.Kind == schedule.PointToPoint && !n.remote
		n.mover = theWriters
		if described.Kind == schedule.Reduction || described.Storage == schedule.InInput {
			n.mover = theReaders
		}
		n.direct = described.Storage == schedule.InOutput
		n.streams = beside && described.Storage == schedule.Staged && task.Protocol != model.Simple
		over := way{arrival: latency + stored + p.Handover[hop][task.Algorithm][task.Protocol], credit: latency}
		if n.remote && poster != profile.AsMeasured {
			over.arrival -= min(over.arrival, p.Message[profile.ByProxy])
		}
		if _, known := ways[over]; !known {
			ways[over] = uint16(len(x.ways))
			x.ways = append(x.ways, over)
		}
		n.way = ways[over]
		if x.slots == nil { // most connections have as many
			x.slots = make([]slot, 0, len(x.connections)*described.Slots)
		}
		for range n.slots {
			x.slots = append(x.slots, slot{left: n.from, reader: none})
		}
	}
}

// layLinks lays out the links that are left, with room for the flows on them, and
// what is to change of them.
func (x *simulation) layLinks(changes []change) {
	x.links, x.routes = x.wires.merge(func(i int, first, count int32) {
		n := &x.connections[i]
		n.firstLink, n.links = first, count
		if count == 0 || n.remote {
			n.mover = nobody
		}
	})
	changes = append(changes, x.turns()...)
	for _, r := range x.routes {
		x.links[r.link].room++
	}
	for i := range x.connections {
		n := &x.connections[i]
		n.alone = n.links == 1 && !n.half && !(n.remote && x.posts != nil) && x.links[x.routes[n.firstLink].link].room == 1
	}
	x.alarms = make([]alarm, len(x.links))
	room := int32(0)
	for i := range x.links {
		x.links[i].first, x.alarms[i] = room, alarm{never, never}
		room += x.links[i].room
	}
	x.flows = make([]flow, room)
	x.await(changes)
}

// addEnds appends the classes of the workers at an end of a connection, each
// once, and returns how many there are.
func (x *simulation) addEnds(connection int, workers []int) int32 {
	before := len(x.ends)
	for _, w := range workers {
		class := int32(none)
		if x.fold.split.hasWorker(connection, w) {
			class = x.fold.workers.of(w)
		}
		if !slices.Contains(x.ends[before:], class) {
			x.ends = append(x.ends, class)
		}
	}
	return int32(len(x.ends) - before)
}

// addPorts appends the ports of a worker, an example, from the given one on, one
// for each class of connections, and returns which of them each connection has.
func (x *simulation) addPorts(worker int, connections []int, from int) []int32 {
	at := make([]int32, len(connections))
	for i, c := range connections {
		p := port{connection: x.fold.split.seen(worker, c)}
		place := slices.IndexFunc(x.ports[from:], func(q port) bool { return q == p })
		if place < 0 {
			place = len(x.ports) - from
			x.ports = append(x.ports, p)
		}
		at[i] = int32(from + place)
	}
	return at
}

// merged keeps which ports of the schedule have become one, counted from a
// worker's first, and returns the number of that list; 0 if none have.
func (x *simulation) merged(first int32, in, out []int32) int32 {
	list := slices.Concat(in, out)
	key := make([]byte, 0, len(list)+1)
	plain := true
	for i := range list {
		list[i] -= first
		plain = plain && list[i] == int32(i)
		key = binary.AppendUvarint(key, uint64(list[i]))
	}
	if plain {
		return 0
	}
	number, known := x.lists[string(key)]
	if !known {
		x.portLists = append(x.portLists, list)
		number = int32(len(x.portLists))
		x.lists[string(key)] = number
	}
	return number
}
