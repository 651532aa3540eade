// Package live reads the topology of this host, in the way and the form of NCCL:
// GPUs and NVLinks from NVML, PCI switches, NICs and CPUs from sysfs. In a
// virtual machine, which hides much of this, it finds what NCCL finds.
//
// The rules are those of NCCL 2.28 (src/graph/xml.cc).
package live

import (
	"bufio"
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"

	"tutti/topo"
)

// GPU is what NVML tells about a GPU.
type GPU struct {
	// BusID is the PCI address, as sysfs writes it.
	BusID string
	// SM is the compute capability times ten.
	SM int
	// NVLinks are the bus ids of what is at the far end of each link.
	NVLinks []string
}

// Machine reads this host.
func Machine() (*topo.System, error) {
	text, err := XML()
	if err != nil {
		return nil, err
	}
	return topo.ReadXML(bytes.NewReader(text), "live")
}

// XML reads this host and writes NCCL's topology XML.
func XML() ([]byte, error) {
	gpus, err := readGPUs()
	if err != nil {
		return nil, err
	}
	return write(host{root: "/", gpus: gpus})
}

// element is an XML element.
type element struct {
	name     string
	attrs    []xml.Attr
	children []*element
}

func (e *element) set(name string, value any) {
	e.attrs = append(e.attrs, xml.Attr{Name: xml.Name{Local: name}, Value: fmt.Sprint(value)})
}

func (e *element) get(name string) string {
	for _, a := range e.attrs {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

func (e *element) add(name string) *element {
	child := &element{name: name}
	e.children = append(e.children, child)
	return child
}

// MarshalXML writes the element.
func (e *element) MarshalXML(to *xml.Encoder, _ xml.StartElement) error {
	start := xml.StartElement{Name: xml.Name{Local: e.name}, Attr: e.attrs}
	if err := to.EncodeToken(start); err != nil {
		return err
	}
	for _, child := range e.children {
		if err := to.Encode(child); err != nil {
			return err
		}
	}
	return to.EncodeToken(start.End())
}

// host is where the facts come from.
type host struct {
	root   string // of the file system: / but in tests
	gpus   []GPU
	system *element
}

// write builds the tree in NCCL's order: the first GPU, the NICs, the other GPUs.
func write(h host) ([]byte, error) {
	if len(h.gpus) == 0 {
		return nil, errors.New("no GPU on this host: nvidia-smi -L lists them")
	}
	h.system = &element{name: "system"}
	h.system.set("version", 1)
	for i, g := range h.gpus {
		if err := h.gpu(i, g); err != nil {
			return nil, err
		}
		if i == 0 {
			if err := h.nics(); err != nil {
				return nil, err
			}
		}
	}
	var out bytes.Buffer
	encoder := xml.NewEncoder(&out)
	encoder.Indent("", "  ")
	if err := encoder.Encode(h.system); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// read returns the text of a file, or nothing: what a virtual machine hides is
// not there.
func (h *host) read(elem ...string) string {
	text, err := os.ReadFile(filepath.Join(append([]string{h.root}, elem...)...))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

func (h *host) gpu(index int, g GPU) error {
	pci, err := h.pci(h.device(g.BusID), g.BusID)
	if err != nil {
		return err
	}
	gpu := pci.add("gpu")
	gpu.set("dev", index)
	gpu.set("sm", g.SM)
	gpu.set("rank", index)
	gpu.set("gdr", 1)
	links := map[string]*element{}
	count := map[string]int{}
	for _, far := range g.NVLinks {
		if links[far] == nil {
			links[far] = gpu.add("nvlink")
		}
		count[far]++
	}
	for far, link := range links {
		link.set("target", far)
		link.set("count", count[far])
		class := h.read("sys/bus/pci/devices", busID(far), "class")
		if class == "" {
			class = "0x068000" // a switch that a virtual machine hides
		}
		link.set("tclass", class)
	}
	return nil
}

// device returns the folder of a PCI device, without the root: "" if sysfs does
// not have it.
func (h *host) device(bus string) string {
	path, err := filepath.EvalSymlinks(filepath.Join(h.root, "sys/bus/pci/devices", bus))
	if err != nil {
		return ""
	}
	return h.inside(path)
}

func (h *host) inside(path string) string {
	root, err := filepath.EvalSymlinks(h.root)
	if err != nil {
		return path
	}
	return strings.TrimPrefix(strings.TrimPrefix(path, root), "/")
}

// address is a PCI address as sysfs writes it.
var address = regexp.MustCompile(`^[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]$`)

// pci returns the element of a device, made with those above it if need be. A
// PCI switch is two bridges in sysfs and one element here.
func (h *host) pci(path, bus string) (*element, error) {
	if e := find(h.system, "pci", "busid", bus); e != nil {
		return e, nil
	}
	parent, err := h.above(path)
	if err != nil {
		return nil, err
	}
	e := parent.add("pci")
	e.set("busid", bus)
	for _, attr := range []string{"class", "vendor", "device", "subsystem_vendor", "subsystem_device"} {
		if v := h.read(path, attr); v != "" {
			e.set(attr, v)
		}
	}
	speed, up := h.read(path, "max_link_speed"), h.read(path, "..", "max_link_speed")
	if gts(up) < gts(speed) {
		speed = up
	}
	e.set("link_speed", speed)
	e.set("link_width", min(number(h.read(path, "max_link_width")), number(h.read(path, "..", "max_link_width"))))
	return e, nil
}

// above returns the element that a device hangs below: a PCI switch two bridges
// up, or a CPU.
func (h *host) above(path string) (*element, error) {
	if path == "" {
		return h.cpu("-1")
	}
	up := path
	for range 2 {
		up = filepath.Dir(up)
		if !address.MatchString(filepath.Base(up)) {
			return h.cpu(h.read(path, "numa_node"))
		}
	}
	return h.pci(up, filepath.Base(up))
}

// gts reads a link's speed in gigatransfers a second; what is not known does not
// limit.
func gts(s string) float64 {
	v, err := strconv.ParseFloat(strings.Fields(s + " x")[0], 64)
	if err != nil {
		return 1e9
	}
	return v
}

// number reads a whole number; what is not known is 0, as in NCCL.
func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}

// cpu returns the element of a NUMA node.
func (h *host) cpu(node string) (*element, error) {
	if node == "" {
		node = "-1"
	}
	if e := find(h.system, "cpu", "numaid", node); e != nil {
		return e, nil
	}
	e := h.system.add("cpu")
	e.set("numaid", node)
	if map_ := h.read("sys/devices/system/node/node"+node, "cpumap"); map_ != "" {
		e.set("affinity", map_)
	}
	arch := map[string]string{"amd64": "x86_64", "arm64": "arm64", "ppc64le": "ppc64"}[runtime.GOARCH]
	e.set("arch", arch)
	if arch != "x86_64" {
		return e, nil
	}
	info := h.cpuinfo()
	e.set("vendor", info["vendor_id"])
	family, model := number(info["cpu family"]), number(info["model"])
	if family == 0 {
		return nil, errors.New("/proc/cpuinfo has no line \"cpu family\": want that of an x86 processor")
	}
	if family > 15 { // Linux adds the extended family, NCCL sets it beside
		family = 15 + (family-15)<<4
	}
	e.set("familyid", family)
	e.set("modelid", model)
	return e, nil
}

// cpuinfo returns the first processor's lines of /proc/cpuinfo.
func (h *host) cpuinfo() map[string]string {
	info := map[string]string{}
	lines := bufio.NewScanner(strings.NewReader(h.read("proc/cpuinfo")))
	for lines.Scan() && lines.Text() != "" {
		key, value, _ := strings.Cut(lines.Text(), ":")
		info[strings.TrimSpace(key)] = strings.TrimSpace(value)
	}
	return info
}

// find returns the element of a name below e that has an attribute's value.
func find(e *element, name, attr, value string) *element {
	if e.name == name && e.get(attr) == value {
		return e
	}
	for _, child := range e.children {
		if found := find(child, name, attr, value); found != nil {
			return found
		}
	}
	return nil
}
