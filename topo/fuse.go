package topo

import (
	"encoding/xml"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tutti/topo/xmltree"
)

// PathPort is the distance of two ports of one NIC, where NICs are fused. It is
// better than PIX.
const PathPort = PathNVL

// maxFused is how many ports a fused NIC has at the most (NCCL 2.28.3,
// NCCL_NET_MAX_DEVS_PER_NIC).
const maxFused = 4

// Fuse returns the system with ports that are no farther apart than level made
// one NET each, of four ports at most, as NCCL does where its network plugin lets
// it: by default the ports of a NIC (PathPort), else as NCCL_NET_MERGE_LEVEL says.
// A dump of NCCL's lists the ports one by one. Source: NCCL 2.28.3,
// src/graph/topo.cc, ncclTopoAutoMerge and ncclTopoMakeVnic.
//
// It fails if the level is neither PathLOC, which leaves all as it is, PathPort
// nor from PathPIX to PathSYS.
func (s *System) Fuse(level PathType) (*System, error) {
	if level < PathLOC || level > PathSYS || level > PathPort && level < PathPIX {
		return nil, fmt.Errorf("NICs cannot be fused at level %v: want LOC, PORT, PIX, PXB, P2C, PXN, PHB or SYS", level)
	}
	f := &fuser{root: clone(s.source), level: level}
	f.find(f.root, nil)
	f.next = 1 + slices.MaxFunc(append(f.ports, netPlace{dev: -1}), func(a, b netPlace) int { return a.dev - b.dev }).dev
	placed := make([]bool, len(f.ports))
	for i := range f.ports {
		if placed[i] {
			continue
		}
		group := []int{i}
		for j := range f.ports {
			if !placed[j] && j != i && len(group) < maxFused && f.distance(i, j) <= level {
				group = append(group, j)
			}
		}
		for _, j := range group {
			placed[j] = true
		}
		if len(group) > 1 {
			f.fuse(group)
		}
	}
	return build(f.root, s.Name)
}

// netPlace is a net element with those around it, from the root on.
type netPlace struct {
	net   *xmltree.Element
	above []*xmltree.Element
	dev   int
}

type fuser struct {
	root  *xmltree.Element
	level PathType
	ports []netPlace
	next  int // the number of the next device
}

func (f *fuser) find(e *xmltree.Element, above []*xmltree.Element) {
	if dev, used := e.Attr("dev"); e.Name == "net" && used {
		n, _ := strconv.Atoi(dev) // the system was built of it
		f.ports = append(f.ports, netPlace{e, slices.Clone(above), n})
	}
	for _, child := range e.Children {
		f.find(child, append(above, e))
	}
}

// distance is the type of what two ports have in common.
func (f *fuser) distance(i, j int) PathType {
	a, b := f.ports[i].above, f.ports[j].above
	depth := shared(a, b)
	switch common := a[depth-1]; {
	case common.Name == "nic", depth < len(a) && depth < len(b) && sameSlot(a[depth], b[depth]):
		return PathPort
	case common.Name == "system":
		return PathSYS
	case common.Name == "cpu":
		return PathPHB
	case len(a) == depth+2 && len(b) == depth+2: // pci and nic
		return PathPIX
	default:
		return PathPXB
	}
}

// shared counts the elements that two lists begin with alike.
func shared(a, b []*xmltree.Element) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// sameSlot tells whether two PCI devices differ in the function only.
func sameSlot(a, b *xmltree.Element) bool {
	x, _ := a.Attr("busid")
	y, _ := b.Attr("busid")
	return len(x) > 1 && len(x) == len(y) && x[:len(x)-1] == y[:len(y)-1]
}

// fuse puts one net in the place of several: into their NIC or, where that is not
// the same, into a NIC of its own where their ways meet.
func (f *fuser) fuse(group []int) {
	first := f.ports[group[0]]
	meet := first.above
	var names []string
	speed := 0
	for _, i := range group {
		p := f.ports[i]
		meet = meet[:shared(meet, p.above)]
		name, _ := p.net.Attr("name")
		names = append(names, name)
		rate, _ := p.net.Attr("speed")
		mbps, _ := strconv.Atoi(rate)
		if mbps <= 0 {
			mbps = netDefaultMbps
		}
		speed += mbps
		p.net.Attrs = slices.DeleteFunc(p.net.Attrs, func(a xml.Attr) bool { return a.Name.Local == "dev" })
	}
	fused := clone(first.net)
	for _, set := range [][2]string{{"name", strings.Join(names, "+")}, {"dev", strconv.Itoa(f.next)}, {"speed", strconv.Itoa(speed)}} {
		fused.Set(set[0], set[1])
	}
	f.next++
	place := meet[len(meet)-1]
	switch place.Name {
	case "nic":
	case "pci":
		slot := clone(first.above[len(first.above)-2]) // its PCI device
		slot.Children = nil
		slot.Set("busid", f.freeBus(slot))
		width, _ := slot.Attr("link_width")
		if lanes, _ := strconv.Atoi(width); lanes > 0 {
			slot.Set("link_width", strconv.Itoa(min(maxLanes, lanes*len(group))))
		}
		place = place.Add(slot).Add(xmltree.New("nic"))
	default: // a CPU, or the machine: the CPU of the first
		place = first.above[1].Add(xmltree.New("nic"))
	}
	place.Add(fused)
}

// freeBus is the first bus id after that of a device that nothing has.
func (f *fuser) freeBus(slot *xmltree.Element) string {
	used := map[uint64]bool{}
	f.root.Each(func(e *xmltree.Element) {
		if bus, found := e.Attr("busid"); found {
			id, _ := parseBusID(bus)
			used[id] = true
		}
	})
	bus, _ := slot.Attr("busid")
	id, _ := parseBusID(bus)
	for used[id] {
		id++
	}
	return fmt.Sprintf("%04x:%02x:%02x.%x", id>>20, id>>12&0xff, id>>4&0xff, id&0xf)
}

// clone copies an element and what it contains.
func clone(e *xmltree.Element) *xmltree.Element {
	c := &xmltree.Element{Name: e.Name, Attrs: slices.Clone(e.Attrs), Line: e.Line}
	for _, child := range e.Children {
		c.Add(clone(child))
	}
	return c
}
