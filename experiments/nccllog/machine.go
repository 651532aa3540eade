package nccllog

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
)

// machine is the tree that NCCL logs of a machine, turned into its topology XML
// as it is read. What the log does not show takes its usual value.
type machine struct {
	body       strings.Builder
	open       []element
	gpus, nets []string // ids, in order
}

// element is one that is open: where its children are indented to, and its end.
type element struct {
	indent int
	end    string
}

// line reads a line of the tree: a CPU, or a link to what hangs below it.
func (m *machine) line(line string) error {
	f := nodeForm.FindStringSubmatch(line)
	if f == nil {
		return fmt.Errorf("%q: want a node of the machine, such as + PCI[48.0] - GPU/0-60 (0)", line)
	}
	indent, link, kind, id, about := len(f[1]), f[2], f[4], strings.ToLower(f[5]), f[6]
	for link != "" && len(m.open) > 0 && m.open[len(m.open)-1].indent >= indent {
		m.close()
	}
	bw, _ := strconv.ParseFloat(f[3], 64)
	switch {
	case kind == "CPU" && link == "":
		m.closeAll()
		m.push(-1, cpu(id, about), "</cpu>") // what hangs below it is not indented
	case len(m.open) == 0:
		return fmt.Errorf("%s/%s hangs below no CPU", kind, id)
	case kind == "PCI":
		m.push(indent, fmt.Sprintf(`<pci busid="%s" class="0x060400" %s>`, busID(id), pciLink(bw)), "</pci>")
	case kind == "GPU" && link == "PCI":
		rank := html.EscapeString(about)
		m.push(indent, fmt.Sprintf(`<pci busid="%s" class="0x030200" %s><gpu dev="%d" sm="SM" rank="%s" gdr="1">`, busID(id), pciLink(bw), len(m.gpus), rank), "</gpu></pci>")
		m.gpus = append(m.gpus, id)
	case kind == "NVS":
		m.body.WriteString(nvlink("0x068000", "fffffff:ff:ff.0", bw))
	case kind == "GPU" && link == "NVL":
		m.body.WriteString(nvlink("0x030200", busID(id), bw))
	case kind == "NIC" && bw >= 5000: // straight below a CPU
		m.push(indent, "<nic>", "</nic>")
	case kind == "NIC":
		m.push(indent, fmt.Sprintf(`<pci busid="%s" class="0x020700" %s><nic>`, busID(id), pciLink(bw)), "</nic></pci>")
	case kind == "NET":
		words := strings.Split(about, "/")
		speed, _ := strconv.ParseFloat(words[len(words)-1], 64)
		fmt.Fprintf(&m.body, `<net name="net%d" dev="%d" speed="%d" port="%d" guid="0x%x" gdr="1"/>`, len(m.nets), len(m.nets), int(math.Round(min(1e5, max(0, speed))*8000)), len(m.nets), len(m.nets))
		m.nets = append(m.nets, id)
	}
	return nil // links between CPUs, and chip to chip, are there anyway
}

func (m *machine) push(indent int, begin, end string) {
	m.body.WriteString(begin)
	m.open = append(m.open, element{indent, end})
}

func (m *machine) close() {
	m.body.WriteString(m.open[len(m.open)-1].end)
	m.open = m.open[:len(m.open)-1]
}

func (m *machine) closeAll() {
	for len(m.open) > 0 {
		m.close()
	}
}

// xml returns the machine as NCCL's topology file.
func (m *machine) xml() string {
	m.closeAll()
	body := m.body.String()
	return `<system version="1">` + strings.ReplaceAll(body, `sm="SM"`, fmt.Sprintf(`sm="%d"`, capability(body))) + `</system>`
}

// rates are NVLink's by compute capability (NCCL 2.28.3, src/graph/topo.h).
var rates = []struct {
	sm   int
	each float64
}{{90, 20.6}, {100, 40.1}, {80, 20}, {60, 18}}

// lanes returns how many links of which generation a bandwidth is made of.
func lanes(bw float64) (count, sm int) {
	for _, r := range rates {
		if n := math.Round(bw / r.each); n >= 1 && n <= 1000 && math.Abs(n*r.each-bw) < .06 {
			return int(n), r.sm
		}
	}
	return 1, 80
}

func nvlink(class, target string, bw float64) string {
	count, sm := lanes(bw)
	return fmt.Sprintf(`<nvlink target="%s" count="%d" tclass="%s"/><!--sm%d-->`, target, count, class, sm)
}

// capability returns the GPUs' compute capability, which the log does not say
// but the rate of NVLink does; 80 where there is none.
func capability(body string) int {
	_, after, found := strings.Cut(body, "<!--sm")
	if !found {
		return 80
	}
	digits, _, _ := strings.Cut(after, "-->")
	return number(digits)
}

// busID writes an id as the bus id that NCCL made it from.
func busID(id string) string {
	n, err := strconv.ParseUint(id, 16, 64)
	if err != nil {
		n = 0
	}
	s := fmt.Sprintf("%09x", n&0xfffffffff)
	return s[:4] + ":" + s[4:6] + ":" + s[6:8] + "." + s[8:]
}

// pciLink writes a rate as lanes of Gen5, 3 GB/s each.
func pciLink(bw float64) string {
	return fmt.Sprintf(`link_speed="32.0 GT/s PCIe" link_width="%d"`, max(1, int(math.Round(min(bw, 1e3)/3))))
}

// cpu writes the element of a CPU: its three numbers are NCCL's for the
// architecture, the vendor and the model.
func cpu(id, about string) string {
	numa := "0"
	if n, err := strconv.ParseUint(id, 16, 32); err == nil {
		numa = strconv.FormatUint(n, 10)
	}
	arch, vendor, model := "x86_64", "GenuineIntel", "207"
	switch words := strings.Split(about, "/"); {
	case len(words) == 3 && words[0] == "2":
		arch = "ppc64"
	case len(words) == 3 && words[0] == "3":
		arch = "arm64"
	case len(words) == 3 && words[1] == "2":
		vendor = "AuthenticAMD"
	case len(words) == 3 && words[1] == "1":
		if m, known := map[string]string{"1": "79", "2": "85", "3": "143"}[words[2]]; known {
			model = m
		}
	}
	return fmt.Sprintf(`<cpu numaid="%s" affinity="" arch="%s" vendor="%s" familyid="6" modelid="%s">`, numa, arch, vendor, model)
}
