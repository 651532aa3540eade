package model

// Collective is an operation that all ranks of a communicator carry out together.
type Collective int

// The collectives, in the order of nccl-tests' programs.
const (
	AllReduce Collective = iota
	AllGather
	ReduceScatter
	Broadcast
	Reduce
	AllToAll
	SendRecv
	Exchange
)

var collectiveNames = []string{"allreduce", "allgather", "reducescatter", "broadcast", "reduce", "alltoall", "sendrecv", "exchange"}

// String returns the lower-case name, as in "allreduce".
func (c Collective) String() string { return name(collectiveNames, c) }

// ParseCollective reads a name that [Collective.String] writes; the error lists them.
func ParseCollective(s string) (Collective, error) {
	return parse[Collective]("collective", collectiveNames, s)
}

// Reduces tells whether the collective combines elements of several ranks.
func (c Collective) Reduces() bool { return c == AllReduce || c == ReduceScatter || c == Reduce }

// Rooted tells whether one rank has a part of its own.
func (c Collective) Rooted() bool { return c == Broadcast || c == Reduce }

// BusFactor returns what algorithm bandwidth (bytes over time) is multiplied by
// to give bus bandwidth on n ranks: the traffic that the slowest link must
// carry for each byte, whatever the algorithm, so that bus bandwidth compares
// with the hardware's. Source: nccl-tests 2.19.6, doc/PERFORMANCE.md; the
// factors take bytes as the larger of a rank's send and receive totals.
func (c Collective) BusFactor(n int) float64 {
	switch share := float64(n-1) / float64(n); c {
	case AllReduce:
		return 2 * share
	case AllGather, ReduceScatter, AllToAll:
		return share
	default:
		return 1
	}
}
