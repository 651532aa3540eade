package sim

import (
	"runtime"
	"slices"
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

	perNode     int // ranks
	workers     int // in the block of a machine
	connections int
	irregular   bool      // connections join machines otherwise than one with one
	neighbours  [][]int32 // of each machine: machines, and then groups of leaves
	shape       []int32   // of each machine
	shapes      []*shape
}

// shape is what machines look like from within that differ in their neighbours
// alone.
type shape struct {
	node        int // an example
	workers     []localWorker
	connections []localConnection // its own
	foreign     []localConnection // those that others number, with an end here
	passages    []passage         // between machines
}

// ref names an entity of the example, -1, or of one of its neighbours.
type ref struct{ at, local int32 }

const own = -1

type localWorker struct {
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
	links   []ref
	passage int // of the shape, if it leaves the machine, or else own
}

type localEnd struct {
	label  uint64
	worker ref
}

// findFold returns the fold of a schedule, or one that leaves everything as it
// is.
func findFold(s schedule.Schedule, c *topo.Cluster, p *profile.Profile) *fold {
	r, regular := s.(schedule.Regular)
	if !regular || s.Workers()%c.Nodes != 0 || s.Connections()%c.Nodes != 0 || s.Workers() == 0 {
		return unfolded(s)
	}
	y := &symmetry{
		schedule: r, cluster: c, profile: p, perNode: c.RanksPerNode(),
		workers: s.Workers() / c.Nodes, connections: s.Connections() / c.Nodes,
		neighbours: make([][]int32, c.Nodes), shape: make([]int32, c.Nodes),
	}
	if !y.findShapes() {
		return unfolded(s)
	}
	workers, connections, links := y.within()
	places := y.among()
	nodes := places[:c.Nodes]
	pm, nm := membersOf(places), membersOf(nodes)
	return &fold{
		workers:     newClasses(nodes, workers, nm, membersOf(workers), r.Like),
		connections: newClasses(nodes, connections, nm, membersOf(connections), r.Like),
		links:       newClasses(places, links, pm, membersOf(links), func(_, local int) int { return local }),
	}
}

// unfolded returns the fold that has each entity in a class of its own.
func unfolded(s schedule.Schedule) *fold {
	return &fold{workers: classes{total: s.Workers()}, connections: classes{total: s.Connections()}}
}

// maxShapes is how many shapes there may be: with more, little is alike.
const maxShapes = 512

// findShapes divides the machines by what they look like from within. It
// returns false if there is too little in common.
func (y *symmetry) findShapes() bool {
	nodes := y.cluster.Nodes
	kinds := make([]digest, nodes)
	inParallel(nodes, func(node int) {
		words, neighbours := y.schedule.Node(node)
		d := digest(len(neighbours))
		for _, word := range words {
			d = d.add(uint64(word))
		}
		kinds[node] = d
		for _, n := range neighbours {
			y.neighbours[node] = append(y.neighbours[node], int32(n))
		}
	})
	examples := map[digest]*shape{}
	for node, kind := range kinds {
		if examples[kind] == nil {
			examples[kind] = &shape{node: node}
			if len(examples) > maxShapes {
				return false
			}
		}
	}
	for _, kind := range kinds {
		if e := examples[kind]; e.workers == nil {
			y.look(e)
		}
	}
	if y.irregular {
		return false
	}
	// Machines of a kind may be joined differently by the fabric.
	joined := make([]digest, nodes)
	inParallel(nodes, func(node int) {
		joined[node] = kinds[node]
		for _, p := range examples[kinds[node]].passages {
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
			y.shapes = append(y.shapes, y.joined(examples[kinds[node]], node))
		}
		y.shape[node] = at
	}
	return true
}

// look describes the example of a shape, without the links between machines.
func (y *symmetry) look(e *shape) {
	programs := map[int]program{}
	of := func(worker int) program {
		if _, known := programs[worker]; !known {
			programs[worker] = y.program(worker)
		}
		return programs[worker]
	}
	describe := func(number int) localConnection {
		c := y.schedule.Connection(number)
		described := localConnection{ref: y.part(e.node, number, y.connections), passage: own}
		d := digest(c.Kind).add(uint64(c.Storage)).add(uint64(c.Slots)).add(uint64(len(c.From)))
		local := len(c.From) > 0
		end := func(worker int, out bool) {
			w := y.part(e.node, worker, y.workers)
			local = local && w.at == own
			described.ends = append(described.ends, localEnd{of(worker).port(number, out), w})
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
				described.links = append(described.links, y.linkRef(e.node, link))
			}
		} else if len(c.From) > 0 {
			if c.Kind != schedule.PointToPoint {
				y.irregular = true // no two machines can be told apart by their neighbours
			}
			p := y.passage(e.node, c)
			described.passage = slices.Index(e.passages, p)
			if described.passage < 0 {
				described.passage = len(e.passages)
				e.passages = append(e.passages, p)
			}
		}
		return described
	}
	seen := map[int]bool{}
	for i := range y.connections {
		e.connections = append(e.connections, describe(e.node*y.connections+y.schedule.Like(e.node, i)))
	}
	for i := range y.workers {
		number := e.node*y.workers + y.schedule.Like(e.node, i)
		p := of(number)
		w := localWorker{label: uint64(p.label)}
		for _, port := range p.ports {
			c := y.part(e.node, port.connection, y.connections)
			w.ports = append(w.ports, localPort{port.label, c})
			if c.at != own && !seen[port.connection] {
				seen[port.connection] = true
				e.foreign = append(e.foreign, describe(port.connection))
			}
		}
		e.workers = append(e.workers, w)
	}
}

// ref names an entity of the given block size by its place as seen from a node.
func (y *symmetry) ref(node, number, block int) ref {
	return ref{y.neighbour(node, number/block), int32(number % block)}
}

// part names a worker or a connection by what it is like.
func (y *symmetry) part(node, number, block int) ref {
	r := y.ref(node, number, block)
	r.local = int32(y.schedule.Like(number/block, int(r.local)))
	return r
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
	by       ref // the worker that sends, where its flow is one of several
}

// passage returns how a connection of an example leaves its machine.
func (y *symmetry) passage(node int, c schedule.Connection) passage {
	rank := func(worker int) ref {
		rank := y.schedule.Worker(worker).Rank
		return y.ref(node, rank, y.perNode)
	}
	p := passage{from: rank(c.From[0]), to: rank(c.To[0]), out: c.OutNET, in: c.InNET}
	if y.cluster.Fabric.Routing == topo.ECMP {
		p.by = y.part(node, c.From[0], y.workers)
	}
	return p
}

// flow returns which flow of a passage a node's is: that of the worker there which
// is like the example's, as it may be on another channel.
func (y *symmetry) flow(node int, p passage) int {
	if y.cluster.Fabric.Routing != topo.ECMP {
		return 0
	}
	at := node
	if p.by.at != own {
		at = int(y.neighbours[node][p.by.at])
	}
	return flowOf(y.cluster, y.schedule.Worker(at*y.workers+y.schedule.Like(at, int(p.by.local))))
}

// cross returns the links of a passage at a node.
func (y *symmetry) cross(node int, p passage) (links []ref) {
	for _, link := range y.cluster.RouteFlow(y.number(node, p.from, y.perNode), y.number(node, p.to, y.perNode), p.out, p.in, y.flow(node, p)) {
		links = append(links, y.linkRef(node, link))
	}
	return links
}

// number returns the entity that a ref of the example means at a node.
func (y *symmetry) number(node int, r ref, block int) int {
	if r.at != own {
		node = int(y.neighbours[node][r.at])
	}
	return node*block + int(r.local)
}

// joined returns the shape of a node, given that of its kind.
func (y *symmetry) joined(e *shape, node int) *shape {
	s := *e
	s.node = node
	s.connections, s.foreign = slices.Clone(e.connections), slices.Clone(e.foreign)
	for _, list := range [][]localConnection{s.connections, s.foreign} {
		for i := range list {
			if list[i].passage != own {
				list[i].links = y.cross(node, e.passages[list[i].passage])
			}
		}
	}
	return &s
}

// within divides the entities of a machine, and the links of any place.
func (y *symmetry) within() (workers, connections, links []int32) {
	_, perPlace := y.cluster.Places()
	w, c, l := make([]digest, y.workers), make([]digest, y.connections), make([]digest, perPlace)
	y.labelLinks(l)
	for round := 0; ; round++ {
		nw, nc, nl := slices.Clone(w), slices.Clone(c), slices.Clone(l)
		for number, s := range y.shapes {
			for i, worker := range s.workers {
				d := sum(0)
				for _, p := range worker.ports {
					d.plus(digest(p.label).add(uint64(p.connection.at)).add(uint64(c[p.connection.local])))
				}
				nw[i] = nw[i].add(worker.label).add(uint64(d)).add(uint64(number))
			}
			crossed := make([]sum, perPlace)
			for _, list := range [][]localConnection{s.connections, s.foreign} {
				for _, n := range list {
					user := digest(n.at).add(uint64(c[n.local]))
					for _, link := range n.links {
						if link.at == own {
							crossed[link.local].plus(user)
						}
					}
				}
			}
			for i, n := range s.connections {
				d := sum(0)
				for _, e := range n.ends {
					d.plus(digest(e.label).add(uint64(e.worker.at)).add(uint64(w[e.worker.local])))
				}
				for _, link := range n.links {
					d.plus(digest(1).add(uint64(link.at)).add(uint64(l[link.local])))
				}
				nc[i] = nc[i].add(n.label).add(uint64(d)).add(uint64(number))
			}
			for i := range nl {
				nl[i] = nl[i].add(uint64(crossed[i])).add(uint64(number))
			}
		}
		for i, d := range y.crossedAmong(c, perPlace) {
			nl[i] = nl[i].add(uint64(d))
		}
		same := distinct(w) == distinct(nw) && distinct(c) == distinct(nc) && distinct(l) == distinct(nl)
		w, c, l = nw, nc, nl
		if same && round > 0 {
			return numbered(w), numbered(c), numbered(l)
		}
	}
}

// labelLinks gives the links of places the labels to begin with.
func (y *symmetry) labelLinks(l []digest) {
	for _, s := range y.shapes {
		for _, list := range [][]localConnection{s.connections, s.foreign} {
			for _, n := range list {
				for _, link := range n.links {
					kind, rate := y.cluster.Link(y.link(s.node, link))
					l[link.local] = digest(kind).add(uint64(rate))
				}
			}
		}
	}
}

// link returns the link that a ref means at a node.
func (y *symmetry) link(node int, r ref) int {
	if r.at != own {
		node = int(y.neighbours[node][r.at])
	}
	return y.cluster.LinkAt(node, int(r.local))
}

// crossedAmong tells, for the links of groups of leaves, which connections of
// which machines cross them.
func (y *symmetry) crossedAmong(c []digest, perPlace int) []digest {
	places, _ := y.cluster.Places()
	nodes := y.cluster.Nodes
	crossed := make([]sum, (places-nodes)*perPlace)
	for node, number := range y.shape {
		for _, n := range y.shapes[number].connections {
			for _, link := range n.links {
				if link.at == own {
					continue
				}
				if place := int(y.neighbours[node][link.at]); place >= nodes {
					crossed[(place-nodes)*perPlace+int(link.local)].plus(digest(node).add(uint64(c[n.local])))
				}
			}
		}
	}
	all := make([]digest, perPlace)
	for i, d := range crossed {
		all[i%perPlace] = all[i%perPlace].add(uint64(d))
	}
	return all
}

// among divides the places.
func (y *symmetry) among() []int32 {
	places, _ := y.cluster.Places()
	nodes := y.cluster.Nodes
	d := make([]digest, places)
	for node, s := range y.shape {
		d[node] = digest(s)
	}
	for i := nodes; i < places; i++ {
		d[i] = digest(1).add(1)
	}
	for before := distinct(d); ; {
		next := slices.Clone(d)
		groups := make([]sum, places-nodes)
		for node, list := range y.neighbours {
			for i, n := range list {
				next[node] = next[node].add(uint64(d[n]))
				if int(n) >= nodes {
					groups[int(n)-nodes].plus(digest(i).add(uint64(d[node])))
				}
			}
		}
		for i, s := range groups {
			next[nodes+i] = next[nodes+i].add(uint64(s))
		}
		d = next
		now := distinct(d)
		if now == before || now == places {
			return numbered(d)
		}
		before = now
	}
}

// program is what a worker does, as far as it can be told from others.
type program struct {
	label digest
	ports []programPort
}

type programPort struct {
	connection int
	out        bool
	label      uint64
}

// port returns the label of the port that a connection is at.
func (p program) port(connection int, out bool) uint64 {
	for _, port := range p.ports {
		if port.connection == connection && port.out == out {
			return port.label
		}
	}
	return 0
}

// program goes through the runs of a worker's steps.
func (y *symmetry) program(number int) program {
	w := y.schedule.Worker(number)
	p := program{label: digest(w.Role).add(uint64(w.Share * (1 << 32))).add(uint64(w.Steps))}
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

// digest stands for a sequence of numbers that were added; equal digests of
// different sequences are as unlikely as 1 in 2^64.
type digest uint64

func (d digest) add(n uint64) digest { return digest(scramble(uint64(d) ^ scramble(n))) }

// sum stands for a multiset of digests.
type sum uint64

func (s *sum) plus(d digest) { *s += sum(scramble(uint64(d))) }

// distinct returns how many different digests there are.
func distinct(list []digest) int {
	set := make(map[digest]struct{}, len(list))
	for _, d := range list {
		set[d] = struct{}{}
	}
	return len(set)
}

// numbered numbers digests in the order in which they come.
func numbered(list []digest) []int32 {
	numbers := make([]int32, len(list))
	known := map[digest]int32{}
	for i, d := range list {
		n, found := known[d]
		if !found {
			n = int32(len(known))
			known[d] = n
		}
		numbers[i] = n
	}
	return numbers
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
