package schedule

import (
	"tutti/model"
	"tutti/topo/search"
)

// Tree is AllReduce on double binary trees: chunks are reduced up to the root
// and broadcast down again, the two directions running side by side. Source:
// NCCL 2.28.3, src/device/all_reduce.h, runTreeSplit.
type Tree struct {
	task  Task
	trees *search.Trees
	parts []part
	chunk []int64
	mirror
}

// NewTree returns the AllReduce of t on the given trees. The workers of (rank,
// channel) are 2*(rank*channels + channel) for up and the next number for down;
// the connections with the parent have the same numbers. At the root the up
// worker does both.
func NewTree(t Task, trees *search.Trees) *Tree {
	r := &Tree{task: t, trees: trees, parts: split(t)}
	for _, p := range r.parts {
		r.chunk = append(r.chunk, treeChunk(t, p))
	}
	r.mirror = newMirror(t.Nodes, len(r.parts), trees.Twin, func(a, b int) bool { return r.parts[a].count == r.parts[b].count })
	return r
}

// Task implements [Schedule].
func (r *Tree) Task() Task { return r.task }

// Workers implements [Schedule].
func (r *Tree) Workers() int { return 2 * r.task.Ranks * len(r.parts) }

// Connections implements [Schedule].
func (r *Tree) Connections() int { return r.Workers() }

// at takes a worker's or connection's number apart.
func (r *Tree) at(w int) (rank, ch int, role Role) {
	return w / 2 / len(r.parts), w / 2 % len(r.parts), RoleUp + Role(w%2)
}

func (r *Tree) number(rank, ch int, role Role) int {
	return 2*(rank*len(r.parts)+ch) + int(role-RoleUp)
}

// TreeShares returns the parts of the threads that reduce and that broadcast: LL
// and LL128 give reducing 70 %, Simple a half (NCCL 2.28.3 adds two warps to it).
func TreeShares(p model.Protocol) (up, down float64) {
	if p == model.Simple {
		return .5, .5
	}
	return .7, .3
}

// share is the part of the threads that a direction has.
func (r *Tree) share(role Role) float64 {
	up, down := TreeShares(r.task.Protocol)
	if role == RoleUp {
		return up
	}
	return down
}

// Worker implements [Schedule].
func (r *Tree) Worker(w int) Worker {
	rank, ch, role := r.at(w)
	position := r.trees.At(ch, rank)
	worker := Worker{Rank: rank, Channel: ch, Role: role, Share: r.share(role), Steps: int(divUp(r.parts[ch].count, r.chunk[ch]))}
	children := func(role Role) (numbers []int) {
		for _, child := range position.Down() {
			numbers = append(numbers, r.number(child, ch, role))
		}
		return numbers
	}
	switch root := position.Up < 0; {
	case root && role == RoleUp:
		worker.Share = 1
		worker.In, worker.Out = children(RoleUp), children(RoleDown)
	case root:
		worker.Steps = 0
	case role == RoleUp:
		worker.In, worker.Out = children(RoleUp), []int{w}
	default:
		worker.In, worker.Out = []int{w}, children(RoleDown)
	}
	return worker
}

// Connection implements [Schedule].
func (r *Tree) Connection(c int) Connection {
	rank, ch, role := r.at(c)
	up := r.trees.At(ch, rank).Up
	if up < 0 {
		return Connection{Slots: bufferSteps, OutNET: -1, InNET: -1}
	}
	parent := r.number(up, ch, role)
	if r.trees.At(ch, up).Up < 0 {
		parent = r.number(up, ch, RoleUp) // the root's one worker
	}
	connection := Connection{From: []int{c}, To: []int{parent}, Slots: bufferSteps, Room: r.chunk[ch]}
	connection.OutNET, connection.InNET = r.trees.NETs(ch, rank, up)
	if role == RoleDown {
		connection.reverse()
	}
	return connection
}

// Step implements [Schedule].
func (r *Tree) Step(w, i int) Step {
	rank, ch, role := r.at(w)
	p, position := r.parts[ch], r.trees.At(ch, rank)
	from := int64(i) * r.chunk[ch]
	s := Step{Offset: p.offset + from, Count: min(r.chunk[ch], p.count-from)}
	children := First(len(position.Down()))
	switch root := position.Up < 0; {
	case root:
		s.Recv, s.Input, s.Output, s.Send = children, true, true, children
	case role == RoleUp:
		s.Recv, s.Input, s.Send = children, true, Port(0)
	default:
		s.Recv, s.Output, s.Send = Port(0), true, children
	}
	return s
}
