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
//
//	[Ring]          chunks round all ranks, rail rings too; all but sends
//	[SimpleRing]    whole buffers round all ranks
//	[Tree]          AllReduce on double binary trees
//	[TreeCast]      Broadcast and Reduce on them
//	[NVLS]          AllReduce in the switch, joined by trees or by SHARP
//	[NVLSBlocks]    AllGather and ReduceScatter in the switch
//	[CollNet]       AllReduce in the network, by heads
//	[CollNetChain]  AllReduce in the network, by chains
//	[PAT]           AllGather and ReduceScatter on a tree for each rank
//	[OneShot]       every rank to every other; everything
//	[TwoShot]       AllReduce by a share for each rank
//	[TwoShotCast]   Broadcast and Reduce by a share for each but the root
//	[Hierarchical]  AllReduce by shares in the nodes, and rings on the rails
//	[P2P]           AllToAll, SendRecv and Exchange in rounds
//
// Where the data of a call lies is for [Task] to say, and how NCCL divides it for
// chunk.go.
package schedule

import "iter"

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

// Worker is one sequential role of a thread block.
type Worker struct {
	Rank, Channel int
	Role          Role
	// Share is the part of the block's threads that the worker has, 0 to 1.
	Share float64
	// Steps is the number of steps.
	Steps int
	// In and Out are the connections of the worker's ports.
	In, Out []int
}

// Role tells which part of an algorithm a worker plays.
type Role int

// The roles.
const (
	RoleRing      Role = iota // passes data round a ring or along a chain
	RoleUp                    // reduces towards the root of a tree
	RoleDown                  // broadcasts from the root of a tree
	RoleScatter               // hands each rank or head its share of the input
	RoleGather                // collects what every rank or head has
	RoleReduce                // reduces the shares that were handed to it
	RoleBroadcast             // of an NVLS head: multicasts what comes down the tree
)

func (r Role) String() string {
	return [...]string{"ring", "up", "down", "scatter", "gather", "reduce", "broadcast"}[r]
}

// Ports is a run of a worker's inbound or outbound ports: From up to, not
// including, To. None if they are equal.
type Ports struct{ From, To int }

// Port returns the i-th port alone.
func Port(i int) Ports { return Ports{i, i + 1} }

// First returns the first n ports.
func First(n int) Ports { return Ports{0, n} }

// Len returns how many ports there are.
func (p Ports) Len() int { return p.To - p.From }

// All goes through the ports, in order.
func (p Ports) All() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := p.From; i < p.To && yield(i); i++ {
		}
	}
}

// Step is what a worker does with one item of each of the connections named.
type Step struct {
	// Recv and Send are the ports of Worker.In and Worker.Out that take part.
	Recv, Send Ports
	// Input says that the local input takes part; Output that the result is
	// written to the local output.
	Input, Output bool
	// Offset and Count are the range of elements, as [Task.Elements] numbers
	// them; Count may be 0, and the item is then passed on all the same.
	Offset, Count int64
	// Stride, unless 0, gives each port a block of its own (scatter, gather):
	// port p has the (Turn+p)-th, counted round if there are Blocks of them.
	// Block b begins at Offset + b*Stride and is clipped at End.
	Stride, End  int64
	Turn, Blocks int
}

// Range returns the elements that go through a port.
func (s *Step) Range(port int) (offset, count int64) {
	if s.Stride == 0 {
		return s.Offset, s.Count
	}
	block := s.Turn + port
	if s.Blocks > 0 {
		block %= s.Blocks
	}
	return s.block(block)
}

// block returns the elements of a block.
func (s *Step) block(b int) (offset, count int64) {
	offset = min(s.Offset+int64(b)*s.Stride, s.End)
	return offset, min(s.Count, s.End-offset)
}

// narrow makes of a step on blocks one on a single block.
func (s *Step) narrow(b int) {
	s.Offset, s.Count = s.block(b)
	s.Stride, s.End, s.Turn, s.Blocks = 0, 0, 0, 0
}

// Total returns the elements that the worker moves: those of all ports where
// each has a block of its own.
func (s *Step) Total() int64 {
	if s.Stride == 0 {
		return s.Count
	}
	var total int64
	for _, ports := range [...]Ports{s.Recv, s.Send} {
		for port := range ports.All() {
			_, count := s.Range(port)
			total += count
		}
	}
	return total
}

// Connection is a FIFO between workers.
type Connection struct {
	Kind    Kind
	Storage Storage
	// From and To are the workers that put items in and that take them out.
	From, To []int
	// Slots is the number of items that may be under way: the credits.
	Slots int
	// Room is the most elements that an item has.
	Room int64
	// OutNET and InNET are the ports of the two machines that the connection
	// goes through, or -1 inside one machine.
	OutNET, InNET int
}

// reverse has a connection go the other way.
func (c *Connection) reverse() {
	c.From, c.To = c.To, c.From
	c.OutNET, c.InNET = c.InNET, c.OutNET
}

// Kind tells how a connection moves its items.
type Kind int

// The kinds of connections.
const (
	// PointToPoint is written by one worker and read by one other.
	PointToPoint Kind = iota
	// Multicast is written once by one worker; the switch copies to all readers
	// (multimem.st).
	Multicast
	// Reduction is read by one worker; the switch loads the slots of all writers
	// and returns their sum (multimem.ld_reduce).
	Reduction
	// Aggregation hands the sum of all writers' items to every reader: the
	// switches of the network reduce on the way (SHARP).
	Aggregation
)

// Storage tells where a connection keeps its items. Zero-copy connections have
// credits all the same: they are the barriers that guard the buffers.
type Storage int

// The places.
const (
	// Staged items lie in slots in the readers' memory.
	Staged Storage = iota
	// InInput leaves an item in the writer's input, from where the reader loads it.
	InInput
	// InOutput puts an item straight into the reader's output, where it stays.
	InOutput
)
