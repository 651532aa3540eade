package schedule

// SimpleRing is the AllReduce that passes whole buffers instead of a chunk per
// rank: the first rank of the ring sends, each next one reduces and sends, and
// from the last the sums go round once more. That is few and large messages, at
// the price of links that are idle most of the time. Here a buffer goes in
// chunks as large as a slot, so that the ranks work at the same time. Source:
// the project Penny, its simple ring.
type SimpleRing struct {
	task  Task
	rings Rings
	parts []looped // by channel
}

// NewSimpleRing returns the AllReduce of t on the given rings. The workers of
// (rank, channel) are 2*(rank*channels + channel) for reducing and the next
// number for handing on the sums; the connections to the next rank have the same
// numbers. The last rank's first worker does both.
func NewSimpleRing(t Task, rings Rings) *SimpleRing {
	r := &SimpleRing{task: t, rings: rings}
	for _, p := range split(t) {
		r.parts = append(r.parts, p.loop(1, inGrains(t, step(t.Protocol)), 1))
	}
	return r
}

// Task implements [Schedule].
func (r *SimpleRing) Task() Task { return r.task }

// Workers implements [Schedule].
func (r *SimpleRing) Workers() int { return 2 * r.task.Ranks * len(r.parts) }

// Connections implements [Schedule].
func (r *SimpleRing) Connections() int { return r.Workers() }

// at takes a worker's or connection's number apart.
func (r *SimpleRing) at(w int) (rank, ch int, role Role) {
	return w / 2 / len(r.parts), w / 2 % len(r.parts), [...]Role{RoleReduce, RoleBroadcast}[w%2]
}

func (r *SimpleRing) number(rank, ch int, role Role) int {
	w := 2 * (rank*len(r.parts) + ch)
	if role == RoleBroadcast {
		w++
	}
	return w
}

// Worker implements [Schedule].
func (r *SimpleRing) Worker(w int) Worker {
	rank, ch, role := r.at(w)
	place, last := r.rings.Index(ch, rank), r.task.Ranks-1
	worker := Worker{Rank: rank, Channel: ch, Role: role, Share: .5, Steps: r.parts[ch].loops}
	if role == RoleReduce && place > 0 || role == RoleBroadcast && place < last {
		worker.In = []int{r.number(r.rings.At(ch, place-1), ch, role)}
	}
	switch {
	case role == RoleBroadcast && place == last:
		worker.Steps = 0
	case role == RoleReduce && place == last:
		worker.Share = 1
		if last > 0 {
			worker.Out = []int{r.number(rank, ch, RoleBroadcast)}
		}
	case role == RoleReduce || place < last-1:
		worker.Out = []int{w}
	}
	return worker
}

// Connection implements [Schedule].
func (r *SimpleRing) Connection(c int) Connection {
	rank, ch, role := r.at(c)
	place, last := r.rings.Index(ch, rank), r.task.Ranks-1
	if last == 0 || role == RoleReduce && place == last || role == RoleBroadcast && place == last-1 {
		return Connection{OutNET: -1, InNET: -1}
	}
	from := c
	if role == RoleBroadcast && place == last {
		from = r.number(rank, ch, RoleReduce)
	}
	out, in := r.rings.NETs(ch, rank)
	return Connection{
		From: []int{from}, To: []int{r.number(r.rings.At(ch, place+1), ch, role)},
		Slots: bufferSteps, Room: r.parts[ch].chunk, OutNET: out, InNET: in,
	}
}

// Step implements [Schedule].
func (r *SimpleRing) Step(w, i int) Step {
	rank, ch, role := r.at(w)
	p := &r.parts[ch]
	place, last := r.rings.Index(ch, rank), r.task.Ranks-1
	s := Step{Offset: p.offset + int64(i)*p.chunk, Count: p.chunkOf(i), Input: role == RoleReduce}
	s.Output = role == RoleBroadcast || place == last
	if role == RoleBroadcast || place > 0 {
		s.Recv = Port(0)
	}
	if last > 0 && (role == RoleReduce || place < last-1) {
		s.Send = Port(0)
	}
	return s
}
