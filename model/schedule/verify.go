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
//   - takes a range of elements other than the one it was sent,
//   - adds a rank's data to data that already holds it,
//   - uses a port that the worker does not have, or that is wired otherwise.
//
// When no worker can go on, it fails unless all have finished (deadlock at the
// given credits), no item is left in a connection, and each rank's output holds
// every rank's data exactly once in every element, written once. An error names
// rank, channel, worker and step.
//
// Only AllReduce is known so far. Time and memory are proportional to the items
// sent, times the ranks.
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

// item is what a slot holds.
type item struct {
	offset, count int64
	ranks         rankSet
}

// queue holds the items on their way to one reader (Multicast), from one writer
// (Reduction) or from the one to the other.
type queue []item

type connection struct {
	Connection
	queues []queue
}

type worker struct {
	Worker
	done   int   // steps
	in     []int // by inbound port: which queue of a multicast is this worker's
	out    []int // by outbound port: which queue of a reduction
	number int
}

// write is a range of a rank's output and what it was given.
type write struct {
	offset, count int64
	ranks         rankSet
	worker, step  int
}

type verifier struct {
	schedule    Schedule
	ranks       int
	workers     []worker
	connections []connection
	writes      [][]write // by rank
	err         error
}

func newVerifier(s Schedule) *verifier {
	v := &verifier{
		schedule: s, ranks: s.Task().Ranks, writes: make([][]write, s.Task().Ranks),
		workers: make([]worker, s.Workers()), connections: make([]connection, s.Connections()),
	}
	for c := range v.connections {
		described := s.Connection(c)
		queues := 1
		switch described.Kind {
		case Multicast:
			queues = len(described.To)
		case Reduction:
			queues = len(described.From)
		}
		v.connections[c] = connection{described, make([]queue, queues)}
	}
	for w := range v.workers {
		v.workers[w] = worker{Worker: s.Worker(w), number: w}
		worker := &v.workers[w]
		worker.in = v.wire(worker, worker.In, Multicast, func(c Connection) []int { return c.To })
		worker.out = v.wire(worker, worker.Out, Reduction, func(c Connection) []int { return c.From })
	}
	return v
}

// wire finds a worker's queue in each of its connections; shared is the kind
// whose ends on this side have queues of their own.
func (v *verifier) wire(w *worker, ports []int, shared Kind, ends func(Connection) []int) []int {
	queues := make([]int, len(ports))
	if len(ports) > maxPorts {
		v.fail(w, "has %d ports: want at most %d", len(ports), maxPorts)
	}
	for i, c := range ports {
		if w.Steps == 0 {
			continue
		}
		if c < 0 || c >= len(v.connections) {
			v.fail(w, "port %d names connection %d, of %d", i, c, len(v.connections))
			continue
		}
		end := slices.Index(ends(v.connections[c].Connection), w.number)
		if end < 0 {
			v.fail(w, "port %d names connection %d, which does not name the worker", i, c)
		}
		if v.connections[c].Kind == shared {
			queues[i] = max(end, 0)
		}
	}
	return queues
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
		for w := range v.workers {
			for worker := &v.workers[w]; worker.done < worker.Steps && v.step(worker); worker.done++ {
				progress = true
			}
		}
	}
}

// step runs the worker's next step; it returns false if the step has to wait or
// is at fault.
func (v *verifier) step(w *worker) bool {
	s := v.schedule.Step(w.number, w.done)
	if s.Recv&^First(len(w.In)) != 0 || s.Send&^First(len(w.Out)) != 0 {
		v.fail(w, "uses ports %b in and %b out, and has %d and %d", s.Recv, s.Send, len(w.In), len(w.Out))
		return false
	}
	for port := range (s.Recv | s.Send | Port(0)).All() {
		if offset, count := s.Range(port); offset < 0 || count < 0 || offset+count > v.schedule.Task().Count {
			v.fail(w, "elements %d to %d are out of bounds", offset, offset+count)
			return false
		}
	}
	if !v.ready(w, s) {
		return false
	}
	var own rankSet
	if s.Input {
		own = make(rankSet, (v.ranks+63)/64)
		own[w.Rank/64] = 1 << (w.Rank % 64)
	}
	value := own
	for port := range s.Recv.All() {
		taken := v.take(w, port)
		offset, count := s.Range(port)
		if taken.offset != offset || taken.count != count {
			v.fail(w, "wants elements %d to %d and was sent %d to %d", offset, offset+count, taken.offset, taken.offset+taken.count)
			return false
		}
		if s.Stride != 0 { // each port's range stands alone
			value = own
		}
		value = v.union(w, value, taken.ranks)
		if s.Stride != 0 && s.Output {
			v.write(w, offset, count, value)
		}
	}
	if s.Stride == 0 && s.Output {
		v.write(w, s.Offset, s.Count, value)
	}
	for port := range s.Send.All() {
		offset, count := s.Range(port)
		v.put(w, port, item{offset, count, value})
	}
	return v.err == nil
}

// ready tells whether every inbound port has an item and every outbound port a
// free slot.
func (v *verifier) ready(w *worker, s Step) bool {
	for port := range s.Recv.All() {
		c := &v.connections[w.In[port]]
		for i, q := range c.queues {
			if len(q) == 0 && (c.Kind != Multicast || i == w.in[port]) {
				return false
			}
		}
	}
	for port := range s.Send.All() {
		c := &v.connections[w.Out[port]]
		for i, q := range c.queues {
			if len(q) >= c.Slots && (c.Kind != Reduction || i == w.out[port]) {
				return false
			}
		}
	}
	return true
}

// take removes the item at the head of an inbound port: of a reduction, the sum
// of the items of all writers.
func (v *verifier) take(w *worker, port int) item {
	c := &v.connections[w.In[port]]
	if c.Kind != Reduction {
		q := &c.queues[w.in[port]]
		taken := (*q)[0]
		*q = (*q)[1:]
		return taken
	}
	sum := c.queues[0][0]
	for i := range c.queues {
		next := c.queues[i][0]
		c.queues[i] = c.queues[i][1:]
		if next.offset != sum.offset || next.count != sum.count {
			v.fail(w, "reduces elements %d to %d with %d to %d", sum.offset, sum.offset+sum.count, next.offset, next.offset+next.count)
		}
		if i > 0 {
			sum.ranks = v.union(w, sum.ranks, next.ranks)
		}
	}
	return sum
}

// put adds an item to an outbound port: of a multicast, for every reader.
func (v *verifier) put(w *worker, port int, sent item) {
	c := &v.connections[w.Out[port]]
	if c.Kind == Multicast {
		for i := range c.queues {
			c.queues[i] = append(c.queues[i], sent)
		}
		return
	}
	c.queues[w.out[port]] = append(c.queues[w.out[port]], sent)
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

func (v *verifier) write(w *worker, offset, count int64, ranks rankSet) {
	if count > 0 {
		v.writes[w.Rank] = append(v.writes[w.Rank], write{offset, count, ranks, w.number, w.done})
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
		for _, q := range v.connections[c].queues {
			if len(q) > 0 && v.err == nil {
				v.err = fmt.Errorf("connection %d from worker %v to %v: %d items are left", c, v.connections[c].From, v.connections[c].To, len(q))
			}
		}
	}
	for rank, writes := range v.writes {
		slices.SortFunc(writes, func(a, b write) int { return cmp.Compare(a.offset, b.offset) })
		var end int64
		for _, wr := range writes {
			w := v.workers[wr.worker]
			w.done = wr.step
			if wr.offset < end {
				v.fail(&w, "writes element %d of the output a second time", wr.offset)
			}
			if wr.offset > end {
				v.fail(&w, "writes from element %d on, and nobody writes %d to %d", wr.offset, end, wr.offset)
			}
			if missing := v.missing(wr.ranks); missing >= 0 {
				v.fail(&w, "writes elements %d to %d without the data of rank %d", wr.offset, wr.offset+wr.count, missing)
			}
			end = wr.offset + wr.count
		}
		if count := v.schedule.Task().Count; end != count && v.err == nil {
			v.err = fmt.Errorf("rank %d: nobody writes elements %d to %d of the output", rank, end, count)
		}
	}
}

// missing returns the first rank that a set lacks, or -1.
func (v *verifier) missing(ranks rankSet) int {
	for rank := range v.ranks {
		if len(ranks) == 0 || ranks[rank/64]&(1<<(rank%64)) == 0 {
			return rank
		}
	}
	return -1
}
