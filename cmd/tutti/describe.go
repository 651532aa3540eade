package main

import (
	"fmt"
	"slices"
	"strings"

	"tutti/model/units"
	"tutti/topo"
)

// nvlinks returns how many NVLinks a GPU has, and what they carry in GB/s.
func nvlinks(s *topo.System, gpu int) (count int, rate float64) {
	for _, l := range s.Nodes[gpu].Out {
		if n := s.NVLinks(l); n > 0 {
			count += n
			rate += float64(s.Links[l].Rate / units.GBps)
		}
	}
	return count, rate
}

func netRate(s *topo.System, net int) units.Rate { return s.Links[s.Nodes[net].Out[0]].Rate }

func gbps(r units.Rate) float64 { return float64(r / units.Gbps) }

// number writes a figure with as many decimals as it needs, two at the most.
func number(v float64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", v), "0"), ".")
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// description is the JSON form of tutti topo show.
type description struct {
	Schema string `json:"schema"`
	*MachineParts
	Assumed  []string       `json:"assumed,omitempty"`
	Machines []MachineParts `json:"machines,omitempty"` // of a mixture
	Cluster  *clusterInfo   `json:"cluster,omitempty"`
}

// MachineParts is a machine with what it has.
type MachineParts struct {
	Machine machineInfo `json:"machine"`
	GPUs    []gpuInfo   `json:"gpus"`
	NETs    []netInfo   `json:"nets"`
	Paths   []pathInfo  `json:"paths"`

	system *topo.System
}

type gpuInfo struct {
	Rank    int     `json:"rank"`
	Bus     string  `json:"bus"`
	SM      int     `json:"sm"`
	NUMA    string  `json:"numa"`
	NVLinks int     `json:"nvlinks"`
	NVLink  float64 `json:"nvlink_GBps"`
	PCI     float64 `json:"pci_GBps"`
}

type netInfo struct {
	Name string  `json:"name"`
	Rate float64 `json:"Gbps"`
	NUMA string  `json:"numa"`
	GPUs []int   `json:"nearest_gpus"`
	Type string  `json:"nearest_path"`
	Rail *int    `json:"rail,omitempty"`
}

type pathInfo struct {
	From  string  `json:"from"`
	To    string  `json:"to"`
	Type  string  `json:"type"`
	Rate  float64 `json:"GBps"`
	Links int     `json:"links"`
}

type clusterInfo struct {
	Fabric  string     `json:"fabric"`
	Routing string     `json:"routing"`
	Nodes   int        `json:"nodes"`
	Ranks   int        `json:"ranks"`
	Tiers   []tierInfo `json:"tiers"`
}

type tierInfo struct {
	Name     string  `json:"name"`
	Switches int     `json:"switches"`
	Down     int     `json:"ports_down"`
	Up       int     `json:"ports_up"`
	Cables   int     `json:"cables"`
	Rate     float64 `json:"cable_Gbps"`
	Capacity float64 `json:"capacity_TBps"`
	Latency  float64 `json:"latency_us"`
	SHARP    bool    `json:"sharp"`
}

// describe puts all that is known of a cluster and its machines together.
func describe(v *clusterView) description {
	d := description{Schema: "tutti.topo/1", Assumed: v.assumed}
	for kind := range v.Machines() {
		d.Machines = append(d.Machines, describeMachine(v.AllOf(kind)))
	}
	if !v.Mixed() {
		d.MachineParts, d.Machines = &d.Machines[0], nil
	}
	if v.Nodes > 1 {
		c := &clusterInfo{Fabric: v.Fabric.Name, Routing: v.Fabric.Routing.String(), Nodes: v.Nodes, Ranks: v.Ranks()}
		for i, t := range v.Tiers() {
			l := v.Fabric.Levels[i]
			c.Tiers = append(c.Tiers, tierInfo{
				t.Name, t.Switches, t.Down, t.Up, t.Cables, gbps(t.CableRate),
				float64(t.Capacity/units.GBps) / 1000, l.Latency.Microseconds(), l.Reduces,
			})
		}
		d.Cluster = c
	}
	return d
}

// describeMachine tells of the machine that all nodes of a cluster are.
func describeMachine(c *topo.Cluster) MachineParts {
	s := c.Machine
	d := MachineParts{Machine: summarise(s.Name, s), system: s}
	for rank, g := range s.GPUs {
		n := gpuInfo{Rank: rank, Bus: s.Nodes[g].Name, SM: s.Nodes[g].SM, NUMA: numa(s, g)}
		n.NVLinks, n.NVLink = nvlinks(s, g)
		for _, l := range s.Nodes[g].Out {
			if s.Links[l].Type == topo.LinkPCI {
				n.PCI = float64(s.Links[l].Rate / units.GBps)
			}
		}
		d.GPUs = append(d.GPUs, n)
	}
	for k, at := range s.NETs {
		n := netInfo{Name: s.Nodes[at].Name, Rate: gbps(netRate(s, at)), NUMA: numa(s, at)}
		best := topo.PathDIS
		for _, g := range s.GPUs {
			best = min(best, s.Path(at, g).Type)
		}
		for rank, g := range s.GPUs {
			if s.Path(at, g).Type == best {
				n.GPUs = append(n.GPUs, rank)
			}
		}
		n.Type = best.String()
		if c.Nodes > 1 {
			rail := c.Rail(0, k)
			n.Rail = &rail
		}
		d.NETs = append(d.NETs, n)
	}
	for i, g := range s.GPUs {
		for k, peer := range s.GPUs {
			if i != k {
				d.Paths = append(d.Paths, pathOf(s, fmt.Sprintf("GPU%d", i), fmt.Sprintf("GPU%d", k), g, peer))
			}
		}
		for _, at := range s.NETs {
			d.Paths = append(d.Paths, pathOf(s, fmt.Sprintf("GPU%d", i), s.Nodes[at].Name, g, at))
		}
	}
	return d
}

func pathOf(s *topo.System, from, to string, a, b int) pathInfo {
	p := s.Path(a, b)
	return pathInfo{from, to, p.Type.String(), float64(p.Rate / units.GBps), len(p.Links)}
}

// numa is the NUMA node that is nearest to a part of the machine.
func numa(s *topo.System, at int) string {
	nearest := slices.MinFunc(s.CPUs, func(a, b int) int {
		p, q := s.Path(at, a), s.Path(at, b)
		return int(p.Type) - int(q.Type)
	})
	return s.Nodes[nearest].Name
}
