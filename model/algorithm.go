package model

// Algorithm is a way to carry out a collective.
type Algorithm int

// The algorithms. The first seven and P2P are NCCL's.
const (
	Ring         Algorithm = iota // chunks go round all ranks
	Tree                          // double binary tree over the nodes, chains in them
	NVLS                          // the switch of one NVLink domain reduces and multicasts
	NVLSTree                      // such domains, joined by a double binary tree
	CollNet                       // the network reduces (SHARP), each head its share of the data
	CollNetChain                  // the network reduces what a chain in each node adds up
	PAT                           // parallel aggregated trees
	SimpleRing                    // whole buffers go round all ranks
	RailRing                      // rings that alternate rails from node to node
	OneShot                       // every rank sends to every other
	TwoShot                       // every rank reduces or passes on a share
	Hierarchical                  // two shots in the nodes, rings on the rails between
	P2P                           // rounds of sends
)

var algorithmNames = []string{
	"ring", "tree", "nvls", "nvlstree", "collnet", "collnetchain", "pat",
	"simplering", "railring", "oneshot", "twoshot", "hierarchical", "p2p",
}

// String returns the lower-case name, as in "nvlstree".
func (a Algorithm) String() string { return name(algorithmNames, a) }

// ParseAlgorithm reads a name that [Algorithm.String] writes; the error lists them.
func ParseAlgorithm(s string) (Algorithm, error) {
	return parse[Algorithm]("algorithm", algorithmNames, s)
}

// Algorithms lists every algorithm, in order.
func Algorithms() []Algorithm { return all[Algorithm](algorithmNames) }

// Protocols lists the protocols that a runs over. Switches that reduce see no
// flags in the data, so that NVLS and CollNet need whole fences (Simple); of PAT
// NCCL has no other form either.
func (a Algorithm) Protocols() []Protocol {
	switch a {
	case NVLS, NVLSTree, CollNet, CollNetChain, PAT:
		return []Protocol{Simple}
	default:
		return Protocols()
	}
}

// Collectives lists the collectives that a carries out.
func (a Algorithm) Collectives() []Collective {
	switch a {
	case Ring, RailRing:
		return []Collective{AllReduce, AllGather, ReduceScatter, Broadcast, Reduce}
	case Tree, TwoShot:
		return []Collective{AllReduce, Broadcast, Reduce}
	case NVLS:
		return []Collective{AllReduce, AllGather, ReduceScatter}
	case PAT:
		return []Collective{AllGather, ReduceScatter}
	case OneShot:
		return all[Collective](collectiveNames)
	case P2P:
		return []Collective{AllToAll, SendRecv, Exchange}
	default:
		return []Collective{AllReduce}
	}
}
