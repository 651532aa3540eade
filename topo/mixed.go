package topo

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"tutti/model/units"
)

// Part is a number of equal machines of a cluster.
type Part struct {
	Machine *System
	Nodes   int
}

// NewMixedCluster joins machines of one build that differ in speed: in the rates
// of links, and in the compute capability of GPUs. Nodes are numbered part by
// part. [Cluster.Machine] is what all have at the least, and the switches above
// the leaves are built for the fastest ports.
//
// It fails where [NewCluster] does, for machines of another structure, with an
// error that says what differs first, and for NETs that are on other rails.
func NewMixedCluster(parts []Part, gpus int, fabric Fabric) (*Cluster, error) {
	var of, machines []*System
	for _, p := range parts {
		if p.Nodes < 1 || p.Nodes > MaxNodes-len(of) {
			return nil, fmt.Errorf("%d nodes of %s: want 1 to %d, of all together", p.Nodes, p.Machine.Name, MaxNodes)
		}
		of = append(of, slices.Repeat([]*System{p.Machine}, p.Nodes)...)
		if !slices.Contains(machines, p.Machine) {
			machines = append(machines, p.Machine)
		}
	}
	switch len(machines) {
	case 0:
		return nil, fmt.Errorf("a cluster of no machines: want 1 to %d", MaxNodes)
	case 1:
		return NewCluster(machines[0], len(of), gpus, fabric)
	}
	first := machines[0]
	for _, m := range machines[1:] {
		if what := first.differs(m); what != "" {
			return nil, fmt.Errorf("machines of one cluster may differ in speed alone, and %s: want machines of one build", what)
		}
		if a, b := railsByName(first), railsByName(m); fabric.Rails == nil && !slices.Equal(a, b) {
			return nil, fmt.Errorf("the NETs of %s are on rails %v by their names, and those of %s on %v: want the same names", first.Name, a, m.Name, b)
		}
	}
	return newCluster(Cluster{Machine: weakest(mixture(parts), machines), Nodes: len(of), Fabric: fabric, of: of, machines: machines}, gpus)
}

// mixture names machines with their numbers, as in "dgx-h100:3,slow.xml:1".
func mixture(parts []Part) string {
	names := make([]string, len(parts))
	for i, p := range parts {
		names[i] = fmt.Sprintf("%s:%d", p.Machine.Name, p.Nodes)
	}
	return strings.Join(names, ",")
}

// weakest returns the machine that has of each link the least rate that some of
// the machines has, and of each GPU the lowest compute capability.
func weakest(name string, machines []*System) *System {
	w := *machines[0]
	w.Name, w.Nodes, w.Links = name, slices.Clone(w.Nodes), slices.Clone(w.Links)
	for _, m := range machines[1:] {
		for i := range w.Nodes {
			w.Nodes[i].SM = min(w.Nodes[i].SM, m.Nodes[i].SM)
			w.Nodes[i].Latency = max(w.Nodes[i].Latency, m.Nodes[i].Latency)
		}
		for i := range w.Links {
			w.Links[i].Rate = min(w.Links[i].Rate, m.Links[i].Rate)
		}
	}
	w.computePaths()
	return &w
}

// differs says what the structure of another machine differs in first, or
// nothing.
func (s *System) differs(other *System) string {
	for t := GPU; t <= NET; t++ {
		if a, b := len(s.Of(t)), len(other.Of(t)); a != b {
			return fmt.Sprintf("%s has %d nodes of type %v, and %s has %d", s.Name, a, t, other.Name, b)
		}
	}
	for i, a := range s.Nodes {
		b := other.Nodes[i]
		if c := cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Host, b.Host)); c != 0 {
			return fmt.Sprintf("node %d of %s is %v %s of host %d, and of %s %v %s of host %d", i, s.Name, a.Type, a.Name, a.Host, other.Name, b.Type, b.Name, b.Host)
		}
		if a.GDR != b.GDR || a.Coll != b.Coll {
			return fmt.Sprintf("%v %s of %s has GPUDirect RDMA %v and CollNet %v, and %s of %s has %v and %v", a.Type, a.Name, s.Name, a.GDR, a.Coll, b.Name, other.Name, b.GDR, b.Coll)
		}
	}
	if !slices.Equal(s.GPUs, other.GPUs) {
		return fmt.Sprintf("the ranks of %s and %s are on other GPUs", s.Name, other.Name)
	}
	for i := range min(len(s.Links), len(other.Links)) {
		a, b := s.Links[i], other.Links[i]
		if a.Rate, b.Rate = 0, 0; a != b {
			return fmt.Sprintf("link %d of %s joins %s, and that of %s %s", i, s.Name, s.linkEnds(i), other.Name, other.linkEnds(i))
		}
	}
	if len(s.Links) != len(other.Links) {
		return fmt.Sprintf("%s has %d links, and %s has %d", s.Name, len(s.Links), other.Name, len(other.Links))
	}
	return ""
}

// linkEnds says what a link joins.
func (s *System) linkEnds(link int) string {
	l := s.Links[link]
	a, b := &s.Nodes[l.From], &s.Nodes[l.To]
	return fmt.Sprintf("%v %s and %v %s by %v", a.Type, a.Name, b.Type, b.Name, l.Type)
}

// At returns the machine that a node is.
func (c *Cluster) At(node int) *System {
	if c.of == nil {
		return c.Machine
	}
	return c.of[node]
}

// Kind returns which of [Cluster.Machines] a node is.
func (c *Cluster) Kind(node int) int {
	if c.of == nil {
		return 0
	}
	return slices.Index(c.machines, c.of[node])
}

// Machines lists the machines that the nodes are, each once: several in a mixed
// cluster.
func (c *Cluster) Machines() []*System {
	if c.of == nil {
		return []*System{c.Machine}
	}
	return c.machines
}

// count returns how many nodes are a machine.
func (c *Cluster) count(m *System) (n int) {
	if c.of == nil {
		return c.Nodes
	}
	for _, at := range c.of {
		if at == m {
			n++
		}
	}
	return n
}

// Mixed tells whether there are several.
func (c *Cluster) Mixed() bool { return c.of != nil }

// Title names the machines with their numbers, as in "4 x dgx-h100" and
// "dgx-h100:3,slow.xml:1".
func (c *Cluster) Title() string {
	if c.Mixed() {
		return c.Machine.Name
	}
	return fmt.Sprintf("%d x %s", c.Nodes, c.Machine.Name)
}

// AllOf returns the cluster with a machine of the same build in the place of
// every one. The switches above the leaves stay.
func (c *Cluster) AllOf(m *System) *Cluster {
	alike := *c
	alike.Machine, alike.of, alike.machines = m, nil, nil
	return &alike
}

// SM returns the compute capability, times ten, of the GPU that a rank runs on.
func (c *Cluster) SM(rank int) int { return c.At(rank / len(c.gpus)).Nodes[c.GPU(rank)].SM }

// netRate is what a NET of a machine carries.
func (s *System) netRate(net int) units.Rate { return s.Links[s.Nodes[s.NETs[net]].Out[0]].Rate }
