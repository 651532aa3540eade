package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"tutti/topo"
)

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
