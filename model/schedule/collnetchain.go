package schedule

import "tutti/topo/search"

// CollNetChain is AllReduce through a network that reduces (SHARP), over one rank
// of each node: the node's chain reduces towards its first rank, which hands the
// sum to the network, and hands on what comes back. Source: NCCL 2.28.3,
// src/device/all_reduce.h, CollNet chain.
type CollNetChain struct {
	task   Task
	chains *search.Trees
	parts  []looped // by channel
}

// NewCollNetChain returns the AllReduce of t on the chains that the given trees
// have in each node. The workers of (rank, channel) are 2*(rank*channels +
// channel) for up and the next number for down, and so are the connections with
// the chain's rank before; the network's of each channel follow.
func NewCollNetChain(t Task, chains *search.Trees) *CollNetChain {
	r := &CollNetChain{task: t, chains: chains}
	for _, p := range split(t) {
		r.parts = append(r.parts, p.loop(1, inGrains(t, step(t.Protocol)), 1))
	}
	return r
}

// Task implements [Schedule].
func (r *CollNetChain) Task() Task { return r.task }

// Workers implements [Schedule].
func (r *CollNetChain) Workers() int { return 2 * r.task.Ranks * len(r.parts) }

// Connections implements [Schedule].
func (r *CollNetChain) Connections() int { return r.Workers() + len(r.parts) }

// at takes a worker's or connection's number apart.
func (r *CollNetChain) at(w int) (rank, ch int, role Role) {
	return w / 2 / len(r.parts), w / 2 % len(r.parts), RoleUp + Role(w%2)
}

func (r *CollNetChain) number(rank, ch int, role Role) int {
	return 2*(rank*len(r.parts)+ch) + int(role-RoleUp)
}

// chain returns the ranks before and after one in its node's chain, or -1.
func (r *CollNetChain) chain(ch, rank int) (before, after int) {
	local := func(other int) int {
		if other < 0 || r.chains.NodeOf(other) != r.chains.NodeOf(rank) {
			return -1
		}
		return other
	}
	position := r.chains.At(ch, rank)
	after = -1
	for _, child := range position.Down() {
		after = max(after, local(child))
	}
	return local(position.Up), after
}

// Worker implements [Schedule].
func (r *CollNetChain) Worker(w int) Worker {
	rank, ch, role := r.at(w)
	before, after := r.chain(ch, rank)
	top := []int{w}
	if before < 0 {
		top = []int{r.Workers() + ch}
	}
	var bottom []int
	if after >= 0 {
		bottom = []int{r.number(after, ch, role)}
	}
	worker := Worker{Rank: rank, Channel: ch, Role: role, Share: .5, Steps: r.parts[ch].loops, In: bottom, Out: top}
	if role == RoleDown {
		worker.In, worker.Out = top, bottom
	}
	return worker
}

// Connection implements [Schedule].
func (r *CollNetChain) Connection(c int) Connection {
	connection := Connection{Slots: bufferSteps, OutNET: -1, InNET: -1}
	if c >= r.Workers() {
		ch := c - r.Workers()
		connection.Kind, connection.Room = Aggregation, r.parts[ch].chunk
		connection.OutNET, connection.InNET = r.chains.NET(ch, 0), r.chains.NET(ch, 0)
		for rank := range r.task.Ranks {
			if before, _ := r.chain(ch, rank); before < 0 {
				connection.From = append(connection.From, r.number(rank, ch, RoleUp))
				connection.To = append(connection.To, r.number(rank, ch, RoleDown))
			}
		}
		return connection
	}
	rank, ch, role := r.at(c)
	before, _ := r.chain(ch, rank)
	if before < 0 {
		return connection
	}
	connection.Room = r.parts[ch].chunk
	connection.From, connection.To = []int{c}, []int{r.number(before, ch, role)}
	if role == RoleDown {
		connection.From, connection.To = connection.To, connection.From
	}
	return connection
}

// Step implements [Schedule].
func (r *CollNetChain) Step(w, i int) Step {
	rank, ch, role := r.at(w)
	p := &r.parts[ch]
	s := Step{Offset: p.offset + int64(i)*p.chunk, Count: p.chunkOf(i)}
	var bottom Ports
	if _, after := r.chain(ch, rank); after >= 0 {
		bottom = Port(0)
	}
	if role == RoleUp {
		s.Recv, s.Input, s.Send = bottom, true, Port(0)
	} else {
		s.Recv, s.Output, s.Send = Port(0), true, bottom
	}
	return s
}
