package cuda

import (
	"fmt"
	"slices"

	"tutti/backend"
	"tutti/backend/cuda/driver"
	"tutti/model"
	"tutti/model/schedule"
)

// maxPorts is how many places a move takes from, or puts into: kernels/interpret.cuh.
const maxPorts = maxRanks + 1

// count is Count in kernels/interpret.cuh.
type count struct {
	flag         driver.Pointer
	before, each uint32
}

// move is Move in kernels/interpret.cuh.
type move struct {
	bytes                          uint64
	source, target                 [maxPorts]driver.Pointer
	wait, post                     [maxPorts]count
	sources, targets, waits, posts uint32
}

// averageMove is AverageMove in kernels/interpret.cuh.
type averageMove struct {
	move
	finish, _ uint32
}

// line is Lines in kernels/interpret.cuh.
type line struct {
	at, taken             driver.Pointer
	item, each, behind, _ uint32
}

// lineMove is LineMove in kernels/interpret.cuh.
type lineMove struct {
	bytes                       uint64
	source, target              [maxPorts]line
	sources, targets, finish, _ uint32
}

// transfer is a move before it is laid out for a kernel.
type transfer struct {
	bytes            uint64
	sources, targets []port
	finish           bool // the result is that of all ranks: an average is divided
}

// port is where a transfer takes from or puts into: a buffer, or an item of a pair.
type port struct {
	at driver.Pointer // 0 where flags alone go
	*pair
	item  uint32 // its number, from 1 on in each call
	each  uint32 // items in a call
	slots uint32
}

// memory is where a schedule's connections and buffers lie.
type memory struct {
	pairs       [][]pair // of each connection, by writer and within by reader
	buffers     [][2]driver.Pointer
	elementSize int64
	protocol    model.Protocol
}

// pair is a writer and a reader of a connection. What a switch would multicast is
// stored to every reader, and what it would reduce is stored by every writer and
// reduced by the reader: so NVLS is emulated.
type pair struct {
	base       driver.Pointer // of the slots, in the reader's memory
	put, taken driver.Pointer // counters, in the reader's memory and in the writer's
}

// flagBytes keeps counters apart, so that those who poll do not meet.
const flagBytes = 128

// program makes the transfers of a schedule's workers out of their steps.
type program struct {
	schedule schedule.Schedule
	task     schedule.Task
	memory   memory
	each     []uint32 // items that go through a connection in a call
}

// transfers returns what the blocks of every worker do.
func (p *program) transfers() ([][]transfer, error) {
	s := p.schedule
	p.each = make([]uint32, s.Connections())
	for w := range s.Workers() {
		worker := s.Worker(w)
		for i := range worker.Steps {
			for port := range s.Step(w, i).Send.All() {
				if c := worker.Out[port]; s.Connection(c).From[0] == w {
					p.each[c]++
				}
			}
		}
	}
	var last [][]bool
	if p.task.Collective.Reduces() && p.task.Redop == model.Avg {
		last = finishes(s)
	}
	all := make([][]transfer, s.Workers())
	for w := range s.Workers() {
		c := compiler{program: p, number: w, worker: s.Worker(w), received: map[int]uint32{}, sent: map[int]uint32{}}
		for i := range c.worker.Steps {
			c.finish = last != nil && last[w][i]
			if err := c.step(s.Step(w, i)); err != nil {
				return nil, fmt.Errorf("worker %d, step %d: %w", w, i, err)
			}
		}
		all[w] = c.transfers
	}
	return all, nil
}

// finishes tells, by worker and step, whether the step's result is that of all
// ranks and no step before has made it so: it is the first to write an output.
func finishes(s schedule.Schedule) [][]bool {
	next, last := make([]int, s.Workers()), make([][]bool, s.Workers())
	items := map[[2]int][]bool{} // by connection and writer, whether an item is finished
	taken := map[[2]int]int{}    // by connection and reader
	arrived := func(w int, worker schedule.Worker, step *schedule.Step) bool {
		for port := range step.Recv.All() {
			c := worker.In[port]
			for _, from := range s.Connection(c).From {
				if len(items[[2]int{c, from}]) <= taken[[2]int{c, w}] {
					return false
				}
			}
		}
		return true
	}
	for progress := true; progress; {
		progress = false
		for w := range next {
			for worker := s.Worker(w); next[w] < worker.Steps; next[w]++ {
				step := s.Step(w, next[w])
				if !arrived(w, worker, &step) {
					break
				}
				progress = true
				done := false
				for port := range step.Recv.All() {
					c := worker.In[port]
					done = done || items[[2]int{c, s.Connection(c).From[0]}][taken[[2]int{c, w}]]
					taken[[2]int{c, w}]++
				}
				last[w] = append(last[w], step.Output && !done)
				for port := range step.Send.All() {
					key := [2]int{worker.Out[port], w}
					items[key] = append(items[key], step.Stride == 0 && (done || step.Output))
				}
			}
		}
	}
	return last
}

// compiler goes through a worker's steps.
type compiler struct {
	*program
	number         int
	worker         schedule.Worker
	received, sent map[int]uint32 // items so far, by connection
	transfers      []transfer
	finish         bool // of the step at hand
}

// step makes a move of a step, or one for each port that has a block of its own.
func (c *compiler) step(s schedule.Step) error {
	if s.Stride == 0 {
		return c.move(&s, s.Offset, s.Count, s.Recv, s.Send)
	}
	for port := range s.Recv.All() {
		offset, n := s.Range(port)
		if err := c.move(&s, offset, n, schedule.Port(port), schedule.Ports{}); err != nil {
			return err
		}
	}
	for port := range s.Send.All() {
		offset, n := s.Range(port)
		if err := c.move(&s, offset, n, schedule.Ports{}, schedule.Port(port)); err != nil {
			return err
		}
	}
	return nil
}

func (c *compiler) move(s *schedule.Step, offset, elements int64, recv, send schedule.Ports) error {
	t := transfer{bytes: uint64(elements * c.memory.elementSize), finish: c.finish}
	if s.Input {
		at, err := c.buffer(c.worker.Rank, backend.Input, offset, elements)
		if err != nil {
			return err
		}
		t.sources = append(t.sources, port{at: at})
	}
	arrived := false // what comes is in the output already
	for port := range recv.All() {
		if err := c.receive(&t, c.worker.In[port], offset, elements); err != nil {
			return err
		}
		arrived = c.schedule.Connection(c.worker.In[port]).Storage == schedule.InOutput
	}
	if s.Output && !arrived && (s.Stride == 0 || recv.Len() > 0) {
		at, err := c.buffer(c.worker.Rank, backend.Output, offset, elements)
		if err != nil {
			return err
		}
		t.targets = append(t.targets, port{at: at})
	}
	for port := range send.All() {
		if err := c.send(&t, c.worker.Out[port], offset, elements); err != nil {
			return err
		}
	}
	if n := max(len(t.sources), len(t.targets), t.items()); n > maxPorts {
		return fmt.Errorf("%w: %d ports: want at most %d", backend.ErrUnsupported, n, maxPorts)
	}
	c.transfers = append(c.transfers, t)
	return nil
}

// items returns how many items a transfer takes out and puts in.
func (t *transfer) items() (n int) {
	for _, p := range slices.Concat(t.sources, t.targets) {
		if p.pair != nil {
			n++
		}
	}
	return n
}

// receive takes an item from every writer of a connection.
func (c *compiler) receive(t *transfer, number int, offset, elements int64) error {
	connection := c.schedule.Connection(number)
	c.received[number]++
	p := port{item: c.received[number], each: c.each[number]}
	reader := slices.Index(connection.To, c.number)
	for writer, from := range connection.From {
		p.pair = &c.memory.pairs[number][writer*len(connection.To)+reader]
		p.at = c.memory.slot(p, connection)
		var err error
		switch connection.Storage {
		case schedule.InInput:
			p.at, err = c.buffer(c.schedule.Worker(from).Rank, backend.Input, offset, elements)
		case schedule.InOutput:
			p.at, err = c.buffer(c.worker.Rank, backend.Output, offset, elements)
		}
		if err != nil {
			return err
		}
		t.sources = append(t.sources, p)
	}
	return nil
}

// send puts an item in for every reader of a connection.
func (c *compiler) send(t *transfer, number int, offset, elements int64) error {
	connection := c.schedule.Connection(number)
	c.sent[number]++
	p := port{item: c.sent[number], each: c.each[number], slots: uint32(connection.Slots)}
	writer := slices.Index(connection.From, c.number)
	for reader, to := range connection.To {
		p.pair = &c.memory.pairs[number][writer*len(connection.To)+reader]
		p.at = 0
		var err error
		switch connection.Storage {
		case schedule.Staged:
			p.at = c.memory.slot(p, connection)
		case schedule.InOutput:
			p.at, err = c.buffer(c.schedule.Worker(to).Rank, backend.Output, offset, elements)
		}
		if err != nil {
			return err
		}
		t.targets = append(t.targets, p)
	}
	return nil
}

// behind is how many items before its own a writer must know to be taken: at the
// start of a call all slots are free once the last call's items were.
func (p port) behind() uint32 { return min(p.item, p.slots) }

// apart lays a transfer out with flags apart from the data.
func (t *transfer) apart() (m averageMove) {
	m.bytes, m.finish = t.bytes, bit(t.finish)
	meet := func(wait, post count) {
		m.wait[m.waits], m.post[m.posts] = wait, post
		m.waits, m.posts = m.waits+1, m.posts+1
	}
	for _, p := range t.sources {
		m.source[m.sources] = p.at
		m.sources++
		if p.pair != nil {
			meet(count{p.put, p.item, p.each}, count{p.taken, p.item, p.each})
		}
	}
	for _, p := range t.targets {
		if p.at != 0 || p.pair == nil {
			m.target[m.targets] = p.at
			m.targets++
		}
		if p.pair != nil {
			meet(count{p.taken, p.item - p.behind(), p.each}, count{p.put, p.item, p.each})
		}
	}
	if m.sources == 0 || m.targets == 0 {
		m.bytes = 0 // flags alone
	}
	return m
}

// inLines lays a transfer out with flags in the data of what goes through slots.
func (t *transfer) inLines() (m lineMove) {
	m.bytes, m.finish = t.bytes, bit(t.finish)
	lay := func(to *[maxPorts]line, ports []port) uint32 {
		for i, p := range ports {
			to[i] = line{at: p.at}
			if p.pair != nil {
				to[i] = line{at: p.at, taken: p.taken, item: p.item, each: p.each, behind: p.behind()}
			}
		}
		return uint32(len(ports))
	}
	m.sources, m.targets = lay(&m.source, t.sources), lay(&m.target, t.targets)
	return m
}

func bit(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

// slot returns where an item of a connection lies.
func (m *memory) slot(p port, c schedule.Connection) driver.Pointer {
	return p.base + driver.Pointer((p.item-1)%uint32(max(1, c.Slots)))*driver.Pointer(m.slotBytes(c))
}

// slotBytes is the room of an item, in whole packs or lines.
func (m *memory) slotBytes(c schedule.Connection) int64 {
	bytes := c.Room * m.elementSize
	if words := int64(wordsPerLine[m.protocol]); words > 0 {
		return (bytes + 8*words - 1) / (8 * words) * lineBytes
	}
	return (bytes + packBytes - 1) / packBytes * packBytes
}

// buffer returns where elements are in a rank's buffer.
func (c *compiler) buffer(rank int, side backend.Side, offset, elements int64) (driver.Pointer, error) {
	if elements == 0 {
		return 0, nil
	}
	at, rest := side.Of(c.task, rank).At(offset)
	if elements < 0 || elements > rest {
		return 0, fmt.Errorf("elements %d to %d are not in rank %d's buffer: verify the schedule", offset, offset+elements, rank)
	}
	return c.memory.buffers[rank][side] + driver.Pointer(at*c.memory.elementSize), nil
}
