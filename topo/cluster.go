package topo

import (
	"fmt"

	"tutti/model/units"
)

// MaxNodes is how many machines a cluster may have: 131,072 GPUs in nodes of eight.
const MaxNodes = 1 << 14

// Fabric says how the machines of a cluster are joined: NET k of every machine
// is on rail k, the machines fill the leaf switches of their rails in order,
// and all leaf switches meet in one spine.
//
// The spine layer is one ideal switch and the uplinks of a leaf are one trunk,
// which is what adaptive routing comes to when it is perfect.
type Fabric struct {
	// NodesPerLeaf is how many machines share a leaf switch of a rail.
	NodesPerLeaf int
	// Oversubscription is the rate of a leaf's ports over that of its trunk: 1
	// when the fabric is non-blocking.
	Oversubscription float64
}

// RailOptimised is the fabric of an NVIDIA DGX SuperPOD: scalable units of 32
// machines, one leaf of 32 ports down and 32 up per rail and unit. Source:
// NVIDIA DGX SuperPOD with DGX H100 Reference Architecture, compute fabric.
var RailOptimised = Fabric{NodesPerLeaf: 32, Oversubscription: 1}

// Cluster is a number of equal machines on a fabric. Ranks count the GPUs of
// the first machine, then those of the second, and so on.
type Cluster struct {
	Machine *System
	Nodes   int
	Fabric  Fabric

	gpus []int // the machine's GPUs that take part
}

// NewCluster joins nodes machines, of which the first gpus GPUs take part (0:
// all). It fails for counts that are out of range and for several machines
// that have no NET.
func NewCluster(machine *System, nodes, gpus int, fabric Fabric) (*Cluster, error) {
	switch {
	case nodes < 1 || nodes > MaxNodes:
		return nil, fmt.Errorf("%d nodes: want 1 to %d", nodes, MaxNodes)
	case gpus < 0 || gpus > len(machine.GPUs):
		return nil, fmt.Errorf("%d GPUs of %s: want 1 to %d", gpus, machine.Name, len(machine.GPUs))
	case nodes > 1 && len(machine.NETs) == 0:
		return nil, fmt.Errorf("%d nodes of %s: the machine has no <net> to join them by", nodes, machine.Name)
	}
	if gpus == 0 {
		gpus = len(machine.GPUs)
	}
	return &Cluster{Machine: machine, Nodes: nodes, Fabric: fabric, gpus: machine.GPUs[:gpus]}, nil
}

// Ranks returns the number of ranks.
func (c *Cluster) Ranks() int { return c.Nodes * len(c.gpus) }

// RanksPerNode returns the number of ranks on each machine.
func (c *Cluster) RanksPerNode() int { return len(c.gpus) }

// GPU returns the node, in the machine's graph, that the rank runs on.
func (c *Cluster) GPU(rank int) int { return c.gpus[rank%len(c.gpus)] }

// Link describes a link of the cluster by its number. Links are numbered machine
// by machine, in the order of [System.Links]; then, for every machine and NET,
// its cable up to the leaf and the one down; then, for every leaf, its trunk up
// and down.
func (c *Cluster) Link(id int) (LinkType, units.Rate) {
	m := c.Machine
	if id < c.cables() {
		l := m.Links[id%len(m.Links)]
		return l.Type, l.Rate
	}
	if cable := id - c.cables(); cable < 2*c.Nodes*len(m.NETs) {
		return LinkNET, c.netRate(cable / 2 % len(m.NETs))
	}
	leaf := (id - c.trunks()) / 2
	ports := units.Rate(c.Fabric.NodesPerLeaf) * c.netRate(leaf%len(m.NETs))
	return LinkNET, ports / units.Rate(c.Fabric.Oversubscription)
}

// ToSwitch returns the links by which a rank reaches its machine's NVSwitch. It
// panics if the machine has none.
func (c *Cluster) ToSwitch(rank int) []int {
	return c.appendPath(nil, rank/len(c.gpus), c.Machine.Path(c.GPU(rank), c.Machine.NVS))
}

// FromSwitch returns the links by which the NVSwitch of a rank's machine reaches
// the rank. It panics if the machine has none.
func (c *Cluster) FromSwitch(rank int) []int {
	return c.appendPath(nil, rank/len(c.gpus), c.Machine.Path(c.Machine.NVS, c.GPU(rank)))
}

// Route returns the links from one rank to another, in order. Between nodes it
// leaves by NET out of the first and enters by NET in of the second, over the
// leaf that both ports are on or else over the spine.
func (c *Cluster) Route(from, to, out, in int) []int {
	m := c.Machine
	a, b := from/len(c.gpus), to/len(c.gpus)
	if a == b {
		return c.appendPath(nil, a, m.Path(c.GPU(from), c.GPU(to)))
	}
	route := c.appendPath(nil, a, m.Path(c.GPU(from), m.NETs[out]))
	route = append(route, c.cable(a, out))
	if up, down := c.leaf(a, out), c.leaf(b, in); up != down {
		route = append(route, c.trunks()+2*up, c.trunks()+2*down+1)
	}
	route = append(route, c.cable(b, in)+1)
	return c.appendPath(route, b, m.Path(m.NETs[in], c.GPU(to)))
}

func (c *Cluster) appendPath(route []int, node int, p Path) []int {
	for _, l := range p.Links {
		route = append(route, node*len(c.Machine.Links)+l)
	}
	return route
}

// cables and trunks are the numbers of the first cable and the first trunk.
func (c *Cluster) cables() int { return c.Nodes * len(c.Machine.Links) }
func (c *Cluster) trunks() int { return c.cables() + 2*c.Nodes*len(c.Machine.NETs) }

// cable is the number of the cable up from a NET; the one down follows it.
func (c *Cluster) cable(node, net int) int {
	return c.cables() + 2*(node*len(c.Machine.NETs)+net)
}

// leaf is the index of the leaf switch that a NET is cabled to.
func (c *Cluster) leaf(node, net int) int {
	return node/c.Fabric.NodesPerLeaf*len(c.Machine.NETs) + net
}

func (c *Cluster) netRate(net int) units.Rate {
	m := c.Machine
	return m.Links[m.Nodes[m.NETs[net]].Out[0]].Rate
}
