package cuda

import (
	"fmt"
	"slices"

	"tutti/backend"
	"tutti/backend/cuda/driver"
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

// memory is where a schedule's connections and buffers lie.
type memory struct {
	pairs       [][]pair // of each connection, by writer and within by reader
	buffers     [][2]driver.Pointer
	elementSize int64
}

// pair is a writer and a reader of a connection. What a switch would multicast is
// stored to every reader, and what it would reduce is stored by every writer and
// reduced by the reader: so NVLS is emulated.
type pair struct {
	slots      driver.Pointer // in the reader's memory
	put, taken driver.Pointer // counters, in the reader's memory and in the writer's
}

// flagBytes keeps counters apart, so that those who poll do not meet.
const flagBytes = 128

// program makes the moves of a schedule's workers out of their steps.
type program struct {
	schedule schedule.Schedule
	task     schedule.Task
	memory   memory
	each     []uint32 // items that go through a connection in a call
}

// moves returns what the blocks of every worker do.
func (p *program) moves() ([][]move, error) {
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
	all := make([][]move, s.Workers())
	for w := range s.Workers() {
		c := compiler{program: p, number: w, worker: s.Worker(w), received: map[int]uint32{}, sent: map[int]uint32{}}
		for i := range c.worker.Steps {
			if err := c.step(s.Step(w, i)); err != nil {
				return nil, fmt.Errorf("worker %d, step %d: %w", w, i, err)
			}
		}
		all[w] = c.moves
	}
	return all, nil
}

// compiler goes through a worker's steps.
type compiler struct {
	*program
	number         int
	worker         schedule.Worker
	received, sent map[int]uint32 // items so far, by connection
	moves          []move
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
	m := move{bytes: uint64(elements * c.memory.elementSize)}
	if s.Input {
		at, err := c.buffer(c.worker.Rank, backend.Input, offset, elements)
		if err != nil {
			return err
		}
		m.addSource(at)
	}
	arrived := false // what comes is in the output already
	for port := range recv.All() {
		if err := c.receive(&m, c.worker.In[port], offset, elements); err != nil {
			return err
		}
		arrived = c.schedule.Connection(c.worker.In[port]).Storage == schedule.InOutput
	}
	if s.Output && !arrived && (s.Stride == 0 || recv.Len() > 0) {
		at, err := c.buffer(c.worker.Rank, backend.Output, offset, elements)
		if err != nil {
			return err
		}
		m.addTarget(at)
	}
	for port := range send.All() {
		if err := c.send(&m, c.worker.Out[port], offset, elements); err != nil {
			return err
		}
	}
	if m.waits > maxPorts || m.sources > maxPorts || m.targets > maxPorts {
		return fmt.Errorf("%d ports: want at most %d", m.waits, maxPorts)
	}
	if m.sources == 0 || m.targets == 0 {
		m.bytes = 0 // flags alone
	}
	c.moves = append(c.moves, m)
	return nil
}

// receive takes an item from every writer of a connection.
func (c *compiler) receive(m *move, number int, offset, elements int64) error {
	connection := c.schedule.Connection(number)
	item := c.received[number]
	c.received[number]++
	reader := slices.Index(connection.To, c.number)
	for writer, from := range connection.From {
		p := c.memory.pairs[number][writer*len(connection.To)+reader]
		at := p.slot(connection, item, c.memory.elementSize)
		var err error
		switch connection.Storage {
		case schedule.InInput:
			at, err = c.buffer(c.schedule.Worker(from).Rank, backend.Input, offset, elements)
		case schedule.InOutput:
			at, err = c.buffer(c.worker.Rank, backend.Output, offset, elements)
		}
		if err != nil {
			return err
		}
		m.addSource(at)
		m.meet(count{p.put, item + 1, c.each[number]}, count{p.taken, item + 1, c.each[number]})
	}
	return nil
}

// send puts an item in for every reader of a connection.
func (c *compiler) send(m *move, number int, offset, elements int64) error {
	connection := c.schedule.Connection(number)
	item := c.sent[number]
	c.sent[number]++
	writer, slots := slices.Index(connection.From, c.number), uint32(connection.Slots)
	for reader, to := range connection.To {
		p := c.memory.pairs[number][writer*len(connection.To)+reader]
		// At the start of a call all slots are free once the last call's items
		// were taken.
		m.meet(count{p.taken, max(item+1, slots) - slots, c.each[number]}, count{p.put, item + 1, c.each[number]})
		switch connection.Storage {
		case schedule.Staged:
			m.addTarget(p.slot(connection, item, c.memory.elementSize))
		case schedule.InOutput:
			at, err := c.buffer(c.schedule.Worker(to).Rank, backend.Output, offset, elements)
			if err != nil {
				return err
			}
			m.addTarget(at)
		}
	}
	return nil
}

// The move has room for maxPorts of each; what is more is counted and refused.

func (m *move) addSource(p driver.Pointer) {
	if m.sources < maxPorts {
		m.source[m.sources] = p
	}
	m.sources++
}

func (m *move) addTarget(p driver.Pointer) {
	if m.targets < maxPorts {
		m.target[m.targets] = p
	}
	m.targets++
}

func (m *move) meet(wait, post count) {
	if m.waits < maxPorts {
		m.wait[m.waits], m.post[m.posts] = wait, post
	}
	m.waits, m.posts = m.waits+1, m.posts+1
}

// slot returns where the i-th item lies.
func (p pair) slot(c schedule.Connection, i uint32, elementSize int64) driver.Pointer {
	return p.slots + driver.Pointer(i%uint32(max(1, c.Slots)))*driver.Pointer(slotBytes(c, elementSize))
}

// slotBytes is the room of an item, so rounded that slots begin at whole packs.
func slotBytes(c schedule.Connection, elementSize int64) int64 {
	return (c.Room*elementSize + packBytes - 1) / packBytes * packBytes
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
