package topo

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"tutti/model/units"
	"tutti/topo/xmltree"
)

// Hardware is what a template does not say of a machine.
type Hardware struct {
	// SM is the compute capability of the GPUs, times ten, and NVLinks how many
	// links each of them has.
	SM, NVLinks int
	// NIC is the rate of every port.
	NIC units.Rate
}

// Complete returns the NCCL topology XML of a machine, given a template of its
// PCI devices as clouds publish them, and what was assumed, each in one sentence.
// It adds what NCCL finds at run time: a gpu to each device of that class, with
// its NVLinks, and a nic with one net to each NIC.
//
// It fails for a text that is not such a template: one that has GPUs already, or
// no device of their class.
func Complete(text []byte, name string, h Hardware) (complete []byte, assumed []string, err error) {
	root, err := xmltree.Parse(bytes.NewReader(text), name, "topology", "system")
	if err != nil {
		return nil, nil, err
	}
	var gpus, nics []*xmltree.Element // PCI devices
	root.Each(func(e *xmltree.Element) {
		switch {
		case e.Name == "gpu":
			err = fmt.Errorf("%s:%d: a <gpu> element: this is no template, but says itself what its GPUs are", name, e.Line)
		case e.Name != "pci" || len(e.Children) > 0:
		case pciClass(e) == GPU:
			gpus = append(gpus, e)
		case pciClass(e) == NIC:
			nics = append(nics, e)
		}
	})
	if err != nil {
		return nil, nil, err
	}
	if len(gpus) == 0 {
		return nil, nil, fmt.Errorf("%s:%d: no <pci> element has the class of a GPU, 0x03: it does not say where they are", name, root.Line)
	}
	for i, e := range gpus {
		e.Add(h.gpu(i))
	}
	for i, e := range nics {
		e.Add(xmltree.New("nic")).Add(h.net(i))
	}
	assumed = []string{fmt.Sprintf("each of the %d PCI devices of that class is a GPU that takes part, ranks in their order", len(gpus))}
	switch {
	case h.switched():
		assumed = append(assumed, fmt.Sprintf("the %d NVLinks of a GPU go to NVSwitches", h.NVLinks))
	case h.NVLinks > 0:
		assumed = append(assumed, "there are no NVLinks, as the template does not say which GPUs they join")
	}
	if len(nics) > 0 {
		assumed = append(assumed, fmt.Sprintf("each of the %d NICs has one port of %g Gb/s", len(nics), float64(h.NIC/units.Gbps)))
	}
	var out strings.Builder
	err = root.Write(&out)
	return []byte(out.String()), assumed, err
}

// switched tells whether GPUs meet at NVSwitches, as they do since Ampere where
// they have NVLinks and are many.
func (h Hardware) switched() bool { return h.NVLinks > 0 && h.SM >= 80 }

func (h Hardware) gpu(i int) *xmltree.Element {
	number := strconv.Itoa(i)
	e := xmltree.New("gpu", "dev", number, "sm", strconv.Itoa(h.SM), "rank", number, "gdr", "1")
	if h.switched() {
		e.Add(xmltree.New("nvlink", "target", "fffffff:ffff:ff", "count", strconv.Itoa(h.NVLinks), "tclass", "0x068000"))
	}
	return e
}

func (h Hardware) net(i int) *xmltree.Element {
	number := strconv.Itoa(i)
	return xmltree.New("net", "name", "net"+number, "dev", number, "speed", fmt.Sprintf("%.0f", float64(h.NIC/units.Mbps)),
		"port", "1", "latency", "0", "guid", fmt.Sprintf("%#x", i+1), "maxconn", "131072", "gdr", "1")
}
