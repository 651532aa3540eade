package sim

import (
	"slices"

	"tutti/model/schedule"
	"tutti/topo"
)

// kind is what machines look like from within, whatever the fabric between them.
type kind struct {
	node        int // an example
	workers     []localWorker
	connections []localConnection // its own
	foreign     []localConnection // those that others number, with an end here
	passages    []passage         // between machines
	shapes      []*shape          // of its machines
	labels      map[end]uint64    // of ports
}

// end is the port of a worker, by what it is like, at a connection.
type end struct {
	worker     int32
	connection ref
	out        bool
}

// shape is a kind of machines whose passages cross the same links.
type shape struct {
	*kind
	node    int     // an example
	crossed [][]ref // by passage
}

// links returns those of a connection.
func (s *shape) links(c *localConnection) []ref {
	if c.passage == own {
		return c.links
	}
	return s.crossed[c.passage]
}

// ref names an entity of the example, -1, or of one of its neighbours.
type ref struct{ at, local int32 }

const own = -1

type localWorker struct {
	rank  int32 // of the machine's
	label uint64
	ports []localPort
}

type localPort struct {
	label      uint64
	connection ref
}

type localConnection struct {
	ref
	label   uint64
	ends    []localEnd
	links   []ref // within the machine
	passage int   // of the kind, if it leaves the machine, or else own
}

type localEnd struct {
	label  uint64
	worker ref
}

// maxShapes is how many shapes there may be: with more, little is alike.
const maxShapes = 512

// manyConnections is from how many that a machine numbers on, as in AllToAll,
// finding what is alike takes longer than simulating what little is, where a hash
// routes each connection its own way or most machines are of kinds of their own.
const manyConnections = 1 << 13

// findShapes divides the machines by what they look like from within. It
// returns false if there is too little in common.
func (y *symmetry) findShapes() bool {
	nodes := y.cluster.Nodes
	kinds := make([]digest, nodes)
	inParallel(nodes, func(node int) {
		words, neighbours := y.schedule.Node(node)
		d := digest(len(neighbours)).add(uint64(y.cluster.Kind(node)))
		for _, word := range words {
			d = d.add(uint64(word))
		}
		for _, n := range neighbours { // whose ports its own are joined with
			d = d.add(uint64(y.cluster.Kind(n)))
			y.neighbours[node] = append(y.neighbours[node], int32(n))
		}
		kinds[node] = d
	})
	examples := map[digest]*kind{}
	for node, d := range kinds {
		if examples[d] == nil {
			examples[d] = &kind{node: node}
			y.kinds = append(y.kinds, examples[d])
			if len(examples) > maxShapes {
				return false
			}
		}
	}
	if y.connections.most > manyConnections && (y.cluster.Fabric.Routing != topo.Adaptive || len(y.kinds) > nodes/leastGain) {
		return false
	}
	for node, d := range kinds {
		y.kindOf[node] = examples[d]
	}
	for _, k := range y.kinds {
		y.look(k)
	}
	for _, k := range y.kinds {
		y.describe(k)
	}
	if y.irregular {
		return false
	}
	// Machines of a kind may be joined differently by the fabric.
	joined := make([]digest, nodes)
	inParallel(nodes, func(node int) {
		joined[node] = kinds[node]
		for _, p := range y.kindOf[node].passages {
			links := y.cross(node, p)
			joined[node] = joined[node].add(uint64(len(links)))
			for _, l := range links {
				joined[node] = joined[node].add(uint64(l.at)<<32 | uint64(l.local))
			}
		}
	})
	number := map[digest]int32{}
	for node, j := range joined {
		at, known := number[j]
		if !known {
			at = int32(len(y.shapes))
			number[j] = at
			if at == maxShapes {
				return false
			}
			y.shapes = append(y.shapes, y.joined(y.kindOf[node], node))
		}
		y.shape[node] = at
	}
	return true
}

// look finds what the workers of the example of a kind do.
func (y *symmetry) look(k *kind) {
	k.labels = map[end]uint64{}
	for i := range y.workers.size(k.node) {
		p := y.program(y.workers.first[k.node] + y.schedule.Like(k.node, i))
		w := localWorker{rank: int32(p.rank - y.ranks.first[k.node]), label: uint64(p.label)}
		for _, port := range p.ports {
			c := y.refLike(k.node, port.connection, &y.connections)
			w.ports = append(w.ports, localPort{port.label, c})
			k.labels[end{int32(i), c, port.out}] = port.label
		}
		k.workers = append(k.workers, w)
	}
}

// describe describes the connections of the example of a kind, without the links
// between machines.
func (y *symmetry) describe(k *kind) {
	passages := map[passage]int{}
	describe := func(number int) localConnection {
		c := y.schedule.Connection(number)
		described := localConnection{ref: y.refLike(k.node, number, &y.connections), passage: own}
		d := digest(c.Kind).add(uint64(c.Storage)).add(uint64(c.Slots)).add(uint64(len(c.From)))
		local := len(c.From) > 0
		end := func(worker int, out bool) {
			w := y.refLike(k.node, worker, &y.workers)
			local = local && w.at == own
			described.ends = append(described.ends, localEnd{y.portLabel(worker, number, out), w})
		}
		for _, w := range c.From {
			end(w, true)
		}
		for _, w := range c.To {
			end(w, false)
		}
		described.label = uint64(d)
		if local {
			for _, link := range routeOf(y.cluster, y.schedule, c) {
				described.links = append(described.links, y.linkRef(k.node, link))
			}
		} else if len(c.From) > 0 {
			if c.Kind != schedule.PointToPoint {
				y.irregular = true // no two machines can be told apart by their neighbours
			}
			p := y.passage(k.node, c)
			at, known := passages[p]
			if !known {
				at = len(k.passages)
				passages[p] = at
				k.passages = append(k.passages, p)
			}
			described.passage = at
		}
		return described
	}
	for i := range y.connections.size(k.node) {
		k.connections = append(k.connections, describe(y.connections.first[k.node]+y.schedule.Like(k.node, i)))
	}
	seen := map[ref]bool{}
	for _, w := range k.workers {
		for _, port := range w.ports {
			if c := port.connection; c.at != own && !seen[c] {
				seen[c] = true
				owner := y.place(k.node, c)
				k.foreign = append(k.foreign, describe(y.connections.first[owner]+y.schedule.Like(owner, int(c.local))))
			}
		}
	}
}

// portLabel returns the label of a worker's port, as the example of its machine's
// kind has it.
func (y *symmetry) portLabel(worker, connection int, out bool) uint64 {
	node, local := y.workers.at(worker)
	return y.kindOf[node].labels[end{int32(y.schedule.Like(node, local)), y.refLike(node, connection, &y.connections), out}]
}

// rankOf returns the rank of a worker, as a ref from a node.
func (y *symmetry) rankOf(node, worker int) ref {
	place, local := y.workers.at(worker)
	return ref{y.neighbour(node, place), y.kindOf[place].workers[y.schedule.Like(place, local)].rank}
}

// refLike names a worker or a connection by what it is like.
func (y *symmetry) refLike(node, number int, of *blocks) ref {
	place, local := of.at(number)
	return ref{y.neighbour(node, place), int32(y.schedule.Like(place, local))}
}

func (y *symmetry) neighbour(node, other int) int32 {
	if node == other {
		return own
	}
	at := slices.Index(y.neighbours[node], int32(other))
	if at < 0 { // a group of leaves
		at = len(y.neighbours[node])
		y.neighbours[node] = append(y.neighbours[node], int32(other))
	}
	return int32(at)
}

func (y *symmetry) linkRef(node, link int) ref {
	place, local := y.cluster.Place(link)
	return ref{y.neighbour(node, place), int32(local)}
}

// passage is how a connection leaves a machine: from a rank, as seen from the
// machine, by a port to another rank.
type passage struct {
	from, to ref
	out, in  int
	writer   ref // what it is like, which tells the flow
}

// passage returns how a connection of an example leaves its machine.
func (y *symmetry) passage(node int, c schedule.Connection) passage {
	p := passage{from: y.rankOf(node, c.From[0]), to: y.rankOf(node, c.To[0]), out: c.OutNET, in: c.InNET}
	if y.cluster.Fabric.Routing != topo.Adaptive {
		p.writer = y.refLike(node, c.From[0], &y.workers)
	}
	return p
}

// cross returns the links of a passage at a node.
func (y *symmetry) cross(node int, p passage) (links []ref) {
	flow := 0
	if y.cluster.Fabric.Routing != topo.Adaptive {
		at := y.place(node, p.writer)
		flow = flowOf(y.cluster, y.schedule.Worker(y.workers.first[at]+y.schedule.Like(at, int(p.writer.local))))
	}
	route := y.cluster.RouteFlow(y.rank(node, p.from), y.rank(node, p.to), p.out, p.in, flow)
	links = make([]ref, 0, len(route))
	for _, link := range route {
		links = append(links, y.linkRef(node, link))
	}
	return links
}

// place returns where a link is that a ref means at a node.
func (y *symmetry) place(node int, r ref) int {
	if r.at != own {
		node = int(y.neighbours[node][r.at])
	}
	return node
}

// rank returns the one that a ref of the example means at a node.
func (y *symmetry) rank(node int, r ref) int {
	return y.ranks.first[y.place(node, r)] + int(r.local)
}

// joined returns the shape of a node of a kind.
func (y *symmetry) joined(k *kind, node int) *shape {
	s := &shape{kind: k, node: node}
	for _, p := range k.passages {
		s.crossed = append(s.crossed, y.cross(node, p))
	}
	k.shapes = append(k.shapes, s)
	return s
}

// program is what a worker does, as far as it can be told from others.
type program struct {
	rank  int
	label digest
	ports []programPort
}

type programPort struct {
	connection int
	out        bool
	label      uint64
}

// program goes through the runs of a worker's steps.
func (y *symmetry) program(number int) program {
	w := y.schedule.Worker(number)
	p := program{rank: w.Rank, label: digest(w.Role).add(uint64(w.Share * (1 << 32))).add(uint64(w.Steps)).add(uint64(y.cluster.SM(w.Rank)))}
	if w.Steps == 0 {
		return p
	}
	for _, c := range w.In {
		p.ports = append(p.ports, programPort{c, false, 1})
	}
	for _, c := range w.Out {
		p.ports = append(p.ports, programPort{c, true, 2})
	}
	repeats, _ := y.schedule.(schedule.Repeating)
	for i := 0; i < w.Steps; {
		period, until := 1, i+1
		if repeats != nil {
			period, until = repeats.Repeats(number, i)
		}
		for at := i; at < i+period; at++ {
			s := y.schedule.Step(number, at)
			flags := uint64(0)
			if s.Input {
				flags |= 1
			}
			if s.Output {
				flags |= 2
			}
			p.label = p.label.add(flags).add(uint64(s.Total())).add(uint64(s.Recv.Len())<<32 | uint64(s.Send.Len())).add(uint64(until))
			use := func(ports schedule.Ports, first int) {
				for port := range ports.All() {
					_, count := s.Range(port)
					q := &p.ports[first+port]
					q.label = uint64(digest(q.label).add(uint64(at)).add(uint64(until)).add(uint64(count)))
				}
			}
			use(s.Recv, 0)
			use(s.Send, len(w.In))
		}
		i = until
	}
	return p
}
