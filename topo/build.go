package topo

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tutti/model/units"
	"tutti/topo/xmltree"
)

// maxNodes is how many nodes of each type a system may have (NCCL 2.28.3,
// src/graph/topo.h, NCCL_TOPO_MAX_NODES); maxLinks and maxLanes are how many
// NVLinks and lanes of PCI one element may stand for.
const (
	maxNodes = 576
	maxLinks = 1024
	maxLanes = 64
)

// build makes the system that a system element describes.
func build(root *xmltree.Element, name string) (*System, error) {
	b := &builder{
		Reader: xmltree.Reader{File: name},
		system: &System{Name: name, NVS: -1, source: root},
		nodes:  map[nodeKey]int{}, buses: map[nodeKey]int{}, ranks: map[int]int{}, hosts: map[uint64]int{},
	}
	b.build(root)
	if b.Err != nil {
		return nil, b.Err
	}
	return b.system, nil
}

// nodeKey is what NCCL tells the nodes of a type apart by.
type nodeKey struct {
	t    NodeType
	host int
	id   uint64
}

// builder turns elements into a system (NCCL 2.28.3, src/graph/topo.cc,
// ncclTopoGetSystemFromXml).
type builder struct {
	xmltree.Reader
	system *System
	nodes  map[nodeKey]int
	buses  map[nodeKey]int // the line of each bus id
	ranks  map[int]int     // of GPU nodes
	hosts  map[uint64]int  // by host_hash

	count  [NET + 1]int // of nodes by type
	ranked bool         // some GPU states its rank
	oneWay []oneWay

	nvlinks, c2c, pcilinks []func() // added in this order once all nodes are there
}

// oneWay is an NVLink that needs its other direction.
type oneWay struct{ link, line int }

func (b *builder) build(root *xmltree.Element) {
	if v := b.Text(root, "version"); v != "1" && v != "2" {
		b.Fail(root.Line, "<system> has version %q: want 1, as NCCL writes it, or RCCL's 2", v)
	}
	b.needGPUs(root)
	if b.Err != nil {
		return
	}
	for _, e := range root.Children {
		if e.Name == "cpu" {
			b.cpu(e)
		}
	}
	for _, add := range slices.Concat(b.nvlinks, b.c2c, b.pcilinks) {
		add()
	}
	if b.Err != nil {
		return
	}
	s := b.system
	for _, l := range b.oneWay {
		if s.Reverse(l.link) < 0 {
			link := s.Links[l.link]
			b.Fail(l.line, "<nvlink> from GPU %s to %s has no counterpart in the other direction", s.Nodes[link.From].Name, s.Nodes[link.To].Name)
			return
		}
	}
	slices.SortFunc(s.GPUs, func(a, c int) int { return cmp.Compare(b.ranks[a], b.ranks[c]) })
	s.flattenSwitches()
	for _, cpu := range s.CPUs {
		for _, other := range s.CPUs {
			if cpu != other && s.Nodes[cpu].Host == s.Nodes[other].Host {
				s.link(LinkSYS, cpu, other, s.Nodes[cpu].sysRate())
			}
		}
	}
	for _, cpu := range s.CPUs {
		s.sortLinks(cpu, -1)
	}
	s.computePaths()
	for _, a := range s.GPUs {
		for _, c := range s.GPUs {
			if s.Path(a, c).Type >= PathNET {
				b.Fail(root.Line, "no path from GPU %s to GPU %s", s.Nodes[a].Name, s.Nodes[c].Name)
			}
		}
	}
}

// needGPUs refuses a file in which no GPU takes part. Clouds publish such
// templates of a machine's PCI devices, which a running NCCL completes with the
// GPUs, NVLinks and NICs that it detects.
func (b *builder) needGPUs(root *xmltree.Element) {
	gpus, slots, ports := 0, 0, 0
	root.Each(func(e *xmltree.Element) {
		class, _ := e.Attr("class")
		switch {
		case e.Name == "gpu":
			gpus++
			_, ranked := e.Attr("rank")
			b.ranked = b.ranked || ranked
		case e.Name == "pci" && strings.HasPrefix(class, "0x03"):
			slots++
		case e.Name == "pci" && strings.HasPrefix(class, "0x02"):
			ports++
		}
	})
	switch {
	case gpus > 0:
	case slots+ports > 0:
		b.Fail(root.Line, "no <gpu> element, though %d PCI devices have the class of a GPU and %d that of a NIC: this is a template that NCCL completes at run time; want what it dumps then (NCCL_TOPO_DUMP_FILE), or a built-in machine", slots, ports)
	default:
		b.Fail(root.Line, "no <gpu> element: want a complete dump (NCCL_TOPO_DUMP_FILE), not a PCI template")
	}
}

// place is where in the file an element stands.
type place struct {
	host, cpu, parent int
}

func (b *builder) cpu(e *xmltree.Element) {
	hash := b.Hex(e, "host_hash")
	host, known := b.hosts[hash]
	if !known {
		host = len(b.hosts)
		b.hosts[hash] = host
	}
	numa := b.Int(e, "numaid", -1, 1<<16)
	n := Node{Type: CPU, Name: fmt.Sprint(numa), Host: host, ID: uint64(numa) & (1<<56 - 1), Arch: b.Text(e, "arch")}
	if n.Arch == ArchX86 {
		n.Vendor = b.Text(e, "vendor")
		if n.vendor() == 1 || n.vendor() == 3 {
			n.Family, n.Model = b.Int(e, "familyid", 0, 1<<16), b.Int(e, "modelid", 0, 1<<16)
		}
	} else if n.arch() == 0 {
		b.Fail(e.Line, "<cpu> has arch=%q: want %s, %s or %s", n.Arch, ArchX86, ArchARM, ArchPower)
	}
	if _, twice := b.nodes[nodeKey{CPU, host, n.ID}]; twice {
		b.Fail(e.Line, "numaid %d stands twice on one host", numa)
	}
	node := b.add(e, n)
	at := place{host, node, node}
	for _, child := range e.Children {
		switch child.Name {
		case "pci":
			b.pci(child, at)
		case "nic": // without a bus id: all of a host count as one
			nic, found := b.nodes[nodeKey{NIC, host, 0}]
			if !found {
				nic = b.add(e, Node{Type: NIC, Name: "cpu", Host: host})
				b.system.connect(LinkPCI, node, nic, rateOnDie)
			}
			b.nets(child, nic)
		}
	}
}

func (b *builder) pci(e *xmltree.Element, at place) {
	n := Node{Type: pciClass(e), Name: b.Text(e, "busid"), Host: at.host, ID: b.busID(e, "busid")}
	bus := nodeKey{host: at.host, id: n.ID}
	if line, twice := b.buses[bus]; twice {
		b.Fail(e.Line, "bus id %s stands twice, first in line %d", n.Name, line)
	}
	b.buses[bus] = e.Line
	gpu, nic := e.Child("gpu"), e.Child("nic")
	if gpu != nil {
		if _, ranked := gpu.Attr("rank"); b.ranked && !ranked {
			return // nobody's GPU
		}
		n.Type = GPU
	} else if nic != nil {
		n.Type = NIC
	}
	switch {
	case gpu == nil && n.Type == GPU, nic == nil && n.Type == NIC, n.Type == NVS, n.Type == CPU:
		return // a device that takes no part; NVSwitches are known by their NVLinks
	case n.Type == GPU:
		n.SM, n.GDR = b.Int(gpu, "sm", 10, 1000), b.IntOr(gpu, "gdr", 0, 1, 1) == 1
		if _, amd := gpu.Attr("gcn"); amd {
			n.SM = smOfAMD
		}
	case n.Type == PCI:
		for i, part := range []string{"subsystem_device", "subsystem_vendor", "device", "vendor"} {
			n.Device |= b.Hex(e, part) & 0xffff << (16 * i)
		}
	}
	node := b.add(e, n)
	b.system.connect(LinkPCI, node, at.parent, pciRate(b.Text(e, "link_speed"), b.Int(e, "link_width", 0, maxLanes)))
	at.parent = node
	switch n.Type {
	case GPU:
		b.gpu(gpu, node, at)
	case NIC:
		b.nets(nic, node)
	default:
		for _, child := range e.Children {
			switch child.Name {
			case "pci":
				b.pci(child, at)
			case "pcilink":
				b.pcilink(child, node)
			}
		}
	}
}

// smOfAMD stands for the compute capability that AMD's GPUs do not have. It
// gives them the tables of NCCL's GPUs before Hopper.
const smOfAMD = 80

// pciClass is what the class of a pci element says that the device is (NCCL
// 2.28.3, topo.cc, kvDictPciClass). What is not known counts as a switch.
func pciClass(e *xmltree.Element) NodeType {
	class, _ := e.Attr("class")
	return classType(class)
}

func classType(class string) NodeType {
	for _, c := range []struct {
		prefix string
		t      NodeType
	}{{"0x068000", NVS}, {"0x068001", CPU}, {"0x03", GPU}, {"0x02", NIC}} {
		if strings.HasPrefix(class, c.prefix) {
			return c.t
		}
	}
	return PCI
}

// gpu notes the rank and the NVLinks, XGMI and C2C links of a GPU.
func (b *builder) gpu(e *xmltree.Element, node int, at place) {
	s := b.system
	// The process that owns a GPU gives it its rank and device; a file may lack them.
	rank := b.IntOr(e, "rank", 0, 1<<30, len(s.GPUs)-1)
	for other, r := range b.ranks {
		if r == rank {
			b.Fail(e.Line, "<gpu> has rank %d, which GPU %s has", rank, s.Nodes[other].Name)
		}
	}
	b.ranks[node] = rank
	s.Nodes[node].Dev = b.IntOr(e, "dev", 0, 1<<16, len(s.GPUs)-1)
	for _, child := range e.Children {
		switch child.Name {
		case "nvlink":
			rate := nvlinkRate(s.Nodes[node].SM) * units.Rate(b.Int(child, "count", 1, maxLinks))
			class := b.Text(child, "tclass")
			b.nvlinks = append(b.nvlinks, func() { b.nvlink(child, node, at, classType(class), rate) })
		case "xgmi":
			gcn, _ := e.Attr("gcn")
			rate := xgmiRate(gcn) * units.Rate(b.Int(child, "count", 1, maxLinks))
			b.nvlinks = append(b.nvlinks, func() { b.nvlink(child, node, at, GPU, rate) })
		case "c2c":
			rate := units.MBps * units.Rate(b.Int(child, "bw", 1, 1<<30)) * units.Rate(b.Int(child, "count", 1, maxLinks))
			b.c2c = append(b.c2c, func() { s.connect(LinkC2C, node, at.cpu, rate) })
		}
	}
}

// nvlink adds the links of one nvlink element: to a GPU, which has an element of
// its own for the way back; on Power to the CPU; else to the NVSwitch, also where
// a virtual machine hides its bus id.
func (b *builder) nvlink(e *xmltree.Element, node int, at place, to NodeType, rate units.Rate) {
	s := b.system
	switch to {
	case GPU:
		target := b.busID(e, "target")
		peer, found := b.nodes[nodeKey{GPU, at.host, target}]
		if _, idle := b.buses[nodeKey{host: at.host, id: target}]; !found && idle {
			return
		}
		if !found {
			target, _ := e.Attr("target")
			b.Fail(e.Line, "<%s> of GPU %s has target %q: want the bus id of a GPU", e.Name, s.Nodes[node].Name, target)
			return
		}
		b.oneWay = append(b.oneWay, oneWay{s.link(LinkNVL, node, peer, rate), e.Line})
	case CPU:
		s.connect(LinkNVL, node, at.cpu, rate)
	default:
		if s.NVS < 0 {
			s.NVS = b.add(e, Node{Type: NVS, Name: "0"})
		}
		s.connect(LinkNVL, node, s.NVS, rate)
	}
}

// pcilink notes a link from a PCI switch sideways to another.
func (b *builder) pcilink(e *xmltree.Element, node int) {
	s := b.system
	target := b.busID(e, "target")
	b.pcilinks = append(b.pcilinks, func() {
		peer, found := b.nodes[nodeKey{PCI, s.Nodes[node].Host, target}]
		if !found {
			b.Fail(e.Line, "<pcilink> of PCI switch %s has target %q: want the bus id of another PCI switch", s.Nodes[node].Name, b.Text(e, "target"))
			return
		}
		s.link(LinkLOC, node, peer, rateOnDie)
	})
}

func (b *builder) nets(e *xmltree.Element, nic int) {
	s := b.system
	for _, child := range e.Children {
		if _, used := child.Attr("dev"); child.Name != "net" || !used {
			continue
		}
		n := Node{Type: NET, Name: "net", Host: s.Nodes[nic].Host, Dev: b.Int(child, "dev", 0, 1<<16)}
		n.ID, n.ASIC = uint64(n.Dev), uint64(n.Dev)
		if name, named := child.Attr("name"); named {
			n.Name = name
		}
		if _, stated := child.Attr("guid"); stated {
			n.ASIC = b.Hex(child, "guid")
		}
		n.Port = b.IntOr(child, "port", 0, 1<<16, 0)
		n.Latency = units.FromMicroseconds(b.FloatOr(child, "latency", 0, 1e6, 0))
		n.GDR = b.IntOr(child, "gdr", 0, 1, 0) == 1
		n.Coll = b.IntOr(child, "coll", 0, 1, 0) == 1
		speed := b.IntOr(child, "speed", -1, 1<<30, 0)
		if speed <= 0 {
			speed = netDefaultMbps
		}
		if _, twice := b.nodes[nodeKey{NET, n.Host, n.ID}]; twice {
			b.Fail(child.Line, "<net> has dev %d, which another has on the same host", n.Dev)
		}
		s.connect(LinkNET, nic, b.add(e, n), units.Mbps*units.Rate(speed))
	}
}

// add appends the node that an element stands for and returns its index.
func (b *builder) add(e *xmltree.Element, n Node) int {
	s := b.system
	id := len(s.Nodes)
	if b.count[n.Type]++; b.count[n.Type] > maxNodes {
		b.Fail(e.Line, "more than %d nodes of type %v, which NCCL does not take", maxNodes, n.Type)
	}
	if list := map[NodeType]*[]int{GPU: &s.GPUs, NET: &s.NETs, CPU: &s.CPUs}[n.Type]; list != nil {
		*list = append(*list, id)
	}
	s.Nodes = append(s.Nodes, n)
	b.nodes[nodeKey{n.Type, n.Host, n.ID}] = id
	return id
}

// busID returns an attribute that is a PCI bus id, as in 0000:1b:00.0.
func (b *builder) busID(e *xmltree.Element, attr string) uint64 {
	v := b.Text(e, attr)
	id, err := parseBusID(v)
	if err != nil {
		b.Fail(e.Line, "<%s> has %s=%q: want a PCI bus id, as in 0000:1b:00.0", e.Name, attr, v)
	}
	return id
}

// parseBusID returns a PCI bus id as the number that its digits make (NCCL
// 2.28.3, utils.cc, busIdToInt64).
func parseBusID(text string) (uint64, error) {
	return strconv.ParseUint(strings.NewReplacer(":", "", ".", "", "-", "").Replace(text), 16, 56)
}
