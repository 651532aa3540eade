package schedule

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
)

// Verify proves a schedule: it runs the network symbolically, every item being
// the set of ranks whose data it holds, and fails at the first step that
//
//   - names a port, a range of elements or a buffer that the worker does not have,
//   - puts more into a connection than a slot has room for,
//   - takes a range of elements other than the one it was sent,
//   - adds a rank's data to data that already holds it.
//
// When no worker can go on, it fails unless all have finished (deadlock at the
// given credits), no item is left in a connection, and every element of every
// output was written once and holds the data of each rank that has the element
// in its input, exactly once.
//
// A schedule that passes with one order of execution passes with all, as the
// network is deterministic; what that does not cover are buffers that several
// workers use. So Verify keeps vector clocks (Fidge; Mattern, 1988) and fails
// unless each of these is certain to come first, whatever the order:
//
//   - in place, every read of an element before the write to it,
//   - the start of a rank before another writes to its output,
//   - the reads of a rank's input by others before the rank returns.
//
// An error names rank, channel, worker and step. Time and memory are
// proportional to the steps, times the workers.
func Verify(s Schedule) error {
	v := newVerifier(s)
	if v.err == nil {
		v.run()
	}
	if v.err == nil {
		v.checkEnd()
	}
	return v.err
}

// rankSet is a set of ranks, never changed once made.
type rankSet []uint64

func (s rankSet) has(rank int) bool { return len(s) > 0 && s[rank/64]>>(rank%64)&1 == 1 }

// item is what a slot holds once the last of its writers has put it there.
type item struct {
	offset, count int64
	ranks         rankSet
	puts, takes   int   // so far
	put, taken    clock // what surely came before the readers, and before the next use of the slot
}

type connection struct {
	Connection
	items []item // all that there ever were
}

type worker struct {
	Worker
	number   int
	done     int // steps
	clock    clock
	sent     []int // items by outbound port, so far
	received []int // items by inbound port
}

// access is a read or write of a rank's buffer by a step.
type access struct {
	offset, count int64
	worker, step  int
	ranks         rankSet // written
	clock         clock   // of a write
	far           bool    // by another rank
}

type verifier struct {
	schedule    Schedule
	task        Task
	workers     []worker
	connections []connection
	reads       [][]access // of the input, by rank
	writes      [][]access // of the output
	err         error
}

func newVerifier(s Schedule) *verifier {
	t := s.Task()
	v := &verifier{
		schedule: s, task: t, reads: make([][]access, t.Ranks), writes: make([][]access, t.Ranks),
		workers: make([]worker, s.Workers()), connections: make([]connection, s.Connections()),
	}
	for c := range v.connections {
		v.connections[c].Connection = s.Connection(c)
	}
	for i := range v.workers {
		w := &v.workers[i]
		*w = worker{Worker: s.Worker(i), number: i}
		w.received, w.sent = make([]int, len(w.In)), make([]int, len(w.Out))
		if w.Steps > 0 {
			v.checkWired(w, w.In, func(c Connection) []int { return c.To })
			v.checkWired(w, w.Out, func(c Connection) []int { return c.From })
		}
	}
	return v
}

// checkWired fails unless the connections name the worker as it names them.
func (v *verifier) checkWired(w *worker, ports []int, ends func(Connection) []int) {
	for i, c := range ports {
		if c < 0 || c >= len(v.connections) {
			v.fail(w, "port %d names connection %d, of %d", i, c, len(v.connections))
		} else if !slices.Contains(ends(v.connections[c].Connection), w.number) {
			v.fail(w, "port %d names connection %d, which does not name the worker", i, c)
		}
	}
}

func (v *verifier) fail(w *worker, format string, args ...any) {
	if v.err == nil {
		v.err = fmt.Errorf("rank %d, channel %d, %s worker, step %d of %d: %s", w.Rank, w.Channel, w.Role, w.done, w.Steps, fmt.Sprintf(format, args...))
	}
}

// run lets every worker go on as far as it can, until none can.
func (v *verifier) run() {
	for progress := true; progress && v.err == nil; {
		progress = false
		for i := range v.workers {
			for w := &v.workers[i]; w.done < w.Steps && v.step(w); w.done++ {
				progress = true
			}
		}
	}
}

// step runs the worker's next step; it returns false if the step has to wait or
// is at fault.
func (v *verifier) step(w *worker) bool {
	s := v.schedule.Step(w.number, w.done)
	if v.checkStep(w, &s); v.err != nil || !v.ready(w, &s) {
		return false
	}
	v.tick(w, &s)
	own := rankSet(nil)
	if s.Input {
		own = make(rankSet, (v.task.Ranks+63)/64)
		own[w.Rank/64] = 1 << (w.Rank % 64)
		v.forRanges(&s, func(offset, count int64) { v.read(w, w.Rank, offset, count) })
	}
	value := own
	for port := range s.Recv.All() {
		taken := v.take(w, &s, port)
		if s.Stride != 0 { // each port's block stands alone
			value = own
		}
		value = v.union(w, value, taken.ranks)
		if offset, count := s.Range(port); s.Stride != 0 && s.Output && v.storage(w.In[port]) != InOutput {
			v.write(w, w.Rank, offset, count, value)
		}
	}
	inPlace := s.Recv.Len() > 0 && v.storage(w.In[s.Recv.From]) == InOutput
	if s.Stride == 0 && s.Output && !inPlace {
		v.write(w, w.Rank, s.Offset, s.Count, value)
	}
	for port := range s.Send.All() {
		v.put(w, &s, port, value)
	}
	return v.err == nil
}

func (v *verifier) storage(c int) Storage { return v.connections[c].Storage }

// forRanges calls f for every range of elements that a step is about.
func (v *verifier) forRanges(s *Step, f func(offset, count int64)) {
	if s.Stride == 0 {
		f(s.Offset, s.Count)
		return
	}
	for _, ports := range [...]Ports{s.Recv, s.Send} {
		for port := range ports.All() {
			f(s.Range(port))
		}
	}
}

// checkStep fails for a step that asks for what is not there.
func (v *verifier) checkStep(w *worker, s *Step) {
	if s.Recv.From < 0 || s.Recv.To > len(w.In) || s.Send.From < 0 || s.Send.To > len(w.Out) {
		v.fail(w, "uses ports %v in and %v out, and has %d and %d", s.Recv, s.Send, len(w.In), len(w.Out))
		return
	}
	in, out := v.task.Input(w.Rank), v.task.Output(w.Rank)
	v.forRanges(s, func(offset, count int64) {
		switch {
		case offset < 0 || count < 0 || offset+count > v.task.Elements():
			v.fail(w, "elements %d to %d are out of bounds", offset, offset+count)
		case s.Input && !in.Holds(offset, count):
			v.fail(w, "elements %d to %d are not in the rank's input", offset, offset+count)
		case s.Output && !out.Holds(offset, count):
			v.fail(w, "elements %d to %d are not in the rank's output", offset, offset+count)
		}
	})
	for port := range s.Recv.All() {
		if zeroCopy := v.storage(w.In[port]) == InOutput; zeroCopy && (s.Input || !s.Output || s.Stride == 0 && s.Recv.Len() > 1) {
			v.fail(w, "port %d brings its items into the output, and the step does not leave them there", port)
		}
	}
	for port := range s.Send.All() {
		if _, count := s.Range(port); count > v.connections[w.Out[port]].Room {
			v.fail(w, "puts %d elements where there is room for %d", count, v.connections[w.Out[port]].Room)
		}
		if v.storage(w.Out[port]) == InInput && (s.Recv.Len() > 0 || !s.Input) {
			v.fail(w, "port %d hands out the input, and the step something else", port)
		}
	}
}

// ready tells whether every inbound port has an item and every outbound port a
// free slot.
func (v *verifier) ready(w *worker, s *Step) bool {
	for port := range s.Recv.All() {
		c, i := &v.connections[w.In[port]], w.received[port]
		if i >= len(c.items) || c.items[i].puts < len(c.From) {
			return false
		}
	}
	for port := range s.Send.All() {
		c := &v.connections[w.Out[port]]
		last := w.sent[port] - c.Slots // the item that had the slot before
		if c.Slots < 1 || last >= 0 && c.items[last].takes < len(c.To) {
			return false
		}
	}
	return true
}

// tick sets the worker's clock for a step: after everything that the items and
// the free slots come after.
func (v *verifier) tick(w *worker, s *Step) {
	now := make(clock, len(v.workers))
	now.join(w.clock)
	for port := range s.Recv.All() {
		now.join(v.connections[w.In[port]].items[w.received[port]].put)
	}
	for port := range s.Send.All() {
		c := &v.connections[w.Out[port]]
		if last := w.sent[port] - c.Slots; last >= 0 {
			now.join(c.items[last].taken)
		}
	}
	now[w.number] = int32(w.done + 1)
	w.clock = now
}

// take removes the item at the head of an inbound port.
func (v *verifier) take(w *worker, s *Step, port int) item {
	c := &v.connections[w.In[port]]
	taken := &c.items[w.received[port]]
	w.received[port]++
	if offset, count := s.Range(port); taken.offset != offset || taken.count != count {
		v.fail(w, "wants elements %d to %d and was sent %d to %d", offset, offset+count, taken.offset, taken.offset+taken.count)
	}
	if c.Storage == InInput {
		for _, from := range c.From {
			v.read(w, v.workers[from].Rank, taken.offset, taken.count)
		}
	}
	taken.taken = joined(taken.taken, w.clock)
	taken.takes++
	return *taken
}

// put adds an item to an outbound port, or this writer's part of it.
func (v *verifier) put(w *worker, s *Step, port int, value rankSet) {
	c := &v.connections[w.Out[port]]
	offset, count := s.Range(port)
	i := w.sent[port]
	w.sent[port]++
	if i == len(c.items) {
		c.items = append(c.items, item{offset: offset, count: count})
	}
	sum := &c.items[i]
	if sum.offset != offset || sum.count != count {
		v.fail(w, "reduces elements %d to %d with %d to %d", sum.offset, sum.offset+sum.count, offset, offset+count)
	}
	sum.ranks = v.union(w, sum.ranks, value)
	sum.put = joined(sum.put, w.clock)
	sum.puts++
	if c.Storage == InOutput {
		for _, to := range c.To {
			v.write(w, v.workers[to].Rank, offset, count, value)
		}
	}
}

func (v *verifier) union(w *worker, a, b rankSet) rankSet {
	if a == nil {
		return b
	}
	sum := slices.Clone(a)
	for i := range b {
		if twice := a[i] & b[i]; twice != 0 {
			v.fail(w, "adds the data of rank %d twice", 64*i+bits.TrailingZeros64(twice))
		}
		sum[i] |= b[i]
	}
	return sum
}

func (v *verifier) read(w *worker, rank int, offset, count int64) {
	if count > 0 {
		v.reads[rank] = append(v.reads[rank], access{offset: offset, count: count, worker: w.number, step: w.done, far: rank != w.Rank})
	}
}

func (v *verifier) write(w *worker, rank int, offset, count int64, ranks rankSet) {
	if count > 0 {
		v.writes[rank] = append(v.writes[rank], access{offset, count, w.number, w.done, ranks, w.clock, rank != w.Rank})
	}
}

// checkEnd looks at what is there when nothing moves any more.
func (v *verifier) checkEnd() {
	for i := range v.workers {
		if w := &v.workers[i]; w.done < w.Steps {
			v.fail(w, "waits for ever: deadlock")
			return
		}
	}
	for c := range v.connections {
		n := &v.connections[c]
		left := slices.IndexFunc(n.items, func(i item) bool { return i.takes < len(n.To) })
		if left >= 0 && v.err == nil {
			v.err = fmt.Errorf("connection %d from worker %v to %v: %d items are left", c, n.From, n.To, len(n.items)-left)
		}
	}
	for rank := range v.writes {
		slices.SortFunc(v.writes[rank], func(a, b access) int { return cmp.Compare(a.offset, b.offset) })
		v.checkOutput(rank)
		v.checkOrder(rank)
	}
}

// failAt fails for a step that was done before.
func (v *verifier) failAt(a access, format string, args ...any) {
	w := v.workers[a.worker]
	w.done = a.step
	v.fail(&w, format, args...)
}

// checkOutput fails unless every element of a rank's output was written once,
// with what belongs there.
func (v *verifier) checkOutput(rank int) {
	out := v.task.Output(rank)
	writes := v.writes[rank]
	for block := range out.Blocks {
		next := out.First + block*out.Stride
		end := next + out.Block
		for len(writes) > 0 && writes[0].offset < end {
			a := writes[0]
			writes = writes[1:]
			if a.offset < next {
				v.failAt(a, "writes element %d of rank %d's output a second time", a.offset, rank)
			}
			v.checkUnwritten(rank, next, a.offset)
			v.checkRanks(a, rank)
			next = a.offset + a.count
		}
		v.checkUnwritten(rank, next, end)
	}
}

// checkUnwritten fails for elements of the output that nobody wrote, unless they
// are where they belong from the beginning.
func (v *verifier) checkUnwritten(rank int, from, to int64) {
	if from >= to || v.err != nil || v.task.InPlace && v.task.Input(rank).Holds(from, to-from) && v.alone(rank, from, to-from) {
		return
	}
	v.err = fmt.Errorf("rank %d: nobody writes elements %d to %d of the output", rank, from, to)
}

// alone tells whether no other rank has any of the elements in its input.
func (v *verifier) alone(rank int, offset, count int64) bool {
	for other := range v.task.Ranks {
		if other != rank && v.task.Input(other).Holds(offset, count) {
			return false
		}
	}
	return true
}

// checkRanks fails unless a write holds the data of each rank that has it.
func (v *verifier) checkRanks(a access, rank int) {
	for source := range v.task.Ranks {
		if has := a.ranks.has(source); has != v.task.Input(source).Holds(a.offset, a.count) {
			with := "without"
			if has {
				with = "with"
			}
			v.failAt(a, "writes elements %d to %d of rank %d's output %s the data of rank %d", a.offset, a.offset+a.count, rank, with, source)
		}
	}
}

// checkOrder fails for buffers that are used before or after they may be, or may
// be in another order of execution.
func (v *verifier) checkOrder(rank int) {
	begun := func(c clock) bool {
		return slices.ContainsFunc(v.workers, func(w worker) bool { return w.Rank == rank && c[w.number] > 0 })
	}
	last := make(clock, len(v.workers)) // when the rank returns
	for _, w := range v.workers {
		if w.Rank == rank {
			last.join(w.clock)
		}
	}
	for _, a := range v.writes[rank] {
		if a.far && !begun(a.clock) {
			v.failAt(a, "may write to rank %d's output before the rank begins", rank)
		}
	}
	for _, r := range v.reads[rank] {
		if r.far && !last.after(r) {
			v.failAt(r, "may read rank %d's input after the rank returns", rank)
		}
		if !v.task.InPlace {
			continue
		}
		writes := v.writes[rank]
		first, _ := slices.BinarySearchFunc(writes, r.offset, func(a access, offset int64) int { return cmp.Compare(a.offset+a.count, offset+1) })
		for _, a := range writes[first:] {
			if a.offset >= r.offset+r.count {
				break
			}
			if !a.clock.after(r) {
				v.failAt(r, "may read elements %d to %d of rank %d's buffer after they are written, in place", r.offset, r.offset+r.count, rank)
			}
		}
	}
}
