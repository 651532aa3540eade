package schedule

import "tutti/topo/search"

// CollNet is AllReduce through a network that reduces (SHARP): on every node each
// rank scatters its input over the heads, the ranks beside a NIC of that network;
// each head reduces its share of the data, hands it to the network, gets back the
// sum over all nodes, and hands that out. Source: NCCL 2.28.3,
// src/device/all_reduce.h, CollNet direct.
type CollNet struct {
	task    Task
	heads   *search.Heads
	perNode int
	parts   []looped // by channel, in loops of a chunk per head
}

// NewCollNet returns the AllReduce of t with the given heads. The four workers of
// (rank, channel) are 4*(rank*channels + channel) for scatter, then gather,
// reduce and broadcast; the last two have steps on heads only. The connection
// with the network of (head, channel) has the number head*channels + channel;
// those between the ranks of a node follow.
func NewCollNet(t Task, heads *search.Heads) *CollNet {
	r := &CollNet{task: t, heads: heads, perNode: t.Ranks / t.Nodes}
	for _, p := range split(t) {
		r.parts = append(r.parts, p.loop(int64(heads.Heads()), inGrains(t, step(t.Protocol)), elements(t, 16)))
	}
	return r
}

// Task implements [Schedule].
func (r *CollNet) Task() Task { return r.task }

// Workers implements [Schedule].
func (r *CollNet) Workers() int { return 4 * r.task.Ranks * len(r.parts) }

// Connections implements [Schedule].
func (r *CollNet) Connections() int { return r.within(0, r.task.Nodes, 0, 0, 0) }

func (r *CollNet) worker(rank, ch int, role Role) int {
	return 4*(rank*len(r.parts)+ch) + int(role-RoleScatter)
}

// scattering and gathering are the two ways between a head and its node's ranks.
const (
	scattering = iota
	gathering
	ways
)

// within returns the connection between a head and a rank of its node.
func (r *CollNet) within(way, node, head, ch, local int) int {
	channels, heads := len(r.parts), r.heads.Heads()
	return heads*channels + (((node*heads+head)*channels+ch)*ways+way)*r.perNode + local
}

// others lists the heads that a rank exchanges data with: all but itself, from
// the next one on, and where that is.
func (r *CollNet) others(rank int) (first, count int) {
	if h := r.heads.Of(rank); h >= 0 {
		return h + 1, r.heads.Heads() - 1
	}
	return 0, r.heads.Heads()
}

// Worker implements [Schedule].
func (r *CollNet) Worker(w int) Worker {
	rank, ch, role := w/4/len(r.parts), w/4%len(r.parts), RoleScatter+Role(w%4)
	node, local, head := rank/r.perNode, rank%r.perNode, r.heads.Of(rank)
	worker := Worker{Rank: rank, Channel: ch, Role: role, Share: .25, Steps: r.parts[ch].loops}
	withHeads := func(way int) (numbers []int) {
		first, count := r.others(rank)
		for p := range count {
			numbers = append(numbers, r.within(way, node, (first+p)%r.heads.Heads(), ch, local))
		}
		return numbers
	}
	withRanks := func(way int) (numbers []int) {
		for p := range r.perNode - 1 {
			numbers = append(numbers, r.within(way, node, head, ch, (local+1+p)%r.perNode))
		}
		return numbers
	}
	network := []int{head*len(r.parts) + ch}
	switch {
	case role == RoleScatter:
		worker.Out = withHeads(scattering)
	case role == RoleGather:
		worker.In = withHeads(gathering)
	case head < 0:
		worker.Steps = 0
	case role == RoleReduce:
		worker.In, worker.Out = withRanks(scattering), network
	default:
		worker.In, worker.Out = network, withRanks(gathering)
	}
	return worker
}

// Connection implements [Schedule].
func (r *CollNet) Connection(c int) Connection {
	channels, heads := len(r.parts), r.heads.Heads()
	connection := Connection{Slots: bufferSteps, OutNET: -1, InNET: -1}
	if c < heads*channels {
		head, ch := c/channels, c%channels
		connection.Kind, connection.Room = Aggregation, r.parts[ch].chunk
		connection.OutNET, connection.InNET = r.heads.NET(0, head), r.heads.NET(0, head)
		for node := range r.task.Nodes {
			rank := r.heads.Rank(node, head)
			connection.From = append(connection.From, r.worker(rank, ch, RoleReduce))
			connection.To = append(connection.To, r.worker(rank, ch, RoleBroadcast))
		}
		return connection
	}
	c -= heads * channels
	local, way, ch := c%r.perNode, c/r.perNode%ways, c/r.perNode/ways%channels
	at := c / r.perNode / ways / channels
	node, head := at/heads, at%heads
	rank, top := node*r.perNode+local, r.heads.Rank(node, head)
	if rank == top {
		return connection
	}
	connection.Room = r.parts[ch].chunk
	if way == scattering {
		connection.From, connection.To = []int{r.worker(rank, ch, RoleScatter)}, []int{r.worker(top, ch, RoleReduce)}
	} else {
		connection.From, connection.To = []int{r.worker(top, ch, RoleBroadcast)}, []int{r.worker(rank, ch, RoleGather)}
	}
	return connection
}

// Step implements [Schedule].
func (r *CollNet) Step(w, i int) Step {
	rank, ch, role := w/4/len(r.parts), w/4%len(r.parts), RoleScatter+Role(w%4)
	p, heads := &r.parts[ch], r.heads.Heads()
	first, count := r.others(rank)
	s := Step{
		Offset: p.offset + int64(i)*p.perLoop*p.chunk, Count: p.chunkOf(i),
		Stride: p.chunkOf(i), End: p.offset + p.count, Turn: first, Blocks: heads,
	}
	switch role {
	case RoleScatter:
		s.Input, s.Send = true, First(count)
		return s
	case RoleGather:
		s.Output, s.Recv = true, First(count)
		return s
	}
	s.narrow(first - 1)
	if role == RoleReduce {
		s.Recv, s.Input, s.Send = First(r.perNode-1), true, Port(0)
	} else {
		s.Recv, s.Output, s.Send = Port(0), true, First(r.perNode-1)
	}
	return s
}
