package schedule

// Hierarchical is AllReduce in three stages that overlap: within each node the
// ranks reduce a share of the data each, the ranks of the same share reduce it
// further on a ring over the nodes, every rank on its own rail, and within each
// node they hand the sums out. With N nodes of k ranks a NIC carries 2(N-1)/N of
// a k-th of the data each way. The two outer stages are those of [TwoShot], the
// inner one is a [Ring].
type Hierarchical struct {
	task    Task
	rails   Rails
	perNode int
	parts   []looped // by channel, in loops of a chunk for each rank
}

// NewHierarchical returns the AllReduce of t, whose rails leave machines by the
// given ports. The workers of (rank, channel) are 3*(rank*channels + channel)
// for scattering, and the two that follow for the rail and for gathering.
// Connections are numbered rail by rail as the workers are, then those for
// scattering between the ranks of a node, then those for gathering.
func NewHierarchical(t Task, rails Rails) *Hierarchical {
	r := &Hierarchical{task: t, rails: rails, perNode: t.Ranks / t.Nodes}
	chunk := inGrains(t, step(t.Protocol))
	for _, p := range split(t) {
		r.parts = append(r.parts, p.loop(int64(t.Ranks), chunk, elements(t, 16)))
	}
	return r
}

// Task implements [Schedule].
func (r *Hierarchical) Task() Task { return r.task }

const (
	railScatter = iota
	railRing
	railGather
	railRoles
)

// Workers implements [Schedule].
func (r *Hierarchical) Workers() int { return railRoles * r.task.Ranks * len(r.parts) }

// blocks is how many (rank, channel) there are.
func (r *Hierarchical) blocks() int { return r.task.Ranks * len(r.parts) }

// Connections implements [Schedule].
func (r *Hierarchical) Connections() int { return r.blocks() * (1 + 2*(r.perNode-1)) }

// within returns the connection, of the scatter or the gather, from a rank to
// that of its node that is p + 1 further on.
func (r *Hierarchical) within(stage, rank, ch, p int) int {
	return r.blocks()*(1+stage*(r.perNode-1)) + (rank*len(r.parts)+ch)*(r.perNode-1) + p
}

// further returns the rank of the same node that is p + 1 further on.
func (r *Hierarchical) further(rank, p int) int {
	first := rank / r.perNode * r.perNode
	return first + (rank-first+1+p)%r.perNode
}

// hops is the number of primitives of the ring in each loop.
func (r *Hierarchical) hops() int { return 2*r.task.Nodes - 1 }

// Worker implements [Schedule].
func (r *Hierarchical) Worker(w int) Worker {
	block, role := w/railRoles, w%railRoles
	rank, ch := block/len(r.parts), block%len(r.parts)
	worker := Worker{
		Rank: rank, Channel: ch, Role: [...]Role{RoleScatter, RoleRing, RoleGather}[role],
		Share: [...]float64{.45, .45, .1}[role], Steps: r.parts[ch].loops * r.task.Nodes,
	}
	if role == railRing {
		worker.Steps = r.parts[ch].loops * r.hops()
		previous := (rank + r.task.Ranks - r.perNode) % r.task.Ranks
		worker.In, worker.Out = []int{previous*len(r.parts) + ch}, []int{block}
	}
	for p := range r.perNode - 1 {
		// What the rank that is p + 1 further on sends here goes as much less than once round.
		in := func(stage int) int { return r.within(stage, r.further(rank, p), ch, r.perNode-2-p) }
		switch role {
		case railScatter:
			worker.Out = append(worker.Out, r.within(0, rank, ch, p))
		case railRing:
			worker.In = append(worker.In, in(0))
			worker.Out = append(worker.Out, r.within(1, rank, ch, p))
		case railGather:
			worker.In = append(worker.In, in(1))
		}
	}
	return worker
}

// Connection implements [Schedule].
func (r *Hierarchical) Connection(c int) Connection {
	worker := func(rank, ch, role int) []int { return []int{railRoles*(rank*len(r.parts)+ch) + role} }
	connection := Connection{Slots: bufferSteps, OutNET: -1, InNET: -1}
	var ch int
	if c < r.blocks() {
		rank := c / len(r.parts)
		ch = c % len(r.parts)
		next := (rank + r.perNode) % r.task.Ranks
		connection.From, connection.To = worker(rank, ch, railRing), worker(next, ch, railRing)
		if next != rank {
			connection.OutNET, connection.InNET = r.rails.NET(ch, rank), r.rails.NET(ch, next)
		}
	} else {
		c -= r.blocks()
		p, block, stage := c%(r.perNode-1), c/(r.perNode-1)%r.blocks(), c/(r.perNode-1)/r.blocks()
		rank := block / len(r.parts)
		ch = block % len(r.parts)
		from, to := railScatter, railRing
		if stage == 1 {
			from, to = railRing, railGather
		}
		connection.From, connection.To = worker(rank, ch, from), worker(r.further(rank, p), ch, to)
	}
	connection.Room = r.parts[ch].chunk
	return connection
}

// Step implements [Schedule].
func (r *Hierarchical) Step(w, i int) Step {
	block, role := w/railRoles, w%railRoles
	rank, ch := block/len(r.parts), block%len(r.parts)
	node, local, nodes := rank/r.perNode, rank%r.perNode, r.task.Nodes
	p := &r.parts[ch]
	// The scatter feeds the ring's first hops and the gather takes what its last ones give.
	loop, hop := i/nodes, i%nodes
	switch role {
	case railRing:
		loop, hop = i/r.hops(), i%r.hops()
	case railGather:
		hop += nodes - 1
	}
	chunk := p.chunkOf(loop)
	turn := (node - 1 - hop + 2*nodes) % nodes
	s := Step{
		Offset: p.offset + int64(loop)*p.perLoop*p.chunk + int64(turn)*chunk, Count: chunk,
		Stride: int64(nodes) * chunk, End: p.offset + p.count, Turn: local + 1, Blocks: r.perNode,
	}
	neighbours := Ports{1, r.perNode}
	switch role {
	case railScatter:
		s.Input, s.Send = true, First(r.perNode-1)
	case railGather:
		s.Output, s.Recv = true, First(r.perNode-1)
	default:
		s.narrow(local)
		s.Input, s.Output = hop < nodes, hop >= nodes-1
		if hop < nodes {
			s.Recv = neighbours
		}
		if hop >= nodes-1 {
			s.Send = neighbours
		}
		if hop > 0 { // and the ring's own ports
			s.Recv = Ports{0, max(1, s.Recv.To)}
		}
		if hop < r.hops()-1 {
			s.Send = Ports{0, max(1, s.Send.To)}
		}
	}
	return s
}
