package topo

import (
	"fmt"

	"tutti/model/units"
)

// MaxNodes is how many machines a cluster may have: 131,072 GPUs in nodes of eight.
const MaxNodes = 1 << 14

// Cluster is a number of machines on a fabric, equal ones or of several kinds
// ([NewMixedCluster]). Nothing is stored for a machine, a switch or a cable, but
// for which machines are of a mixture: all are found by their number.
type Cluster struct {
	Layout
	// Machine is that which all nodes are or, of a mixture, its machine of the
	// lowest compute capability, under the name of the mixture.
	Machine *System
	Fabric  Fabric
	// ThroughHost has data between GPUs and NICs pass through the memory of the
	// CPU next to the GPU, as without GPUDirect RDMA.
	ThroughHost bool

	kinds        []kind
	of           []int32 // by node: its kind; nil where there is one
	links, ports int     // numbers for those of each machine, the most that one has
	tiers        []Tier
}

// NewCluster joins nodes machines, of which the first gpus GPUs take part (0:
// all). It fails for counts that are out of range, for several machines that
// have no NET, and with a [*FabricError] for a fabric that is not sound, whose
// rails are not the machine's, or that has no room for the machines.
func NewCluster(machine *System, nodes, gpus int, fabric Fabric) (*Cluster, error) {
	if nodes < 1 || nodes > MaxNodes {
		return nil, fmt.Errorf("%d nodes: want 1 to %d", nodes, MaxNodes)
	}
	return NewMixedCluster([]Part{{Machine: machine, Nodes: nodes}}, gpus, fabric)
}

// newCluster completes a cluster of the given kinds.
func newCluster(c Cluster, gpus int) (*Cluster, error) {
	nodes, fabric := len(c.of), c.Fabric
	ranks := make([]int, len(c.kinds))
	for i := range c.kinds {
		k := &c.kinds[i]
		switch {
		case gpus < 0 || gpus > len(k.GPUs):
			return nil, fmt.Errorf("%d GPUs of %s: want 1 to %d", gpus, k.Name, len(k.GPUs))
		case nodes > 1 && len(k.NETs) == 0:
			return nil, fmt.Errorf("%d nodes of %s: the machine has no <net> to join them by", k.nodes, k.Name)
		}
		k.gpus = k.GPUs
		if gpus > 0 {
			k.gpus = k.GPUs[:gpus]
		}
		ranks[i] = len(k.gpus)
		c.links, c.ports = max(c.links, len(k.Links)), max(c.ports, len(k.NETs))
	}
	if len(c.kinds) == 1 {
		c.of, c.Layout = nil, evenLayout(nodes, ranks[0])
	} else {
		each := make([]int, nodes)
		for node, k := range c.of {
			each[node] = ranks[k]
		}
		c.Layout = newLayout(each)
	}
	if nodes == 1 {
		return &c, nil
	}
	if err := fabric.Check(); err != nil {
		return nil, err
	}
	count, err := c.placeOnRails()
	if err != nil {
		return nil, err
	}
	top := len(fabric.Levels) - 1
	if room := fabric.Levels[top].Nodes; room != 0 && nodes > room {
		return nil, &FabricError{fabric.Name, LevelName(top) + ".nodes", fmt.Sprintf("room for %d machines, and there are %d", room, nodes)}
	}
	c.build(count)
	return &c, nil
}

// GPU returns the node, in its machine's graph, that the rank runs on.
func (c *Cluster) GPU(rank int) int {
	node := c.NodeOf(rank)
	return c.kinds[c.Kind(node)].gpus[rank-c.FirstRank(node)]
}

// ToSwitch returns the links by which a rank reaches its machine's NVSwitch. It
// panics if the machine has none.
func (c *Cluster) ToSwitch(rank int) []int {
	node := c.NodeOf(rank)
	return c.appendPath(nil, node, c.At(node).Path(c.GPU(rank), c.At(node).NVS))
}

// FromSwitch returns the links by which the NVSwitch of a rank's machine reaches
// the rank. It panics if the machine has none.
func (c *Cluster) FromSwitch(rank int) []int {
	node := c.NodeOf(rank)
	return c.appendPath(nil, node, c.At(node).Path(c.At(node).NVS, c.GPU(rank)))
}

// Route returns the links from one rank to another, in order. Between nodes it
// leaves by NET out of the first and enters by NET in of the second, over the
// lowest level of switches that joins both ports.
func (c *Cluster) Route(from, to, out, in int) []int { return c.RouteFlow(from, to, out, in, 0) }

// RouteFlow is [Cluster.Route] for one of several flows with the same ends: what
// ECMP tells apart by their ports or queue pairs.
func (c *Cluster) RouteFlow(from, to, out, in, flow int) []int {
	a, b := c.NodeOf(from), c.NodeOf(to)
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
		route = append(route, node*c.links+l)
	}
	return route
}

// Link describes a link of the cluster by its number. Links are numbered machine
// by machine, in the order of [System.Links]; then, tier by tier from the leaves
// up, the cables of the fabric, for each the way up and the way down. Of a
// mixture, each machine has as many numbers as the one with the most links or
// NETs; those that stand for nothing ([Cluster.Has]) carry nothing.
func (c *Cluster) Link(id int) (LinkType, units.Rate) {
	if !c.Has(id) {
		return LinkLOC, 0
	}
	if id < c.cables() {
		l := c.At(id / c.links).Links[id%c.links]
		return l.Type, l.Rate
	}
	t := c.tierOf(id)
	trunk := (id - t.First) / 2
	if t.level == 0 {
		return LinkNET, c.portRate(c.At(trunk/c.ports), trunk%c.ports)
	}
	return LinkNET, t.rate(trunk)
}

// Has tells whether there is a link of a number: machines of a mixture may have
// fewer links or NETs than others.
func (c *Cluster) Has(id int) bool {
	switch {
	case id < c.cables():
		return id%c.links < len(c.At(id/c.links).Links)
	case id < c.tiers[0].First+c.tiers[0].Links:
		port := (id - c.tiers[0].First) / 2
		return port%c.ports < len(c.At(port/c.ports).NETs)
	default:
		return true
	}
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
func (c *Cluster) cables() int { return c.Nodes * c.links }

// Links returns how many numbers links have.
func (c *Cluster) Links() int {
	if len(c.tiers) == 0 {
		return c.cables()
	}
	last := c.tiers[len(c.tiers)-1]
	return last.First + last.Links
}
