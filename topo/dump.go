package topo

import (
	"fmt"
	"io"
	"strings"

	"tutti/model/units"
)

// Dump writes a system, and the paths from its GPUs and NETs, as NCCL logs them
// with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=GRAPH (NCCL 2.28.3, topo.cc,
// ncclTopoPrint; paths.cc, ncclTopoPrintPaths). NCCL has no NETs in a
// communicator within one machine: see [System.Restrict].
func Dump(w io.Writer, s *System) error {
	d := &dump{System: s, rank: map[int]int{}}
	for rank, g := range s.GPUs {
		d.rank[g] = rank
	}
	fmt.Fprintf(&d.text, "=== System : maxBw %.1f totalBw %.1f ===\n", s.MaxRate()/units.GBps, s.TotalRate()/units.GBps)
	for _, cpu := range s.CPUs {
		d.tree(cpu, -1, "", "")
	}
	d.text.WriteString("==========================================\n")
	for _, t := range []NodeType{GPU, NET} {
		for _, n := range s.Of(t) {
			d.paths(n)
		}
	}
	_, err := io.WriteString(w, d.text.String())
	return err
}

// Label names a node as NCCL's log does: type, host and number in hexadecimal.
func (s *System) Label(node int) string {
	n := s.Nodes[node]
	return fmt.Sprintf("%v/%x-%x", n.Type, n.Host, n.ID)
}

type dump struct {
	*System
	rank map[int]int
	text strings.Builder
}

// tree writes a node and, indented to stand behind it, its links.
func (d *dump) tree(node, up int, indent, lead string) {
	n := d.Nodes[node]
	d.text.WriteString(indent + lead + d.Label(node))
	switch n.Type {
	case GPU:
		fmt.Fprintf(&d.text, " (%d)", d.rank[node])
	case CPU:
		fmt.Fprintf(&d.text, " (%d/%d/%d)", n.arch(), n.vendor(), n.generation())
	case PCI:
		fmt.Fprintf(&d.text, " (%x)", n.Device)
	}
	d.text.WriteString("\n")
	indent += strings.Repeat(" ", len(lead))
	for _, l := range n.Out {
		link := d.Links[l]
		lead := fmt.Sprintf("+ %v[%.1f] - ", link.Type, link.Rate/units.GBps)
		to := d.Nodes[link.To]
		switch {
		case link.Type == LinkPCI && link.To == up:
		case link.Type == LinkPCI:
			d.tree(link.To, node, indent, lead)
		default:
			d.text.WriteString(indent + lead + d.Label(link.To))
			if to.Type == NET {
				coll := 0
				if to.Coll {
					coll = 1
				}
				fmt.Fprintf(&d.text, " (%d/%x/%d/%f)", coll, to.ASIC, to.Port, link.Rate/units.GBps)
			}
			d.text.WriteString("\n")
		}
	}
}

// paths writes the paths from a node to all those that paths are known to.
func (d *dump) paths(from int) {
	fmt.Fprintf(&d.text, "%s :", d.Label(from))
	for t := GPU; t <= NET; t++ {
		ends := d.Of(t)
		known := t != PCI && t != NIC && (t != NVS || d.Nodes[from].Type == GPU)
		for _, to := range ends {
			if known {
				p := d.Path(from, to)
				fmt.Fprintf(&d.text, "%s (%d/%.1f/%v) ", d.Label(to), len(p.Links), p.Rate/units.GBps, p.Type)
			}
		}
	}
	d.text.WriteString("\n")
}

// MaxRate is that of the best path that leaves a GPU: to a NET or, where there is
// none, to another GPU. It is what a single channel can have at the most (NCCL
// 2.28.3, search.cc, ncclTopoSearchInit).
func (s *System) MaxRate() units.Rate {
	if len(s.NETs) == 0 && len(s.GPUs) == 1 {
		return rateOnDie
	}
	ends := s.NETs
	if len(ends) == 0 {
		ends = s.GPUs
	}
	var rate units.Rate
	for _, g := range s.GPUs {
		for _, end := range ends {
			if p := s.Path(g, end); len(p.Links) > 0 {
				rate = max(rate, p.Rate)
			}
		}
	}
	return rate
}

// TotalRate is what all channels can have together: the NVLinks, or the PCI link,
// of the GPU that has most (NCCL 2.28.3, search.cc, ncclTopoSearchInit).
func (s *System) TotalRate() units.Rate {
	if len(s.NETs) == 0 && len(s.GPUs) == 1 {
		return rateOnDie
	}
	var rate units.Rate
	for _, g := range s.GPUs {
		var nvlink, pci units.Rate
		for _, l := range s.Nodes[g].Out {
			switch link := s.Links[l]; link.Type {
			case LinkNVL:
				nvlink += link.Rate
			case LinkPCI:
				pci = link.Rate
			}
		}
		rate = max(rate, nvlink, pci)
	}
	return rate
}
