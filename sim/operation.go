package sim

import (
	"math"
	"slices"

	"tutti/model"
	"tutti/model/profile"
	"tutti/model/schedule"
	"tutti/model/units"
)

// operation is what a step asks of a worker, apart from which elements it
// handles. Many steps of many workers are one operation.
type operation struct {
	// turn passes since the end of the step before, and overhead since the items
	// and slots are there; copy is what the worker's threads take.
	turn, overhead, copy units.Time
	// beside is a part of copy in which nothing is copied.
	beside units.Time
	// passes says that there is no data of a protocol that neither waits for
	// flags nor writes them where there is none (LL, LL128).
	passes bool
	// The uses of inbound ports, from first to sends, and of outbound ones, from
	// there to end.
	first, sends, end int32
}

// use is one item that goes through a port in an operation.
type use struct {
	port int32       // inbound ports first, then outbound
	wire units.Bytes // on the links
}

// side tells at which end of its connection the worker has one of the uses.
func (o *operation) side(use int32) mover {
	if use < o.sends {
		return theReaders
	}
	return theWriters
}

// run is a stretch of steps in which the same operations come round.
type run struct {
	first  int32 // in operations: the first of those that repeat
	period int32
	until  int32 // the step after the last
}

// form is what tells operations apart: all of a step but the place of its
// elements, and what else decides how long it takes.
type form struct {
	step    schedule.Step
	pace    units.Pace
	atOnce  units.Bytes
	inbound int32 // ports
	ports   int32 // the list of those that have become one
	call    int32
	slow    float64
	direct  bool // all data are where they belong when they arrive
}

// runAt finds the run of a worker that begins with the given step.
func (x *simulation) runAt(id, step int32) run {
	number := x.fold.workers.first(int(id))
	period, until := 1, int(step)+1
	if x.repeats != nil {
		period, until = x.repeats.Repeats(number, int(step))
	}
	if period == 1 {
		return run{x.operation(id, x.schedule.Step(number, int(step))), 1, int32(until)}
	}
	var ids [maxPeriod]int32
	for i := range period {
		ids[i] = x.operation(id, x.schedule.Step(number, int(step)+i))
	}
	first, known := x.patterns[ids]
	if !known {
		first = int32(len(x.operations))
		for _, o := range ids[:period] {
			x.operations = append(x.operations, x.operations[o])
		}
		x.patterns[ids] = first
	}
	return run{first, int32(period), int32(until)}
}

// maxPeriod is the longest period of a schedule: the slices of a chunk.
const maxPeriod = 8

// operation returns the operation that a step is.
func (x *simulation) operation(id int32, s schedule.Step) int32 {
	w := &x.workers[id]
	c := &x.calls[x.callOf(id)]
	f := form{step: s, pace: x.paces[id], atOnce: x.atOnce[id], inbound: w.inbound, ports: x.places[id], call: int32(x.callOf(id)), slow: x.slowness(id), direct: x.direct(id, s)}
	if s.Stride == 0 {
		f.step.Offset, f.step.End, f.step.Turn, f.step.Blocks = 0, 0, 0, 0
	} else {
		f.step.Offset, f.step.End = 0, s.End-s.Offset
	}
	if o, known := x.forms[f]; known {
		return o
	}
	var o operation
	size := c.size(s.Total())
	if o.passes = size == 0 && c.task.Protocol != model.Simple; !o.passes {
		o.turn, o.overhead = c.turn, c.overhead
	}
	if keeps := s.Send.Len() == 0 && !s.Input; !keeps || !f.direct {
		at := x.atOnce[id]
		o.copy = f.pace.Of((size+at-1)/at*at)*c.buffers(&s)/(1000*profile.Streams) + c.ramp.Of(min(size, profile.RampBytes))
	}
	if c.task.Protocol == model.LL { // stores are on their way meanwhile
		o.turn, o.beside, o.copy = 0, o.turn, o.copy+o.turn
	}
	add := func(ports schedule.Ports, first int32) {
		before := len(x.uses)
		for i := range ports.All() {
			_, count := s.Range(i)
			u := use{x.port(id, first+int32(i)), c.task.Protocol.Wire(c.size(count))}
			if !slices.Contains(x.uses[before:], u) {
				x.uses = append(x.uses, u)
			}
		}
	}
	o.first = int32(len(x.uses))
	add(s.Recv, 0)
	o.sends = int32(len(x.uses))
	add(s.Send, w.inbound)
	o.end = int32(len(x.uses))
	x.operations = append(x.operations, o.slowed(f.slow))
	x.forms[f] = int32(len(x.operations) - 1)
	return x.forms[f]
}

// buffers returns how many thousandths of buffers a step reads and writes, or as
// many as Copy stands for where that is not what limits it: between the slots of
// a switch.
func (c *call) buffers(s *schedule.Step) units.Time {
	if s.Stride != 0 || !(s.Input || s.Output) {
		return 1000 * profile.Streams
	}
	n := 1000 * units.Time(s.Recv.Len()+s.Send.Len())
	if s.Input {
		n += 1000 + c.input
	}
	if s.Output {
		n += 1000
	}
	if s.Recv.Len() > 0 {
		n += c.slots
	}
	return n
}

// direct tells whether the writers of a worker's items have put the data where
// it belongs.
func (x *simulation) direct(id int32, s schedule.Step) bool {
	for i := range s.Recv.All() {
		if !x.connections[x.ports[x.workers[id].ports+x.port(id, int32(i))].connection].direct {
			return false
		}
	}
	return s.Recv.Len() > 0
}

// least returns the fewest elements that go through a port of a worker at a
// time, if any do, or 1 where that would take going through all steps.
func (x *simulation) least(id int32) int64 {
	if x.repeats == nil {
		return 1
	}
	number, least := x.fold.workers.first(int(id)), int64(math.MaxInt64)
	for i := 0; i < int(x.workers[id].steps); {
		period, until := x.repeats.Repeats(number, i)
		for at := range period {
			s := x.schedule.Step(number, i+at)
			for _, ports := range [...]schedule.Ports{s.Recv, s.Send} {
				for port := range ports.All() {
					if _, count := s.Range(port); count > 0 {
						least = min(least, count)
					}
				}
			}
		}
		i = until
	}
	if least == math.MaxInt64 {
		return 1
	}
	return least
}

// port returns a worker's port for one of the schedule's.
func (x *simulation) port(id, port int32) int32 {
	if list := x.places[id]; list > 0 {
		return x.portLists[list-1][port]
	}
	return port
}
