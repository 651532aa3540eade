package topo

import (
	"io"
	"os"

	"tutti/topo/xmltree"
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
// understands the elements system, cpu, pci, gpu, nvlink, c2c, pcilink, nic and
// net, and xgmi as RCCL writes it for AMD's GPUs, and skips others, as NCCL does.
// Ranks are those of the file; where it states none, GPUs are numbered in order.
//
// An error names file, line and element: text that is not XML, another root
// element, a missing or absurd attribute, a bus id that stands twice, an NVLink
// to a GPU that is not there or that does not link back, a file of PCI devices
// without a GPU, two GPUs without a path.
func ReadXML(r io.Reader, name string) (*System, error) {
	root, err := xmltree.Parse(r, name, "topology", "system")
	if err != nil {
		return nil, err
	}
	return build(root, name)
}

// WriteXML writes the system as NCCL writes its dump. [ReadXML] of it gives the
// same system.
func (s *System) WriteXML(w io.Writer) error {
	return s.source.Write(w)
}
