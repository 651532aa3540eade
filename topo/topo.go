// Package topo describes machines and clusters as graphs: GPUs, NVSwitches,
// PCI switches, CPUs, NICs and their ports as nodes, joined by typed links.
//
// A [System] is one machine. It is read from an NCCL topology XML, the file
// that NCCL_TOPO_DUMP_FILE writes, or taken from the machines that are built
// in ([Open]). A [Cluster] is a number of machines, equal or of several kinds, joined
// by rails of leaf switches and a spine; it stores next to nothing per node, so
// that its size is free.
//
// Types, rates and path rules follow NCCL 2.28.3 (src/graph/topo.h, topo.cc,
// paths.cc, xml.cc), so that a machine looks here as NCCL sees it. Package
// search finds the channels of rings and trees on it.
package topo

import (
	"slices"

	"tutti/model/units"
	"tutti/topo/xmltree"
)

// NodeType tells what a node of the graph is.
type NodeType int

// The node types, with NCCL's names. All NVSwitches of a machine are one node,
// whose capacity is the sum of theirs; a CPU is one NUMA node; a NET is one
// port of a NIC.
const (
	GPU NodeType = iota
	PCI
	NVS
	CPU
	NIC
	NET
)

func (t NodeType) String() string {
	return [...]string{"GPU", "PCI", "NVS", "CPU", "NIC", "NET"}[t]
}

// LinkType tells what a link is made of.
type LinkType int

// The link types. Values are NCCL's, and equal those of the [PathType] that a
// path over one such link has.
const (
	LinkLOC LinkType = 0 // between PCI switches, sideways
	LinkNVL LinkType = 1
	LinkC2C LinkType = 3
	LinkPCI LinkType = 4
	LinkSYS LinkType = 9  // between the CPUs of one host
	LinkNET LinkType = 10 // NIC to port, and the cables and trunks of a fabric
)

func (t LinkType) String() string {
	switch t {
	case LinkLOC:
		return "LOC"
	case LinkNVL:
		return "NVL"
	case LinkC2C:
		return "C2C"
	case LinkPCI:
		return "PCI"
	case LinkSYS:
		return "SYS"
	default:
		return "NET"
	}
}

// PathType ranks a path by its weakest part, best first.
type PathType int

// The path types, with NCCL's names and order.
const (
	PathLOC PathType = iota // the same node
	PathNVL                 // NVLink, through a switch or not
	PathNVB                 // NVLink through another GPU
	PathC2C                 // chip to chip
	PathPIX                 // at most one PCI switch
	PathPXB                 // several PCI switches
	PathP2C                 // C2C, then PCI
	PathPXN                 // through another GPU that is near the NIC
	PathPHB                 // through a CPU
	PathSYS                 // between CPUs
	PathNET                 // through the network
	PathDIS                 // not connected
)

func (t PathType) String() string {
	return [...]string{"LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS", "NET", "DIS"}[t]
}

// Node is a part of a machine.
type Node struct {
	Type NodeType
	// Name is the bus id of a GPU, PCI switch or NIC, the NUMA id of a CPU and
	// the device name of a NET.
	Name string
	// Host counts the hosts of a multi-node NVLink domain from 0; ID is the
	// number of the node among those of its type on its host. It is the bus id
	// read as one hexadecimal number, the NUMA id of a CPU, and a NET's Dev.
	Host int
	ID   uint64
	// Dev is the NVML index of a GPU, and what the network plugin calls a NET.
	Dev int
	// GDR says that a GPU, or a NET, can take part in GPUDirect RDMA.
	GDR bool
	// SM is the compute capability of a GPU, times ten: 90 for Hopper.
	SM int
	// Arch, Vendor, Family and Model are those of a CPU, as the processor states
	// them: x86_64, GenuineIntel, 6, 143.
	Arch, Vendor  string
	Family, Model int
	// Device is what a PCI switch is: vendor, device, subsystem vendor and
	// subsystem device, of 16 bits each.
	Device uint64
	// ASIC tells the chip of a NET and Port which of its ports it is: those that
	// have both in common share one cable.
	ASIC uint64
	Port int
	// Latency is what a NET adds to a message.
	Latency units.Time
	// Coll says that collectives run in the network behind a NET (CollNet).
	Coll bool
	// Out lists the links that leave the node, best first, as indexes into
	// [System.Links].
	Out []int
}

// Link is one direction of a connection between two nodes.
type Link struct {
	Type LinkType
	// From and To are indexes into [System.Nodes].
	From, To int
	// Rate is what the link carries in this direction.
	Rate units.Rate
}

// System is one machine, or the machines of one multi-node NVLink domain. It is
// not changed once built, and is safe for concurrent use.
type System struct {
	// Name says which machine this is, as the user asked for it.
	Name  string
	Nodes []Node
	Links []Link
	// GPUs lists the GPU nodes by rank; NETs and CPUs list the nodes of these
	// types, in order; NVS is the NVSwitch node, or -1.
	GPUs, NETs, CPUs []int
	NVS              int

	settings Settings
	paths    [][]Path         // by base node (nil for PCI and NIC nodes), then by start
	near     []int            // by index of a NET: the GPU that has it as its own, or -1
	source   *xmltree.Element // what the system was read from
}

// SM returns the lowest compute capability, times ten, among the GPUs.
func (s *System) SM() int {
	sm := s.Nodes[s.GPUs[0]].SM
	for _, g := range s.GPUs {
		sm = min(sm, s.Nodes[g].SM)
	}
	return sm
}

// AMD tells whether the CPUs are AMD's x86 ones.
func (s *System) AMD() bool {
	cpu := s.Nodes[s.CPUs[0]]
	return cpu.Arch == ArchX86 && cpu.Vendor == VendorAMD
}

// Of lists the nodes of a type in the order in which NCCL counts them, which is
// that of the file. It differs from [System.GPUs] where ranks do.
func (s *System) Of(t NodeType) []int {
	switch t {
	case GPU:
		return slices.Sorted(slices.Values(s.GPUs))
	case NET:
		return s.NETs
	case CPU:
		return s.CPUs
	}
	var list []int
	for i, n := range s.Nodes {
		if n.Type == t {
			list = append(list, i)
		}
	}
	return list
}

// Reverse returns the link that runs opposite to the given one, or -1.
func (s *System) Reverse(link int) int {
	l := s.Links[link]
	for _, back := range s.Nodes[l.To].Out {
		if s.Links[back].To == l.From && s.Links[back].Type == l.Type {
			return back
		}
	}
	return -1
}
