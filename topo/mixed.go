package topo

import (
	"fmt"
	"slices"
	"strings"
)

// Part is a number of equal machines of a cluster.
type Part struct {
	Machine *System
	Nodes   int
	// Rails gives the rail of each of the machine's NETs, from 0. If nil, those of
	// the fabric hold or, if that has none, NETs are on the rail that their name is
	// on at the machine with the most rails, or in order where it has other names. Of
	// several parts of one machine, the first says.
	Rails []int
}

// kind is one of the machines that the nodes of a cluster are.
type kind struct {
	*System
	gpus  []int // that take part
	rails []int // by NET
	nodes int
}

// NewMixedCluster joins machines of any kinds, of each the first gpus GPUs (0:
// all). Nodes are numbered part by part. [Cluster.Machine] is the one of the
// lowest compute capability, under the name of the mixture, and the switches above
// the leaves are built for the machines with the fastest ports. It fails where
// [NewCluster] does.
func NewMixedCluster(parts []Part, gpus int, fabric Fabric) (*Cluster, error) {
	c := Cluster{Fabric: fabric}
	for _, p := range parts {
		if p.Nodes < 1 || p.Nodes > MaxNodes-len(c.of) {
			return nil, fmt.Errorf("%d nodes of %s: want 1 to %d, of all together", p.Nodes, p.Machine.Name, MaxNodes)
		}
		at := slices.IndexFunc(c.kinds, func(k kind) bool { return k.System == p.Machine })
		if at < 0 {
			at = len(c.kinds)
			c.kinds = append(c.kinds, kind{System: p.Machine, rails: p.Rails})
		}
		c.kinds[at].nodes += p.Nodes
		c.of = append(c.of, slices.Repeat([]int32{int32(at)}, p.Nodes)...)
	}
	if len(parts) == 0 {
		return nil, fmt.Errorf("a cluster of no machines: want 1 to %d", MaxNodes)
	}
	c.Machine = c.kinds[0].System
	if len(c.kinds) > 1 {
		c.Machine = weakest(mixture(parts), c.kinds)
	}
	return newCluster(c, gpus)
}

// mixture names machines with their numbers, as in "dgx-h100:3,slow.xml:1".
func mixture(parts []Part) string {
	names := make([]string, len(parts))
	for i, p := range parts {
		names[i] = fmt.Sprintf("%s:%d", p.Machine.Name, p.Nodes)
	}
	return strings.Join(names, ",")
}

// weakest returns the machine of the lowest compute capability, under a name.
func weakest(name string, kinds []kind) *System {
	w := *slices.MinFunc(kinds, func(a, b kind) int { return a.SM() - b.SM() }).System
	w.Name = name
	return &w
}

// At returns the machine that a node is.
func (c *Cluster) At(node int) *System { return c.kinds[c.Kind(node)].System }

// Kind returns which of [Cluster.Machines] a node is.
func (c *Cluster) Kind(node int) int {
	if c.of == nil {
		return 0
	}
	return int(c.of[node])
}

// Machines lists the machines that the nodes are, each once: several in a mixed
// cluster.
func (c *Cluster) Machines() []*System {
	var list []*System
	for _, k := range c.kinds {
		list = append(list, k.System)
	}
	return list
}

// Mixed tells whether there are several.
func (c *Cluster) Mixed() bool { return len(c.kinds) > 1 }

// Title names the machines with their numbers, as in "4 x dgx-h100" and
// "dgx-h100:3,slow.xml:1".
func (c *Cluster) Title() string {
	if c.Mixed() {
		return c.Machine.Name
	}
	return fmt.Sprintf("%d x %s", c.Nodes, c.Machine.Name)
}

// AllOf returns the cluster with one of its [Cluster.Machines] in the place of
// every one. Links keep their numbers, and the switches above the leaves stay.
func (c *Cluster) AllOf(machine int) *Cluster {
	alike := *c
	k := c.kinds[machine]
	k.nodes = c.Nodes
	alike.Machine, alike.kinds, alike.of = k.System, []kind{k}, nil
	alike.Layout = evenLayout(c.Nodes, len(k.gpus))
	return &alike
}

// With returns the cluster as NCCL sees it with the given settings on all machines.
func (c *Cluster) With(settings Settings) *Cluster {
	set := *c
	set.Machine, set.kinds = c.Machine.With(settings), slices.Clone(c.kinds)
	for i := range set.kinds {
		set.kinds[i].System = set.kinds[i].System.With(settings)
	}
	return &set
}

// SM returns the compute capability, times ten, of the GPU that a rank runs on.
func (c *Cluster) SM(rank int) int { return c.At(c.NodeOf(rank)).Nodes[c.GPU(rank)].SM }

// Differs says what machines of a mixture differ in that matters to who passes
// data on from any GPU, or NET, to that of the same number elsewhere: the number
// of GPUs that take part, or NETs on other rails. It is empty if nothing does.
func (c *Cluster) Differs() string {
	a := c.kinds[0]
	for _, b := range c.kinds[1:] {
		if len(a.gpus) != len(b.gpus) {
			return fmt.Sprintf("%d GPUs of %s take part, and %d of %s", len(a.gpus), a.Name, len(b.gpus), b.Name)
		}
		if c.Nodes > 1 && !slices.Equal(a.rails, b.rails) {
			return fmt.Sprintf("the NETs of %s are on rails %v, and those of %s on %v", a.Name, a.rails, b.Name, b.rails)
		}
	}
	return ""
}
