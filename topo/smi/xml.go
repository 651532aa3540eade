package smi

import (
	"encoding/xml"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"tutti/model/units"
)

// Options say what the matrix does not.
type Options struct {
	// GPU is the kind of the GPUs, one of [GPUs]; if empty, NVLinks tell.
	GPU string
	// CPU is the kind of the CPUs, one of [CPUs]; if empty, what such GPUs mostly
	// come with.
	CPU string
	// NICs give the rates of NICs by their names; the first that matches counts.
	// NICs that none matches take no part; if there are none at all, every NIC
	// takes part at the rate that NCCL assumes.
	NICs []NICRate
}

// NICRate is the rate of the NICs whose name matches a pattern, as in path.Match.
type NICRate struct {
	Pattern string
	Rate    units.Rate
}

// defaultRate is what NCCL 2.28.3 assumes for a NIC of unknown speed.
const defaultRate = 10 * units.Gbps

// gpu is what a kind of GPU has.
type gpu struct {
	sm      int
	device  string // PCI device id
	speed   string // of PCI
	nvlinks int
	cpu     string // what such GPUs mostly come with
}

// Compute capability, PCI generation and NVLinks: NVIDIA's data sheets.
var gpus = map[string]gpu{
	"v100": {sm: 70, device: "0x1db5", speed: "8.0 GT/s PCIe", nvlinks: 6, cpu: "broadwell"},
	"a100": {sm: 80, device: "0x20b0", speed: "16.0 GT/s PCIe", nvlinks: 12, cpu: "amd"},
	"a10":  {sm: 86, device: "0x2236", speed: "16.0 GT/s PCIe", cpu: "icelake"},
	"l40":  {sm: 89, device: "0x26b5", speed: "16.0 GT/s PCIe", cpu: "icelake"},
	"h100": {sm: 90, device: "0x2330", speed: "32.0 GT/s PCIe", nvlinks: 18, cpu: "sapphire-rapids"},
	"h200": {sm: 90, device: "0x2335", speed: "32.0 GT/s PCIe", nvlinks: 18, cpu: "sapphire-rapids"},
	"b200": {sm: 100, device: "0x2901", speed: "32.0 GT/s PCIe", nvlinks: 18, cpu: "emerald-rapids"},
}

// cpus are the attributes of a cpu element.
var cpus = map[string]string{
	"broadwell":       `arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="79"`,
	"skylake":         `arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="85"`,
	"icelake":         `arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="106"`,
	"sapphire-rapids": `arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143"`,
	"emerald-rapids":  `arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="207"`,
	"amd":             `arch="x86_64" vendor="AuthenticAMD" familyid="25" modelid="1"`,
	"grace":           `arch="arm64" vendor="" familyid="0" modelid="0"`,
}

// GPUs lists the kinds of GPUs, sorted.
func GPUs() []string { return slices.Sorted(maps.Keys(gpus)) }

// GPU returns the compute capability, times ten, and the number of NVLinks of a
// kind of GPU.
func GPU(kind string) (sm, nvlinks int, known bool) {
	g, known := gpus[kind]
	return g.sm, g.nvlinks, known
}

// CPUs lists the kinds of CPUs, sorted.
func CPUs() []string { return slices.Sorted(maps.Keys(cpus)) }

// XML returns the machine as an NCCL topology XML, and what was assumed for want
// of anything better, each in one sentence. It fails for kinds that are not
// known, for GPUs whose kind neither options nor NVLinks tell, and for a pattern
// of names that is none.
func (m *Matrix) XML(o Options) (text []byte, assumed []string, err error) {
	w := &writer{matrix: m, options: o, rates: map[int]units.Rate{}, buses: map[int]string{}}
	if err := w.kinds(); err != nil {
		return nil, nil, err
	}
	if err := w.nics(); err != nil {
		return nil, nil, err
	}
	w.links()
	w.assume("PCI links are 16 lanes of %s, as its PCI generation has", w.gpu.speed)
	w.assume("devices that are PIX to each other share a PCI switch, and switches of devices that are PXB hang on one more")
	w.system()
	head := "<!--\n  From the output of nvidia-smi topo -m. Assumed, as it does not say:\n"
	for _, a := range w.assumed {
		head += "  " + strings.ReplaceAll(escape(a), "--", "- -") + ".\n" // -- ends a comment
	}
	return []byte(head + "-->\n" + w.text.String()), w.assumed, nil
}

// writer makes XML of a matrix.
type writer struct {
	matrix   *Matrix
	options  Options
	gpu      gpu
	cpu      string
	rates    map[int]units.Rate // of the NICs that take part, by device
	switched bool               // NVLinks go to switches
	buses    map[int]string     // bus ids of GPUs
	switches int
	text     strings.Builder
	assumed  []string
}

func (w *writer) assume(format string, args ...any) {
	w.assumed = append(w.assumed, fmt.Sprintf(format, args...))
}

// kinds finds what GPUs and CPUs are.
func (w *writer) kinds() error {
	kind := w.options.GPU
	if kind == "" {
		most := 0
		for _, row := range w.matrix.Relations {
			for _, r := range row {
				most = max(most, r.NVLinks)
			}
		}
		switch {
		case most == 0:
			return fmt.Errorf("no NVLinks tell what the GPUs are: want their kind, one of %s", strings.Join(GPUs(), ", "))
		case most <= 2:
			kind = "v100"
		case most <= 12:
			kind = "a100"
		default:
			kind = "h100"
		}
		w.assume("GPUs are of the kind %s, after their NVLinks", kind)
	}
	var known bool
	if w.gpu, known = gpus[kind]; !known {
		return fmt.Errorf("unknown kind of GPU %q: want one of %s", kind, strings.Join(GPUs(), ", "))
	}
	name := w.options.CPU
	if name == "" {
		name = w.gpu.cpu
		w.assume("CPUs are of the kind %s", name)
	}
	if w.cpu, known = cpus[name]; !known {
		return fmt.Errorf("unknown kind of CPU %q: want one of %s", name, strings.Join(CPUs(), ", "))
	}
	return nil
}

// nics finds which NICs take part, and their rates.
func (w *writer) nics() error {
	var out []string
	for i, d := range w.matrix.Devices {
		if d.GPU {
			continue
		}
		if len(w.options.NICs) == 0 {
			w.rates[i] = defaultRate
		}
		for _, n := range w.options.NICs {
			match, err := path.Match(n.Pattern, d.Name)
			if err != nil {
				return fmt.Errorf("%q is not a pattern of NIC names: %w", n.Pattern, err)
			}
			if match {
				w.rates[i] = n.Rate
				break
			}
		}
		if w.rates[i] == 0 {
			out = append(out, d.Name)
		}
	}
	switch {
	case len(w.rates) > 0 && len(w.options.NICs) == 0:
		w.assume("NICs run at %g Gb/s, which is what NCCL takes for unknown ones", float64(defaultRate/units.Gbps))
	case len(out) > 0:
		w.assume("%s take no part, as no rate is given for them", strings.Join(out, ", "))
	}
	return nil
}

// links finds whether NVLinks go from GPU to GPU or to switches: the latter where
// those to all others are more than a GPU has.
func (w *writer) links() {
	joined := false
	for _, row := range w.matrix.Relations {
		sum, peers := 0, 0
		for _, r := range row {
			sum += r.NVLinks
			peers += min(r.NVLinks, 1)
		}
		joined = joined || peers > 0
		w.switched = w.switched || (peers > 1 && sum > w.gpu.nvlinks)
	}
	switch {
	case w.switched:
		w.assume("NVLinks go to NVSwitches, as a GPU has fewer than to all others together")
	case joined:
		w.assume("NVLinks go from GPU to GPU, as a GPU has enough for that")
	}
}

// system writes the elements: a cpu for each NUMA node, and the devices below.
func (w *writer) system() {
	all := make([]int, len(w.matrix.Devices))
	for i := range all {
		all[i] = i
		if w.matrix.Devices[i].GPU {
			w.buses[i] = fmt.Sprintf("%04x:01:00.0", i+1)
		}
	}
	nodes := w.groups(all, func(a, b int) bool {
		d := w.matrix.Devices
		return w.near(a, b, Node) || (d[a].NUMA >= 0 && d[a].NUMA == d[b].NUMA)
	})
	used := map[int]bool{}
	for _, d := range w.matrix.Devices {
		used[d.NUMA] = true
	}
	w.line(0, `<system version="1">`)
	for _, node := range nodes {
		if !slices.ContainsFunc(node, w.takesPart) {
			continue
		}
		id := w.matrix.Devices[node[0]].NUMA
		for _, i := range node {
			id = max(id, w.matrix.Devices[i].NUMA)
		}
		for n := 0; id < 0; n++ {
			if !used[n] {
				id, used[n] = n, true
			}
		}
		w.line(1, `<cpu numaid="%d" affinity="" %s>`, id, w.cpu)
		for _, root := range w.groups(node, func(a, b int) bool { return w.near(a, b, PXB) }) {
			w.tree(root)
		}
		w.line(1, "</cpu>")
	}
	w.line(0, "</system>")
}

// tree writes the devices below one port of a CPU: a device alone, those of one
// switch, or a switch of switches.
func (w *writer) tree(root []int) {
	switches := w.groups(root, func(a, b int) bool { return w.near(a, b, PIX) })
	depth := 2
	if len(switches) > 1 {
		w.open(depth)
		depth++
	}
	for _, devices := range switches {
		if len(root) > 1 {
			w.open(depth)
			depth++
		}
		for _, i := range devices {
			w.device(depth, i)
		}
		if len(root) > 1 {
			depth--
			w.line(depth, "</pci>")
		}
	}
	if len(switches) > 1 {
		w.line(2, "</pci>")
	}
}

// open writes the start of a PCI switch.
func (w *writer) open(depth int) {
	w.switches++
	w.line(depth, `<pci busid="ffff:%02x:%02x.0" class="0x060400" vendor="0xffff" device="0xffff" subsystem_vendor="0xffff" subsystem_device="0xffff" link_speed="%s" link_width="16">`,
		w.switches>>5, w.switches&31, w.gpu.speed)
}

func (w *writer) device(depth, i int) {
	d := w.matrix.Devices[i]
	switch {
	case d.GPU:
		number := w.number(i)
		w.line(depth, `<pci busid="%s" class="0x030200" vendor="0x10de" device="%s" subsystem_vendor="0x10de" subsystem_device="0x0000" link_speed="%s" link_width="16">`, w.buses[i], w.gpu.device, w.gpu.speed)
		w.line(depth+1, `<gpu dev="%d" sm="%d" rank="%d" gdr="1">`, number, w.gpu.sm, number)
		most := 0
		for k, r := range w.matrix.Relations[i] {
			most = max(most, r.NVLinks)
			if r.NVLinks > 0 && !w.switched {
				w.line(depth+2, `<nvlink target="%s" count="%d" tclass="0x030200"/>`, w.buses[k], r.NVLinks)
			}
		}
		if most > 0 && w.switched {
			w.line(depth+2, `<nvlink target="fffffff:ffff:ff" count="%d" tclass="0x068000"/>`, most)
		}
		w.line(depth+1, "</gpu>")
		w.line(depth, "</pci>")
	case w.takesPart(i):
		w.line(depth, `<pci busid="%04x:01:00.0" class="0x020700" vendor="0x15b3" device="0x0000" subsystem_vendor="0x15b3" subsystem_device="0x0000" link_speed="%s" link_width="16">`, i+1, w.gpu.speed)
		w.line(depth+1, "<nic>")
		w.line(depth+2, `<net name="%s" dev="%d" speed="%.0f" port="1" latency="0" guid="0x%x" maxconn="131072" gdr="1"/>`, escape(d.Name), w.number(i), float64(w.rates[i]/units.Mbps), i+1)
		w.line(depth+1, "</nic>")
		w.line(depth, "</pci>")
	}
}

// number counts the devices of the kind of i before it that take part: what NVML
// calls a GPU, and the network plugin a NIC.
func (w *writer) number(i int) int {
	n := 0
	for k := range i {
		if w.matrix.Devices[k].GPU == w.matrix.Devices[i].GPU && w.takesPart(k) {
			n++
		}
	}
	return n
}

func (w *writer) takesPart(i int) bool { return w.matrix.Devices[i].GPU || w.rates[i] > 0 }

// near tells whether the way between two devices passes no more than that.
func (w *writer) near(a, b int, most Kind) bool {
	k := w.matrix.Relations[a][b].Kind
	return k != NV && k <= most
}

// groups divides devices into those that a chain of near ones joins, in order.
func (w *writer) groups(devices []int, near func(a, b int) bool) [][]int {
	var groups [][]int
	left := slices.Clone(devices)
	for len(left) > 0 {
		group := left[:1:1]
		left = left[1:]
		for i := 0; i < len(group); i++ {
			var rest []int
			for _, d := range left {
				if near(group[i], d) {
					group = append(group, d)
				} else {
					rest = append(rest, d)
				}
			}
			left = rest
		}
		slices.Sort(group)
		groups = append(groups, group)
	}
	return groups
}

func (w *writer) line(depth int, format string, args ...any) {
	w.text.WriteString(strings.Repeat("  ", depth))
	fmt.Fprintf(&w.text, format, args...)
	w.text.WriteByte('\n')
}

// escape makes text fit to stand in XML.
func escape(text string) string {
	var out strings.Builder
	_ = xml.EscapeText(&out, []byte(text)) // a Builder does not fail
	return out.String()
}
