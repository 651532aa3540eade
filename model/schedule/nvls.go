package schedule

import (
	"slices"

	"tutti/model"
	"tutti/topo/search"
)

// NVLS is AllReduce through the switch: on every machine each rank scatters its
// input over the heads' slots, each head loads the sum of its share over all
// ranks and stores it to all of them at once, and each rank gathers the shares.
// Between machines the h-th heads reduce up a tree and broadcast down it
// (NVLSTree), or the network adds up what they send (NVLS with SHARP). Source:
// NCCL 2.28.3, src/device/all_reduce.h, runNvls and runNvlsTree.
type NVLS struct {
	task  Task
	heads *search.Heads
	parts []looped // by channel, in loops of a chunk per head
	mirror
}

// NewNVLS returns the AllReduce of t with the given heads. The four workers of
// (rank, channel) are 4*(rank*channels + channel) for scatter, then gather,
// reduce and broadcast; the last two have steps on heads only. The four
// connections of (node, head, channel) are 4*((node*heads + head)*channels +
// channel) for the reduction, then the multicast and those up to the parent and
// down from it; the one to a network that reduces is that of node 0 up.
func NewNVLS(t Task, heads *search.Heads) *NVLS {
	r := &NVLS{task: t, heads: heads}
	grain := elements(t, 16<<10)
	if t.Nodes > 1 {
		grain = elements(t, 16)
	}
	for _, p := range split(t) {
		r.parts = append(r.parts, p.loop(int64(heads.Heads()), nvlsChunkOf(t, p, heads.Heads()), grain))
	}
	if !r.aggregates() {
		r.mirror = newMirror(t.Nodes, len(r.parts), heads.Twin, func(a, b int) bool { return r.parts[a].count == r.parts[b].count })
	}
	return r
}

const (
	nvlsReduction = iota
	nvlsMulticast
	nvlsUp
	nvlsDown
)

// Task implements [Schedule].
func (r *NVLS) Task() Task { return r.task }

// Workers implements [Schedule].
func (r *NVLS) Workers() int { return 4 * r.task.Ranks * len(r.parts) }

// Connections implements [Schedule].
func (r *NVLS) Connections() int {
	return 4 * r.heads.Nodes * r.heads.Heads() * len(r.parts)
}

// at takes a worker's number apart.
func (r *NVLS) at(w int) (rank, ch int, role Role) {
	return w / 4 / len(r.parts), w / 4 % len(r.parts), RoleScatter + Role(w%4)
}

func (r *NVLS) worker(rank, ch int, role Role) int {
	return 4*(rank*len(r.parts)+ch) + int(role-RoleScatter)
}

func (r *NVLS) connection(node, head, ch, kind int) int {
	return 4*((node*r.heads.Heads()+head)*len(r.parts)+ch) + kind
}

// aggregates tells whether the network between the machines reduces.
func (r *NVLS) aggregates() bool { return r.task.Algorithm == model.NVLS && r.task.Nodes > 1 }

// place puts a machine into its tree, or below the network that reduces.
func (r *NVLS) place(ch, node int) search.Position {
	if r.aggregates() {
		return search.Position{Up: 0}
	}
	return r.heads.At(ch, node)
}

// sender returns the head's worker that multicasts: the root's reducer, or
// else the one that receives from the parent.
func (r *NVLS) sender(node, head, ch int) int {
	role := RoleBroadcast
	if p := r.place(ch, node); p.Up < 0 {
		role = RoleReduce
	}
	return r.worker(r.heads.Rank(node, head), ch, role)
}

// share returns the part of a block that a role has, of 512 threads or 16 warps.
// NCCL divides 20 warps.
func (r *NVLS) share(role Role, root bool) float64 {
	warps := [...]float64{6, 5, 5, 4} // of scatter, gather, reduce, broadcast
	switch {
	case root && r.task.Ranks <= 6:
		warps = [...]float64{7, 6, 7, 0}
	case root:
		warps = [...]float64{8, 7, 5, 0}
	}
	return warps[role-RoleScatter] / 16
}

// Worker implements [Schedule].
func (r *NVLS) Worker(w int) Worker {
	rank, ch, role := r.at(w)
	node, head := r.heads.NodeOf(rank), r.heads.Of(rank)
	position := r.place(ch, node)
	root := position.Up < 0
	worker := Worker{Rank: rank, Channel: ch, Role: role, Share: r.share(role, root), Steps: r.parts[ch].loops}
	// Connections of this rank's head with other nodes, and of all heads of this node.
	link := func(kind int, nodes ...int) (numbers []int) {
		for _, node := range nodes {
			if r.aggregates() && kind >= nvlsUp {
				kind, node = nvlsUp, 0
			}
			numbers = append(numbers, r.connection(node, head, ch, kind))
		}
		return numbers
	}
	every := func(kind int) (numbers []int) {
		for h := range r.heads.Heads() {
			numbers = append(numbers, r.connection(node, h, ch, kind))
		}
		return numbers
	}
	switch {
	case role == RoleScatter:
		worker.Out = every(nvlsReduction)
	case role == RoleGather:
		worker.In = every(nvlsMulticast)
	case head < 0, root && role == RoleBroadcast:
		worker.Steps = 0
	case role == RoleReduce:
		worker.In = slices.Concat(link(nvlsReduction, node), link(nvlsUp, position.Down()...))
		worker.Out = link(nvlsUp, node)
		if root {
			worker.Out = slices.Concat(link(nvlsMulticast, node), link(nvlsDown, position.Down()...))
		}
	default:
		worker.In = link(nvlsDown, node)
		worker.Out = slices.Concat(link(nvlsMulticast, node), link(nvlsDown, position.Down()...))
	}
	return worker
}

// Connection implements [Schedule].
func (r *NVLS) Connection(c int) Connection {
	ch, at, kind := c/4%len(r.parts), c/4/len(r.parts), c%4
	node, head := at/r.heads.Heads(), at%r.heads.Heads()
	connection := Connection{Slots: bufferSteps, Room: r.parts[ch].chunk, OutNET: -1, InNET: -1}
	all := func(role Role) []int {
		workers := make([]int, r.heads.RanksOn(node))
		for i := range workers {
			workers[i] = r.worker(r.heads.FirstRank(node)+i, ch, role)
		}
		return workers
	}
	reducer := func(node int) []int { return []int{r.worker(r.heads.Rank(node, head), ch, RoleReduce)} }
	position := r.place(ch, node)
	switch {
	case kind == nvlsReduction:
		connection.Kind = Reduction
		connection.From, connection.To = all(RoleScatter), reducer(node)
	case kind == nvlsMulticast:
		connection.Kind = Multicast
		connection.From, connection.To = []int{r.sender(node, head, ch)}, all(RoleGather)
	case r.aggregates():
		if node > 0 || kind == nvlsDown {
			return Connection{OutNET: -1, InNET: -1}
		}
		connection.Kind = Aggregation
		for node := range r.heads.Nodes {
			connection.From = append(connection.From, reducer(node)...)
			connection.To = append(connection.To, r.sender(node, head, ch))
		}
	case position.Up < 0: // the root has no parent
	case kind == nvlsUp:
		connection.From, connection.To = reducer(node), reducer(position.Up)
	default:
		connection.From, connection.To = []int{r.sender(position.Up, head, ch)}, []int{r.sender(node, head, ch)}
	}
	if kind == nvlsUp || kind == nvlsDown {
		connection.OutNET, connection.InNET = r.heads.NET(node, head), r.heads.NET(max(0, position.Up), head)
	}
	if kind == nvlsDown {
		connection.OutNET, connection.InNET = connection.InNET, connection.OutNET
	}
	return connection
}

// Step implements [Schedule].
func (r *NVLS) Step(w, i int) Step {
	rank, ch, role := r.at(w)
	p := &r.parts[ch]
	chunk := p.chunkOf(i)
	s := Step{
		Offset: p.offset + int64(i)*int64(r.heads.Heads())*p.chunk, Count: chunk,
		Stride: chunk, End: p.offset + p.count,
	}
	switch role {
	case RoleScatter:
		s.Input, s.Send = true, First(r.heads.Heads())
		return s
	case RoleGather:
		s.Output, s.Recv = true, First(r.heads.Heads())
		return s
	}
	// A head's own share is the range that its port has in a gather.
	s.narrow(r.heads.Of(rank))
	position := r.place(ch, r.heads.NodeOf(rank))
	children := len(position.Down())
	switch {
	case role == RoleBroadcast:
		s.Recv, s.Send = Port(0), First(1+children)
	case position.Up < 0:
		s.Recv, s.Send = First(1+children), First(1+children)
	default:
		s.Recv, s.Send = First(1+children), Port(0)
	}
	return s
}
