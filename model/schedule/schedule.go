// Package schedule describes a collective as a network of workers joined by
// bounded FIFOs, and proves such networks right.
//
// A worker is one sequential role of a thread block: (rank, channel, role). It
// has a list of steps. A step takes an item from zero or more inbound
// connections, reduces these and, if asked, the local input, and puts the
// result into zero or more outbound connections and, if asked, the local
// output. One item is one slot of a connection: what NCCL calls a slice.
//
//	send                in: -        input   out: next
//	recvReduceSend      in: previous input   out: next
//	recvReduceCopySend  in: previous input   out: next  output
//	recvCopySend        in: previous         out: next  output
//	recv                in: previous                    output
//
// A connection is a FIFO with a fixed number of slots, its credits: a step
// waits until its inbound connections hold an item and its outbound ones a free
// slot. A network of this kind is deterministic (Kahn, 1974): whoever honours
// the FIFOs gets the same data. So the verifier here, the simulator and the
// backends all run the same value.
//
// Each algorithm is one file that implements [Schedule]. Workers, steps and
// connections are computed on demand from their numbers; a ring over 100,000
// ranks takes no memory.
package schedule

import (
	"iter"
	"math/bits"

	"tutti/model"
	"tutti/model/units"
)

// Task is the call that a schedule carries out.
type Task struct {
	Collective model.Collective
	Algorithm  model.Algorithm
	Protocol   model.Protocol
	Datatype   model.Datatype
	Redop      model.Redop
	// Count is the number of elements in each rank's buffer.
	Count int64
	// Channels is the number of channels that the data may be spread over.
	Channels int
	// Ranks and Nodes are the size of the communicator.
	Ranks, Nodes int
}

// Bytes returns the size of each rank's buffer.
func (t Task) Bytes() units.Bytes { return units.Bytes(t.Count) * t.Datatype.Size() }

// Schedule is a network of workers. All methods are pure functions, safe for
// concurrent use.
type Schedule interface {
	// Task returns the call that the schedule carries out.
	Task() Task
	// Workers returns how many workers there are; some may have no steps.
	Workers() int
	// Worker describes a worker.
	Worker(w int) Worker
	// Step returns the i-th step of a worker.
	Step(w, i int) Step
	// Connections returns how many connections there are; some may be unused.
	Connections() int
	// Connection describes a connection.
	Connection(c int) Connection
}

// Role tells which part of an algorithm a worker plays.
type Role int

// The roles.
const (
	RoleRing      Role = iota // passes data round a ring
	RoleUp                    // reduces towards the root of a tree
	RoleDown                  // broadcasts from the root of a tree
	RoleScatter               // hands each head its share of the input
	RoleGather                // collects every head's result
	RoleReduce                // of a head: reduces the ranks' shares in the switch
	RoleBroadcast             // of a head: multicasts what comes down the tree
)

func (r Role) String() string {
	return [...]string{"ring", "up", "down", "scatter", "gather", "reduce", "broadcast"}[r]
}

// Worker is one sequential role of a thread block.
type Worker struct {
	Rank, Channel int
	Role          Role
	// Share is the part of the block's threads that the worker has, 0 to 1.
	Share float64
	// Steps is the number of steps.
	Steps int
	// In and Out are the connections of the worker's ports, at most 64 each.
	In, Out []int
}

// maxPorts is how many ports a set can name.
const maxPorts = 64

// Ports is a set of a worker's inbound or outbound ports, one bit each.
type Ports uint64

// Port returns the set of the i-th port alone.
func Port(i int) Ports { return 1 << i }

// First returns the set of the first n ports.
func First(n int) Ports { return 1<<n - 1 }

// All goes through the ports of a set, in order.
func (p Ports) All() iter.Seq[int] {
	return func(yield func(int) bool) {
		for ; p != 0; p &= p - 1 {
			if !yield(bits.TrailingZeros64(uint64(p))) {
				return
			}
		}
	}
}

// Step is what a worker does with one item of each of the connections named.
// The range of elements is the same in all buffers, input and output.
type Step struct {
	// Recv and Send are the ports of Worker.In and Worker.Out that take part.
	Recv, Send Ports
	// Input says that the local input takes part; Output that the result is
	// written to the local output.
	Input, Output bool
	// Offset and Count are the range of elements; Count may be 0, and the item
	// is then passed on all the same.
	Offset, Count int64
	// Stride, unless 0, gives each port a range of its own (scatter, gather):
	// port p has that at Offset + p*Stride, clipped at End.
	Stride, End int64
}

// Range returns the elements that go through a port.
func (s *Step) Range(port int) (offset, count int64) {
	if s.Stride == 0 {
		return s.Offset, s.Count
	}
	offset = min(s.Offset+int64(port)*s.Stride, s.End)
	return offset, min(s.Count, s.End-offset)
}

// Total returns the elements that the worker moves: those of all ports where
// each has a range of its own.
func (s *Step) Total() int64 {
	if s.Stride == 0 {
		return s.Count
	}
	var total int64
	for port := range (s.Recv | s.Send).All() {
		_, count := s.Range(port)
		total += count
	}
	return total
}

// Kind tells how a connection moves its items.
type Kind int

// The kinds of connections.
const (
	// PointToPoint is written by one worker into slots that one other reads.
	PointToPoint Kind = iota
	// Multicast is written once by one worker; the switch copies to all readers
	// (multimem.st).
	Multicast
	// Reduction is read by one worker; the switch loads the slots of all writers
	// and returns their sum (multimem.ld_reduce).
	Reduction
)

// Connection is a FIFO between workers.
type Connection struct {
	Kind Kind
	// From and To are the workers that put items in and that take them out.
	From, To []int
	// Slots is the number of items that may be under way: the credits.
	Slots int
	// OutNET and InNET are the ports of the two machines that the connection
	// goes through, or -1 inside one machine.
	OutNET, InNET int
}
