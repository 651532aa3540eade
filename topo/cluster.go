package topo

import (
	"fmt"

	"tutti/model/units"
)

// MaxNodes is how many machines a cluster may have: 131,072 GPUs in nodes of eight.
const MaxNodes = 1 << 14

// Cluster is a number of machines on a fabric: equal ones, or of one build that
// differ in speed ([NewMixedCluster]). Ranks count the GPUs of the first machine,
// then those of the second, and so on. Nothing is stored for a machine, a switch
// or a cable, but for which machines are of a mixture: all are found by their
// number.
type Cluster struct {
	// Machine is that which all nodes are or, of a mixture, what all have at the
	// least.
	Machine *System
	Nodes   int
	Fabric  Fabric
	// ThroughHost has data between GPUs and NICs pass through the memory of the
	// CPU next to the GPU, as without GPUDirect RDMA.
	ThroughHost bool

	of, machines []*System // of a mixture: by node, and each once
	gpus         []int     // the machine's GPUs that take part
	rails        []int     // by NET
	tiers        []Tier
}

// NewCluster joins nodes machines, of which the first gpus GPUs take part (0:
// all). It fails for counts that are out of range, for several machines that
// have no NET, and with a [*FabricError] for a fabric that is not sound, whose
// rails are not the machine's, or that has no room for the machines.
func NewCluster(machine *System, nodes, gpus int, fabric Fabric) (*Cluster, error) {
	return newCluster(Cluster{Machine: machine, Nodes: nodes, Fabric: fabric}, gpus)
}

// newCluster completes a cluster of the given machines.
func newCluster(c Cluster, gpus int) (*Cluster, error) {
	machine, nodes, fabric := c.Machine, c.Nodes, c.Fabric
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
	c.gpus = machine.GPUs[:gpus]
	if nodes == 1 {
		return &c, nil
	}
	if err := fabric.Check(); err != nil {
		return nil, err
	}
	rails, count, err := fabric.railsOf(machine)
	if err != nil {
		return nil, err
	}
	top := len(fabric.Levels) - 1
	if room := fabric.Levels[top].Nodes; room != 0 && nodes > room {
		return nil, &FabricError{fabric.Name, LevelName(top) + ".nodes", fmt.Sprintf("room for %d machines, and there are %d", room, nodes)}
	}
	c.rails = rails
	c.build(count)
	return &c, nil
}

// Ranks returns the number of ranks.
func (c *Cluster) Ranks() int { return c.Nodes * len(c.gpus) }

// RanksPerNode returns the number of ranks on each machine.
func (c *Cluster) RanksPerNode() int { return len(c.gpus) }

// GPU returns the node, in the machine's graph, that the rank runs on.
func (c *Cluster) GPU(rank int) int { return c.gpus[rank%len(c.gpus)] }

// ToSwitch returns the links by which a rank reaches its machine's NVSwitch. It
// panics if the machine has none.
func (c *Cluster) ToSwitch(rank int) []int {
	node := rank / len(c.gpus)
	return c.appendPath(nil, node, c.At(node).Path(c.GPU(rank), c.Machine.NVS))
}

// FromSwitch returns the links by which the NVSwitch of a rank's machine reaches
// the rank. It panics if the machine has none.
func (c *Cluster) FromSwitch(rank int) []int {
	node := rank / len(c.gpus)
	return c.appendPath(nil, node, c.At(node).Path(c.Machine.NVS, c.GPU(rank)))
}

// Route returns the links from one rank to another, in order. Between nodes it
// leaves by NET out of the first and enters by NET in of the second, over the
// lowest level of switches that joins both ports.
func (c *Cluster) Route(from, to, out, in int) []int { return c.RouteFlow(from, to, out, in, 0) }

// RouteFlow is [Cluster.Route] for one of several flows with the same ends: what
// ECMP tells apart by their ports or queue pairs.
func (c *Cluster) RouteFlow(from, to, out, in, flow int) []int {
	a, b := from/len(c.gpus), to/len(c.gpus)
	if a == b {
		return c.appendPath(nil, a, c.At(a).Path(c.GPU(from), c.GPU(to)))
	}
	source, target := port{a, out}, port{b, in}
	return c.across(from, to, source, target, c.picked(c.hash(source, target, flow)))
}

// across returns the links between two machines, by way of the cables picked.
func (c *Cluster) across(from, to int, source, target port, by picks) []int {
	top := c.meet(source, target)
	route := c.climb(c.toNIC(make([]int, 0, 16), from, source.net), source, top, by)
	return c.fromNIC(c.descend(route, target, top, by), to, target.net)
}

func (c *Cluster) appendPath(route []int, node int, p Path) []int {
	for _, l := range p.Links {
		route = append(route, node*len(c.Machine.Links)+l)
	}
	return route
}

// Link describes a link of the cluster by its number. Links are numbered machine
// by machine, in the order of [System.Links]; then, tier by tier from the leaves
// up, the cables of the fabric, for each the way up and the way down.
func (c *Cluster) Link(id int) (LinkType, units.Rate) {
	if each := len(c.Machine.Links); id < c.cables() {
		l := c.At(id / each).Links[id%each]
		return l.Type, l.Rate
	}
	t := c.tierOf(id)
	trunk := (id - t.First) / 2
	if nets := len(c.Machine.NETs); t.level == 0 {
		return LinkNET, min(t.rate(trunk), c.At(trunk/nets).netRate(trunk%nets))
	}
	return LinkNET, t.rate(trunk)
}

// Latency returns what the fabric states for a link: 0 inside a machine and
// where it states nothing.
func (c *Cluster) Latency(id int) units.Time {
	if id < c.cables() {
		return 0
	}
	return c.Fabric.Levels[c.tierOf(id).level].Latency
}

// cables is the number of the first cable.
func (c *Cluster) cables() int { return c.Nodes * len(c.Machine.Links) }

// Links returns the number of links of the cluster.
func (c *Cluster) Links() int {
	if len(c.tiers) == 0 {
		return c.cables()
	}
	last := c.tiers[len(c.tiers)-1]
	return last.First + last.Links
}
