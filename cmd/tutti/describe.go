package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"tutti/model/units"
	"tutti/topo"
	"tutti/topo/fabric"
)

// machineInfo is what is told of a machine in one line.
type machineInfo struct {
	Name     string   `json:"name"`
	Aliases  []string `json:"aliases,omitempty"`
	GPUs     int      `json:"gpus"`
	SM       int      `json:"sm"`
	NVLinks  int      `json:"nvlinks_per_gpu"`
	NVLink   float64  `json:"nvlink_GBps_per_gpu"`
	NVSwitch bool     `json:"nvswitch"`
	NETs     int      `json:"nets"`
	NETRate  float64  `json:"net_Gbps"`
	CPUs     int      `json:"numa_nodes"`
	About    string   `json:"about,omitempty"`
	Source   string   `json:"source,omitempty"`
}

func summarise(name string, s *topo.System) machineInfo {
	about, source := topo.About(name)
	m := machineInfo{
		Name: name, Aliases: topo.Aliases(name), GPUs: len(s.GPUs), SM: s.SM(), NVSwitch: s.NVS >= 0,
		NETs: len(s.NETs), CPUs: len(s.CPUs), About: about, Source: source,
	}
	m.NVLinks, m.NVLink = nvlinks(s, s.GPUs[0])
	for _, net := range s.NETs {
		m.NETRate = max(m.NETRate, gbps(netRate(s, net)))
	}
	return m
}

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

func machineList() ([]machineInfo, error) {
	var list []machineInfo
	for _, name := range topo.Machines() {
		s, err := topo.Open(name)
		if err != nil {
			return nil, err
		}
		list = append(list, summarise(name, s))
	}
	return list, nil
}

func machineTable(list []machineInfo) *table {
	t := &table{header: []string{"machine", "GPUs", "arch", "NVLinks", "NVLink(GB/s)", "NVSwitch", "NICs", "NIC(Gb/s)", "also", "source"}}
	for _, m := range list {
		count, rate := none, none
		if m.NVLinks > 0 {
			count, rate = strconv.Itoa(m.NVLinks), number(m.NVLink)
		}
		first, _, _ := strings.Cut(m.Source, ". ")
		t.add(m.Name, strconv.Itoa(m.GPUs), fmt.Sprintf("sm_%d", m.SM), count, rate, yes(m.NVSwitch),
			strconv.Itoa(m.NETs), number(m.NETRate), strings.Join(m.Aliases, " "), strings.TrimSuffix(first, "."))
	}
	return t
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// fabricInfo is what is told of a fabric in one line.
type fabricInfo struct {
	Name    string `json:"name"`
	Levels  int    `json:"levels"`
	Routing string `json:"routing"`
	Machine string `json:"machine,omitempty"`
	Nodes   int    `json:"nodes,omitempty"`
	About   string `json:"about"`
	Source  string `json:"source"`
}

func fabricList() ([]fabricInfo, error) {
	var list []fabricInfo
	for _, name := range fabric.Names() {
		s, err := fabric.Open(name)
		if err != nil {
			return nil, err
		}
		list = append(list, fabricInfo{name, len(s.Fabric.Levels), s.Fabric.Routing.String(), s.Machine, s.Nodes, s.About, s.Source})
	}
	return list, nil
}

func fabricTable(list []fabricInfo) *table {
	t := &table{header: []string{"fabric", "levels", "routing", "for", "about"}}
	for _, f := range list {
		cluster := "any"
		if f.Machine != "" {
			cluster = fmt.Sprintf("%d x %s", f.Nodes, f.Machine)
		}
		t.add(f.Name, strconv.Itoa(f.Levels), f.Routing, cluster, f.About)
	}
	return t
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

// maxMatrix is how many GPUs and NICs a matrix has room for.
const maxMatrix = 40

// write describes the cluster for people.
func (v *clusterView) write(w io.Writer) error {
	d := describe(v)
	machines := d.Machines
	if !v.Mixed() {
		machines = []MachineParts{*d.MachineParts}
	}
	for i, m := range machines {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "%s\n", m.Machine.Name)
		if m.Machine.About != "" {
			fmt.Fprintf(w, "%s\nsource: %s\n", m.Machine.About, m.Machine.Source)
		}
		for _, a := range d.Assumed {
			fmt.Fprintf(w, "assumed: %s\n", a)
		}
		for _, t := range m.tables() {
			fmt.Fprintln(w)
			if err := t.write(w, false); err != nil {
				return err
			}
		}
	}
	if d.Cluster == nil {
		return nil
	}
	fmt.Fprintf(w, "\n%s on %s: %d ranks, %s routing\n", v.Title(), d.Cluster.Fabric, d.Cluster.Ranks, d.Cluster.Routing)
	return tierTable(d.Cluster).write(w, false)
}

// tables lists what a machine has: GPUs, NICs, and paths.
func (d *MachineParts) tables() []*table {
	gpus := &table{header: []string{"GPU", "bus id", "arch", "NUMA", "NVLinks", "NVLink(GB/s)", "PCI(GB/s)"}}
	for _, g := range d.GPUs {
		gpus.add(strconv.Itoa(g.Rank), g.Bus, fmt.Sprintf("sm_%d", g.SM), g.NUMA, strconv.Itoa(g.NVLinks), number(g.NVLink), number(g.PCI))
	}
	nets := &table{header: []string{"NIC", "NUMA", "rate(Gb/s)", "path", "nearest GPUs"}}
	for i, n := range d.NETs {
		row := []string{n.Name, n.NUMA, number(n.Rate), n.Type, ranges(n.GPUs)}
		if n.Rail != nil {
			if row = append(row, strconv.Itoa(*n.Rail)); i == 0 {
				nets.header = append(nets.header, "rail")
			}
		}
		nets.add(row...)
	}
	tables := []*table{gpus}
	if len(d.NETs) > 0 {
		tables = append(tables, nets)
	}
	if len(d.GPUs)+len(d.NETs) <= maxMatrix {
		return append(tables, matrix(d.system))
	}
	return append(tables, pathCounts(d.Paths))
}

// matrix has the types of the paths from GPUs to GPUs and NICs.
func matrix(s *topo.System) *table {
	t := &table{header: []string{"path from"}}
	for i := range s.GPUs {
		t.header = append(t.header, fmt.Sprintf("GPU%d", i))
	}
	for _, at := range s.NETs {
		t.header = append(t.header, s.Nodes[at].Name)
	}
	for i, g := range s.GPUs {
		row := []string{fmt.Sprintf("GPU%d", i)}
		for _, to := range slices.Concat(s.GPUs, s.NETs) {
			row = append(row, s.Path(g, to).Type.String())
		}
		t.add(row...)
	}
	return t
}

// pathCounts counts the paths of each kind, where a matrix would be too large.
func pathCounts(paths []pathInfo) *table {
	type kind struct {
		to, name string
		rate     float64
	}
	counts := map[kind]int{}
	var order []kind
	for _, p := range paths {
		k := kind{"GPU to NIC", p.Type, p.Rate}
		if strings.HasPrefix(p.To, "GPU") {
			k.to = "GPU to GPU"
		}
		if counts[k] == 0 {
			order = append(order, k)
		}
		counts[k]++
	}
	t := &table{header: []string{"paths", "type", "rate(GB/s)", "count"}}
	for _, k := range order {
		t.add(k.to, k.name, number(k.rate), strconv.Itoa(counts[k]))
	}
	return t
}

func tierTable(c *clusterInfo) *table {
	t := &table{header: []string{"level", "switches", "ports down", "ports up", "cables", "rate(Gb/s)", "each way(TB/s)", "latency(us)", "SHARP"}}
	for _, r := range c.Tiers {
		latency := none
		if r.Latency > 0 {
			latency = number(r.Latency)
		}
		t.add(r.Name, strconv.Itoa(r.Switches), strconv.Itoa(r.Down), strconv.Itoa(r.Up), strconv.Itoa(r.Cables), number(r.Rate), number(r.Capacity), latency, yes(r.SHARP))
	}
	return t
}
