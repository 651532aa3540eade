package cuda

import (
	"fmt"

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
	slots       []driver.Pointer // of each connection, in its reader's memory
	put, taken  []driver.Pointer // its counters: in the reader's memory, in the writer's
	buffers     [][2]driver.Pointer
	elementSize int64
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

// check fails for what the interpreter cannot run yet.
func (p *program) check() error {
	for i := range p.schedule.Connections() {
		c := p.schedule.Connection(i)
		if c.Kind != schedule.PointToPoint || len(c.From) != 1 || len(c.To) != 1 {
			return fmt.Errorf("%v: connection %d goes through a switch: the CUDA interpreter has point-to-point connections only", p.task.Algorithm, i)
		}
	}
	return nil
}

// moves returns what the blocks of every worker do.
func (p *program) moves() ([][]move, error) {
	s := p.schedule
	p.each = make([]uint32, s.Connections())
	for w := range s.Workers() {
		worker := s.Worker(w)
		for i := range worker.Steps {
			for port := range s.Step(w, i).Send.All() {
				p.each[worker.Out[port]]++
			}
		}
	}
	all := make([][]move, s.Workers())
	for w := range s.Workers() {
		c := compiler{program: p, worker: s.Worker(w), received: map[int]uint32{}, sent: map[int]uint32{}}
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
	arrived := false // the only source is in the output already
	for port := range recv.All() {
		number := c.worker.In[port]
		connection := c.schedule.Connection(number)
		item := c.received[number]
		c.received[number]++
		at := c.slot(number, connection, item)
		var err error
		switch connection.Storage {
		case schedule.InInput:
			at, err = c.buffer(c.schedule.Worker(connection.From[0]).Rank, backend.Input, offset, elements)
		case schedule.InOutput:
			at, err = c.buffer(c.worker.Rank, backend.Output, offset, elements)
			arrived = true
		}
		if err != nil {
			return err
		}
		m.addSource(at)
		m.wait[m.waits] = count{c.memory.put[number], item + 1, c.each[number]}
		m.post[m.posts] = count{c.memory.taken[number], item + 1, c.each[number]}
		m.waits, m.posts = m.waits+1, m.posts+1
		if m.waits == maxPorts {
			return fmt.Errorf("%d ports: want at most %d", recv.Len(), maxRanks)
		}
	}
	if s.Output && !arrived && (s.Stride == 0 || recv.Len() > 0) {
		at, err := c.buffer(c.worker.Rank, backend.Output, offset, elements)
		if err != nil {
			return err
		}
		m.addTarget(at)
	}
	for port := range send.All() {
		number := c.worker.Out[port]
		connection := c.schedule.Connection(number)
		item := c.sent[number]
		c.sent[number]++
		if m.waits == maxPorts || m.posts == maxPorts {
			return fmt.Errorf("%d ports: want at most %d", recv.Len()+send.Len(), maxPorts)
		}
		// At the start of a call all slots are free once the last call's items
		// were taken.
		m.wait[m.waits] = count{c.memory.taken[number], max(item+1, uint32(connection.Slots)) - uint32(connection.Slots), c.each[number]}
		m.post[m.posts] = count{c.memory.put[number], item + 1, c.each[number]}
		m.waits, m.posts = m.waits+1, m.posts+1
		switch connection.Storage {
		case schedule.Staged:
			m.addTarget(c.slot(number, connection, item))
		case schedule.InOutput:
			at, err := c.buffer(c.schedule.Worker(connection.To[0]).Rank, backend.Output, offset, elements)
			if err != nil {
				return err
			}
			m.addTarget(at)
		}
	}
	if m.sources == 0 || m.targets == 0 {
		m.bytes = 0 // flags alone
	}
	c.moves = append(c.moves, m)
	return nil
}

func (m *move) addSource(p driver.Pointer) {
	m.source[m.sources] = p
	m.sources++
}

func (m *move) addTarget(p driver.Pointer) {
	m.target[m.targets] = p
	m.targets++
}

// slot returns where the i-th item of a connection lies.
func (c *compiler) slot(number int, connection schedule.Connection, i uint32) driver.Pointer {
	return c.memory.slots[number] + driver.Pointer(i%uint32(max(1, connection.Slots)))*driver.Pointer(slotBytes(connection, c.memory.elementSize))
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
