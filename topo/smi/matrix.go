// Package smi reads the matrix that nvidia-smi topo -m prints and makes an NCCL
// topology of it ([Matrix.XML]), which package topo reads.
//
// The matrix says how near devices are, not what they are: rates, the
// generation of GPUs and CPUs and the tree of PCI switches are given by
// [Options] or assumed, and every assumption is told.
package smi

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Matrix is what nvidia-smi prints.
type Matrix struct {
	Devices []Device
	// Relations has a row and a column for each device.
	Relations [][]Relation
}

// Device is a GPU or a NIC.
type Device struct {
	// Label is what the matrix calls it: GPU0, NIC3, or in older versions mlx5_0.
	Label string
	// Name is that of a NIC, by the legend below the matrix.
	Name string
	// GPU tells GPUs from NICs.
	GPU bool
	// NUMA is the NUMA node of a GPU, or -1 where none is stated.
	NUMA int
}

// Relation is a cell of the matrix.
type Relation struct {
	Kind Kind
	// NVLinks is how many NVLinks join the two, where Kind is NV.
	NVLinks int
}

// Kind says what the way between two devices passes.
type Kind int

// The kinds, from near to far.
const (
	Self Kind = iota
	NV        // NVLinks; nothing is said of PCI
	PIX       // at most one PCI bridge
	PXB       // several PCI bridges
	PHB       // a host bridge
	Node      // host bridges of one NUMA node
	Sys       // NUMA nodes
)

var kinds = map[string]Kind{"X": Self, "PIX": PIX, "PXB": PXB, "PHB": PHB, "NODE": Node, "SYS": Sys, "SOC": Sys}

func (r Relation) String() string {
	switch r.Kind {
	case NV:
		return fmt.Sprintf("NV%d", r.NVLinks)
	case Self:
		return "X"
	default:
		return [...]string{PIX: "PIX", PXB: "PXB", PHB: "PHB", Node: "NODE", Sys: "SYS"}[r.Kind]
	}
}

// Limits against hostile files; the largest machines have 16 GPUs and 48 NICs.
const (
	maxBytes   = 1 << 20
	maxDevices = 256
	maxNVLinks = 1024
)

var (
	colours   = regexp.MustCompile(`\x1b\[[0-9;]*m`) // nvidia-smi underlines the header on a terminal
	gpuLabel  = regexp.MustCompile(`^GPU\d+$`)
	nicLabel  = regexp.MustCompile(`^(NIC\d+|mlx\S+)$`)
	nvCell    = regexp.MustCompile(`^NV(\d{1,4})$`)
	nicLegend = regexp.MustCompile(`(NIC\d+):\s+(\S+)`)
)

// word is a word of the text with its line.
type word struct {
	text string
	line int
}

// Parse reads the first matrix in a text; name stands for the file in errors.
// What stands before and after it does not matter, nor where lines are broken.
//
// An error names file and line: no matrix, a row that is missing or short, a
// cell that nvidia-smi does not print, two cells that contradict each other.
func Parse(text []byte, name string) (*Matrix, error) {
	if len(text) > maxBytes {
		return nil, fmt.Errorf("%s:1: too large for a matrix: want at most %d MiB", name, maxBytes>>20)
	}
	plain := colours.ReplaceAllString(string(text), "")
	p := &parser{name: name}
	for i, line := range strings.Split(plain, "\n") {
		for _, w := range strings.Fields(line) {
			p.words = append(p.words, word{w, i + 1})
		}
	}
	m, err := p.matrix()
	if err != nil {
		return nil, err
	}
	for _, entry := range nicLegend.FindAllStringSubmatch(plain, -1) {
		for i := range m.Devices {
			if m.Devices[i].Label == entry[1] {
				m.Devices[i].Name = entry[2]
			}
		}
	}
	return m, nil
}

type parser struct {
	name  string
	words []word
	last  int // line of the word that was taken last
}

func (p *parser) fail(format string, args ...any) error {
	return fmt.Errorf("%s:%d: %s", p.name, max(p.last, 1), fmt.Sprintf(format, args...))
}

// next takes a word; at the end it is empty.
func (p *parser) next() string {
	if len(p.words) == 0 {
		return ""
	}
	w := p.words[0]
	p.words = p.words[1:]
	p.last = w.line
	return w.text
}

func (p *parser) peek() string {
	if len(p.words) == 0 {
		return ""
	}
	return p.words[0].text
}

// matrix reads header and rows.
func (p *parser) matrix() (*Matrix, error) {
	for p.peek() != "GPU0" {
		if p.next() == "" {
			p.last = 1
			return nil, p.fail("not the output of nvidia-smi topo -m: want a header that begins with GPU0")
		}
	}
	m := &Matrix{}
	for {
		label := p.peek()
		gpu := gpuLabel.MatchString(label)
		if (!gpu && !nicLabel.MatchString(label)) || (len(m.Devices) > 0 && label == m.Devices[0].Label) {
			break
		}
		if slices.ContainsFunc(m.Devices, func(d Device) bool { return d.Label == label }) {
			p.next()
			return nil, p.fail("%s stands twice in the header", label)
		}
		m.Devices = append(m.Devices, Device{Label: label, Name: label, GPU: gpu, NUMA: -1})
		p.next()
		if len(m.Devices) > maxDevices {
			return nil, p.fail("more than %d devices", maxDevices)
		}
	}
	numa := 0 // the word after a row's cells that has the NUMA node, or 0
	for words := 0; p.peek() != "GPU0"; words++ {
		if w := p.next(); w == "" {
			return nil, p.fail("no row for GPU0")
		} else if w == "NUMA" && numa == 0 && words > 0 {
			numa = words / 2 // "CPU Affinity NUMA Affinity"
		}
	}
	for i := range m.Devices {
		if err := p.row(m, i, numa); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// row reads the cells of a device, and what follows them.
func (p *parser) row(m *Matrix, i, numa int) error {
	d := &m.Devices[i]
	if label := p.next(); label != d.Label {
		return p.fail("%q: want the row of %s", label, d.Label)
	}
	row := make([]Relation, len(m.Devices))
	for k := range row {
		cell := p.next()
		kind, known := kinds[cell]
		r := Relation{Kind: kind}
		if nv := nvCell.FindStringSubmatch(cell); nv != nil {
			known, r.Kind = true, NV
			r.NVLinks, _ = strconv.Atoi(nv[1]) // four digits at most
			known = r.NVLinks > 0 && r.NVLinks <= maxNVLinks && m.Devices[k].GPU && d.GPU
		}
		if !known || (r.Kind == Self) != (k == i) {
			return p.fail("%q for %s and %s: want X for a device and itself, else NV#, PIX, PXB, PHB, NODE or SYS", cell, d.Label, m.Devices[k].Label)
		}
		if k < i && m.Relations[k][i] != r {
			return p.fail("%v for %s and %s, but %v the other way round", r, d.Label, m.Devices[k].Label, m.Relations[k][i])
		}
		row[k] = r
	}
	m.Relations = append(m.Relations, row)
	for at := 0; p.follows(m, i); at++ {
		w := p.next()
		if n, err := strconv.Atoi(w); err == nil && at == numa && numa > 0 && d.GPU && n >= 0 && n < maxDevices {
			d.NUMA = n
		}
	}
	return nil
}

// follows tells whether the next word still belongs to the row of device i: it
// is what is stated of CPU and NUMA affinity.
func (p *parser) follows(m *Matrix, i int) bool {
	w := p.peek()
	if w == "" || (i+1 < len(m.Devices) && w == m.Devices[i+1].Label) {
		return false
	}
	return w == "N/A" || (w[0] >= '0' && w[0] <= '9')
}
