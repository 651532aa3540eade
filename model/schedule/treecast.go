package schedule

import (
	"tutti/model"
	"tutti/topo/search"
)

// TreeCast is Broadcast and Reduce on the double binary trees of AllReduce,
// hung up by the root of the call instead: data runs along the same edges, away
// from that rank or towards it. NCCL has no such form; it passes both round
// rings.
type TreeCast struct {
	task  Task
	trees *search.Trees
	parts []part
	chunk []int64
	up    []map[int]int // by channel: the new parents, where they are not the tree's
}

// NewTreeCast returns the Broadcast or Reduce of t on the given trees. Its worker
// for (rank, channel) has the number rank*channels + channel, and so has the
// connection along the edge to the rank's parent in the tree.
func NewTreeCast(t Task, trees *search.Trees) *TreeCast {
	r := &TreeCast{task: t, trees: trees, parts: split(t)}
	for ch, p := range r.parts {
		r.chunk = append(r.chunk, treeChunk(t, p))
		turned := map[int]int{t.Root: -1}
		for below, rank := t.Root, trees.At(ch, t.Root).Up; rank >= 0; below, rank = rank, trees.At(ch, rank).Up {
			turned[rank] = below
		}
		r.up = append(r.up, turned)
	}
	return r
}

// Task implements [Schedule].
func (r *TreeCast) Task() Task { return r.task }

// Workers implements [Schedule].
func (r *TreeCast) Workers() int { return r.task.Ranks * len(r.parts) }

// Connections implements [Schedule].
func (r *TreeCast) Connections() int { return r.Workers() }

// place returns the ranks next to one: towards the root, or -1, and away from it.
func (r *TreeCast) place(ch, rank int) (up int, down []int) {
	position := r.trees.At(ch, rank)
	up = position.Up
	if turned, ok := r.up[ch][rank]; ok {
		up = turned
	}
	for _, other := range append([]int{position.Up}, position.Down()...) {
		if other >= 0 && other != up {
			down = append(down, other)
		}
	}
	return up, down
}

// edge returns the connection between a rank and one next to it.
func (r *TreeCast) edge(ch, a, b int) int {
	if r.trees.At(ch, a).Up != b {
		a = b
	}
	return a*len(r.parts) + ch
}

// Worker implements [Schedule].
func (r *TreeCast) Worker(w int) Worker {
	rank, ch := w/len(r.parts), w%len(r.parts)
	worker := Worker{Rank: rank, Channel: ch, Role: RoleDown, Share: 1, Steps: int(divUp(r.parts[ch].count, r.chunk[ch]))}
	up, down := r.place(ch, rank)
	if up >= 0 {
		worker.In = []int{r.edge(ch, rank, up)}
	}
	for _, other := range down {
		worker.Out = append(worker.Out, r.edge(ch, rank, other))
	}
	if r.task.Collective == model.Reduce {
		worker.Role, worker.In, worker.Out = RoleUp, worker.Out, worker.In
	}
	return worker
}

// Connection implements [Schedule].
func (r *TreeCast) Connection(c int) Connection {
	rank, ch := c/len(r.parts), c%len(r.parts)
	connection := Connection{Slots: bufferSteps, Room: r.chunk[ch], OutNET: -1, InNET: -1}
	other := r.trees.At(ch, rank).Up
	if other < 0 {
		return connection
	}
	connection.OutNET, connection.InNET = r.trees.NETs(ch, rank, other)
	connection.From, connection.To = []int{c}, []int{other*len(r.parts) + ch}
	if up, _ := r.place(ch, rank); (up == other) == (r.task.Collective == model.Broadcast) {
		connection.reverse()
	}
	return connection
}

// Step implements [Schedule].
func (r *TreeCast) Step(w, i int) Step {
	rank, ch := w/len(r.parts), w%len(r.parts)
	from := int64(i) * r.chunk[ch]
	s := Step{Offset: r.parts[ch].offset + from, Count: min(r.chunk[ch], r.parts[ch].count-from)}
	up, down := r.place(ch, rank)
	root := up < 0
	if !root {
		s.Recv = Port(0)
	}
	s.Send = First(len(down))
	s.Input, s.Output = root, !root || !r.task.InPlace
	if r.task.Collective == model.Reduce {
		s.Recv, s.Send = s.Send, s.Recv
		s.Input, s.Output = true, root
	}
	return s
}
