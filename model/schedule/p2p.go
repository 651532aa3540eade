package schedule

import (
	"math/bits"

	"tutti/model"
)

// Rails tells by which port a rank meets the network, as package search finds
// it; -1 if there is none.
type Rails interface {
	Layout
	NET(channel, rank int) int
}

// P2P is AllToAll, SendRecv and Exchange as rounds of sends: in each round a
// rank sends to one rank and receives from another, so that no two send to the
// same. Sources: NCCL 2.28.3, src/init.cc, p2pSchedule, for the order of the
// rounds; for Exchange, in which pairs of ranks swap their data, the project
// Penny.
type P2P struct {
	task  Task
	parts []looped // by channel
	order []round
	rails Rails
	// What the rounds of AllToAll go by: machines, and ranks on each.
	nodes, perNode int
}

// round is how far a round's sends go: so many nodes on, and so many ranks
// within the node.
type round struct{ nodes, ranks int }

// NewP2P returns the schedule of t, which leaves machines by the given ports.
// The workers of (rank, channel) are 2*(rank*channels + channel) for sending
// and the next number for receiving; the connection out of a rank in a round has
// the number (rank*channels + channel)*rounds + round.
func NewP2P(t Task, rails Rails) Schedule {
	r := &P2P{task: t, rails: rails}
	for _, p := range split(t) {
		r.parts = append(r.parts, p.loop(1, inGrains(t, step(t.Protocol)), 1))
	}
	if t.Collective != model.AllToAll {
		r.order = []round{{}} // with the peer, whoever that is
		return r
	}
	r.nodes, r.perNode = t.Nodes, t.Ranks/t.Nodes
	if !rails.Even() { // all ranks count as those of one node
		r.nodes, r.perNode = 1, t.Ranks
	}
	for _, nodes := range triangular(r.nodes) {
		for _, ranks := range triangular(r.perNode) {
			r.order = append(r.order, round{nodes, ranks})
		}
	}
	if rails.Even() {
		return &turning{r}
	}
	return r
}

// triangular lists the numbers below n in the order 0, 1, 3, 6, 10 … modulo the
// power of two above, which spreads traffic better than counting.
func triangular(n int) (order []int) {
	power := 1 << bits.Len(uint(n-1))
	for i, at := 0, 0; i < power; i++ {
		at = (at + i) % power
		if at < n {
			order = append(order, at)
		}
	}
	return order
}

// Task implements [Schedule].
func (r *P2P) Task() Task { return r.task }

// Workers implements [Schedule].
func (r *P2P) Workers() int { return 2 * r.task.Ranks * len(r.parts) }

// Connections implements [Schedule].
func (r *P2P) Connections() int { return r.task.Ranks * len(r.parts) * len(r.order) }

// peers returns the ranks that a rank sends to and receives from in a round.
func (r *P2P) peers(rank, i int) (to, from int) {
	if r.task.Collective != model.AllToAll {
		return r.task.Peer(rank), r.task.Source(rank)
	}
	node, local := rank/r.perNode, rank%r.perNode
	at := func(nodes, ranks int) int {
		return (nodes%r.nodes)*r.perNode + ranks%r.perNode
	}
	by := r.order[i]
	return at(node+by.nodes, local+by.ranks), at(node+r.nodes-by.nodes, local+r.perNode-by.ranks)
}

// Worker implements [Schedule].
func (r *P2P) Worker(w int) Worker {
	rank, ch := w/2/len(r.parts), w/2%len(r.parts)
	worker := Worker{Rank: rank, Channel: ch, Role: RoleScatter + Role(w%2), Share: .5, Steps: r.parts[ch].loops * len(r.order)}
	for i := range r.order {
		switch to, from := r.peers(rank, i); {
		case to == rank:
		case worker.Role == RoleGather:
			worker.In = append(worker.In, (from*len(r.parts)+ch)*len(r.order)+i)
		default:
			worker.Out = append(worker.Out, w/2*len(r.order)+i)
		}
	}
	return worker
}

// Connection implements [Schedule].
func (r *P2P) Connection(c int) Connection {
	i, sender := c%len(r.order), c/len(r.order)
	rank, ch := sender/len(r.parts), sender%len(r.parts)
	to, _ := r.peers(rank, i)
	if to == rank {
		return Connection{OutNET: -1, InNET: -1}
	}
	connection := Connection{
		From: []int{2 * sender}, To: []int{2*(to*len(r.parts)+ch) + 1},
		Slots: bufferSteps, Room: r.parts[ch].chunk, OutNET: -1, InNET: -1,
	}
	if r.rails.NodeOf(to) != r.rails.NodeOf(rank) {
		connection.OutNET, connection.InNET = r.rails.NET(ch, rank), r.rails.NET(ch, to)
	}
	return connection
}

// Step implements [Schedule].
func (r *P2P) Step(w, i int) Step {
	rank, ch := w/2/len(r.parts), w/2%len(r.parts)
	p := &r.parts[ch]
	i, loop := i/p.loops, i%p.loops
	to, from := r.peers(rank, i)
	port := Port(max(0, i-1)) // of several rounds, the first is a rank's with itself
	s := Step{Count: p.chunkOf(loop)}
	first, stride := r.task.sent(rank)
	peer := to
	switch sends := w%2 == 0; {
	case to == rank && sends:
		s.Input, s.Output = true, true
	case to == rank:
		return Step{} // the sender has copied it
	case sends:
		s.Input, s.Send = true, port
	default:
		first, stride = r.task.received(rank)
		peer = from
		s.Output, s.Recv = true, port
	}
	s.Offset = first + int64(peer)*stride + p.offset + int64(loop)*p.chunk
	return s
}
