package topo

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"tutti/model/units"
)

// Limits that keep a hostile file from taking memory or time: the largest real
// dump seen, 8 GPUs with 32 NICs, has 150 elements in 15 kB.
const (
	maxFileBytes = 4 << 20
	maxElements  = 1 << 14
	maxDepth     = 64
	maxLinks     = 1024 // NVLinks of one element
)

// ReadFile reads the NCCL topology XML in the named file.
func ReadFile(file string) (*System, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadXML(f, file)
}

// ReadXML reads an NCCL topology XML, the format that NCCL_TOPO_DUMP_FILE
// writes; name stands for the file in errors and becomes the system's. It
// understands the elements system, cpu, pci, gpu, nvlink, c2c, nic and net and
// skips others, as NCCL does. GPUs and NETs are numbered in the file's order.
//
// An error names file, line and element: text that is not XML, another root
// element, a missing or absurd attribute, a bus id that stands twice, an NVLink
// to a GPU that is not there, a machine without a GPU, two GPUs without a path.
func ReadXML(r io.Reader, name string) (*System, error) {
	x := &xmlReader{file: name, system: &System{Name: name, NVS: -1}, byBus: map[string]int{}}
	root, err := x.parse(r)
	if err != nil {
		return nil, err
	}
	x.build(root)
	if x.err != nil {
		return nil, x.err
	}
	return x.system, nil
}

// element is an XML element with the line that it starts on.
type element struct {
	name     string
	attrs    map[string]string
	children []*element
	line     int
}

// xmlReader turns elements into a system. The first fault is kept in err and
// the rest of the work is then void, which spares a check after every step.
type xmlReader struct {
	file   string
	system *System
	byBus  map[string]int // GPU nodes by bus id
	cpus   []cpuModel     // beside system.CPUs
	hosts  []string       // likewise
	links  []func()       // NVLinks, added once every GPU is known
	err    error
}

func (x *xmlReader) fail(line int, format string, args ...any) {
	if x.err == nil {
		x.err = fmt.Errorf("%s:%d: %s", x.file, line, fmt.Sprintf(format, args...))
	}
}

// parse reads the text into a tree of elements.
func (x *xmlReader) parse(r io.Reader) (*element, error) {
	limited := &io.LimitedReader{R: r, N: maxFileBytes + 1}
	decoder := xml.NewDecoder(limited)
	holder := &element{}
	open := []*element{holder}
	for count := 0; ; {
		token, err := decoder.Token()
		line, _ := decoder.InputPos()
		if limited.N <= 0 || count > maxElements || len(open) > maxDepth {
			return nil, fmt.Errorf("%s:%d: too large for a topology: want at most %d MiB, %d elements and %d levels", x.file, line, maxFileBytes>>20, maxElements, maxDepth)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if errors.As(err, new(*fs.PathError)) {
			return nil, err
		}
		if err != nil {
			reason := err.Error()
			if syntax := (*xml.SyntaxError)(nil); errors.As(err, &syntax) {
				reason = syntax.Msg
			}
			return nil, fmt.Errorf("%s:%d: not XML: %s", x.file, line, reason)
		}
		switch t := token.(type) {
		case xml.StartElement:
			e := &element{name: t.Name.Local, attrs: map[string]string{}, line: line}
			for _, a := range t.Attr {
				e.attrs[a.Name.Local] = a.Value
			}
			parent := open[len(open)-1]
			parent.children = append(parent.children, e)
			open = append(open, e)
			count++
		case xml.EndElement:
			open = open[:len(open)-1]
		}
	}
	if len(holder.children) != 1 || holder.children[0].name != "system" {
		return nil, fmt.Errorf("%s: not an NCCL topology: want one <system> element at the top", x.file)
	}
	return holder.children[0], nil
}

// build makes the graph: CPUs with the PCI trees below them, then NVLinks, then
// the links between CPUs.
func (x *xmlReader) build(root *element) {
	if v := x.text(root, "version"); v != "1" && x.err == nil {
		x.fail(root.line, "<system> has version %q: want 1, as NCCL writes it (RCCL's version 2 is not read)", v)
	}
	for _, e := range root.children {
		if e.name == "cpu" {
			x.cpu(e)
		}
	}
	for _, add := range x.links {
		add()
	}
	s := x.system
	for i, a := range s.CPUs {
		for j, b := range s.CPUs {
			if i != j && x.hosts[i] == x.hosts[j] {
				s.link(LinkSYS, a, b, x.cpus[i].sysRate())
			}
		}
	}
	if x.err != nil {
		return
	}
	if len(s.GPUs) == 0 {
		x.fail(root.line, "no <gpu> element: want a complete dump (NCCL_TOPO_DUMP_FILE), not a PCI template")
		return
	}
	s.computePaths()
	for _, a := range s.GPUs {
		for _, b := range s.GPUs {
			if s.Path(a, b).Type == PathDIS {
				x.fail(root.line, "no path from GPU %s to GPU %s", s.Nodes[a].Name, s.Nodes[b].Name)
			}
		}
	}
}

func (x *xmlReader) cpu(e *element) {
	m := cpuModel{arch: x.text(e, "arch")}
	if m.arch == "x86_64" {
		m.vendor = x.text(e, "vendor")
		if m.vendor == "GenuineIntel" {
			m.family, m.model = x.int(e, "familyid", 0, 1<<16), x.int(e, "modelid", 0, 1<<16)
		}
	}
	node := x.system.addNode(Node{Type: CPU, Name: x.text(e, "numaid"), Vendor: m.vendor})
	x.cpus = append(x.cpus, m)
	x.hosts = append(x.hosts, e.attrs["host_hash"])
	for _, child := range e.children {
		switch child.name {
		case "pci":
			x.pci(child, node)
		case "nic":
			nic := x.system.addNode(Node{Type: NIC, Name: "cpu"})
			x.system.connect(LinkPCI, node, nic, rateOnDie)
			x.nic(child, nic)
		}
	}
}

func (x *xmlReader) pci(e *element, parent int) {
	bus := x.text(e, "busid")
	if _, twice := x.byBus[bus]; twice {
		x.fail(e.line, "bus id %s stands twice", bus)
	}
	n := Node{Type: PCI, Name: bus}
	var device *element
	for _, child := range e.children {
		if child.name == "gpu" || child.name == "nic" {
			device = child
			n.Type = map[string]NodeType{"gpu": GPU, "nic": NIC}[child.name]
			break
		}
	}
	if n.Type == GPU {
		n.SM = x.int(device, "sm", 10, 1000)
	} else if n.Type == PCI && len(e.children) == 0 {
		return // a device that takes no part
	}
	node := x.system.addNode(n)
	x.byBus[bus] = node
	x.system.connect(LinkPCI, node, parent, pciRate(x.text(e, "link_speed"), x.int(e, "link_width", 0, 64)))
	switch n.Type {
	case GPU:
		x.gpu(device, node, parent)
	case NIC:
		x.nic(device, node)
	default:
		for _, child := range e.children {
			if child.name == "pci" {
				x.pci(child, node)
			}
		}
	}
}

// gpu notes the NVLinks and C2C links of a GPU.
func (x *xmlReader) gpu(e *element, node, parent int) {
	for _, child := range e.children {
		switch child.name {
		case "nvlink":
			count := x.int(child, "count", 1, maxLinks)
			class, target := x.text(child, "tclass"), child.attrs["target"]
			rate := nvlinkRate(x.system.Nodes[node].SM) * units.Rate(count)
			x.links = append(x.links, func() { x.nvlink(child, node, class, target, rate) })
		case "c2c":
			rate := units.MBps * units.Rate(x.int(child, "bw", 1, 1<<30)) * units.Rate(x.int(child, "count", 1, maxLinks))
			if x.system.Nodes[parent].Type == CPU {
				x.system.connect(LinkC2C, node, parent, rate)
			}
		}
	}
}

// nvlink adds the links of one nvlink element. A target that is neither GPU nor
// CPU is an NVSwitch, also where a virtual machine hides its bus id.
func (x *xmlReader) nvlink(e *element, node int, class, target string, rate units.Rate) {
	s := x.system
	switch {
	case strings.HasPrefix(class, "0x03"):
		peer, found := x.byBus[target]
		if !found || s.Nodes[peer].Type != GPU || peer == node {
			x.fail(e.line, "<nvlink> of GPU %s has target %q: want the bus id of another GPU", s.Nodes[node].Name, target)
			return
		}
		s.link(LinkNVL, node, peer, rate)
	case class == "0x068001": // Power: NVLink to the CPU
		s.connect(LinkNVL, node, s.CPUs[0], rate)
	default:
		if s.NVS < 0 {
			s.NVS = s.addNode(Node{Type: NVS, Name: "0"})
		}
		s.connect(LinkNVL, node, s.NVS, rate)
	}
}

func (x *xmlReader) nic(e *element, node int) {
	for _, child := range e.children {
		if _, used := child.attrs["dev"]; child.name != "net" || !used {
			continue
		}
		speed := netDefaultMbps
		if _, stated := child.attrs["speed"]; stated {
			if v := x.int(child, "speed", -1, 1<<30); v > 0 {
				speed = v
			}
		}
		net := x.system.addNode(Node{Type: NET, Name: child.attrs["name"]})
		x.system.connect(LinkNET, node, net, units.Mbps*units.Rate(speed))
	}
}

// text returns an attribute that must be there.
func (x *xmlReader) text(e *element, attr string) string {
	v, found := e.attrs[attr]
	if !found {
		x.fail(e.line, "<%s> lacks %s", e.name, attr)
	}
	return v
}

// int returns an attribute that must be a whole number from lo to hi.
func (x *xmlReader) int(e *element, attr string, lo, hi int) int {
	v := x.text(e, attr)
	n, err := strconv.Atoi(v)
	if err != nil || n < lo || n > hi {
		x.fail(e.line, "<%s> has %s=%q: want a whole number from %d to %d", e.name, attr, v, lo, hi)
		return lo
	}
	return n
}
