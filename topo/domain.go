package topo

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// maxHosts is how many hosts an NVLink domain may have (NVIDIA's largest, NVL576,
// has 144 trays).
const maxHosts = 256

// JoinNVLink returns the NCCL topology XML of equal hosts whose GPUs are all on
// the same NVLink switches, a multi-node NVLink domain (MNNVL), given that of one
// of them. As in the topology that NCCL fuses from those of the hosts, CPUs tell
// their host by host_hash and ranks go on from host to host; so that bus ids
// differ, too, each host has PCI domains of its own.
//
// It fails for a text that is not XML, a number of hosts out of range, and a
// host without NVLink switches.
func JoinNVLink(host []byte, hosts int) ([]byte, error) {
	if hosts < 1 || hosts > maxHosts {
		return nil, fmt.Errorf("%d hosts in an NVLink domain: want 1 to %d", hosts, maxHosts)
	}
	machine, err := ReadXML(bytes.NewReader(host), "host")
	if err != nil {
		return nil, err
	}
	if machine.NVS < 0 {
		return nil, errors.New("an NVLink domain joins hosts by NVLink switches, and this machine has none")
	}
	var text bytes.Buffer
	to := xml.NewEncoder(&text)
	to.Indent("", "  ")
	system := xml.StartElement{Name: xml.Name{Local: "system"}, Attr: []xml.Attr{{Name: xml.Name{Local: "version"}, Value: "1"}}}
	err = to.EncodeToken(system)
	for h := range hosts {
		err = errors.Join(err, copyHost(to, host, h, len(machine.GPUs)))
	}
	err = errors.Join(err, to.EncodeToken(system.End()), to.Close())
	return append(text.Bytes(), '\n'), err
}

// copyHost writes the elements below system for the host of the given number.
func copyHost(to *xml.Encoder, text []byte, host, gpus int) error {
	for from := xml.NewDecoder(bytes.NewReader(text)); ; {
		token, err := from.RawToken()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch t := token.(type) {
		case xml.StartElement:
			if t.Name.Local == "system" {
				continue
			}
			if t.Name.Local == "cpu" {
				t.Attr = slices.DeleteFunc(t.Attr, func(a xml.Attr) bool { return a.Name.Local == "host_hash" })
				t.Attr = append(t.Attr, xml.Attr{Name: xml.Name{Local: "host_hash"}, Value: fmt.Sprintf("0x%x", host+1)})
			}
			for i, a := range t.Attr {
				t.Attr[i].Value = onHost(a, host, gpus)
			}
			token = t
		case xml.EndElement:
			if t.Name.Local == "system" {
				continue
			}
		default:
			continue
		}
		if err := to.EncodeToken(token); err != nil {
			return err
		}
	}
}

// onHost is what an attribute becomes on the host of the given number.
func onHost(a xml.Attr, host, gpus int) string {
	switch a.Name.Local {
	case "rank":
		if rank, err := strconv.Atoi(a.Value); err == nil {
			return strconv.Itoa(rank + host*gpus)
		}
	case "busid", "target":
		domain, rest, _ := strings.Cut(a.Value, ":")
		if n, err := strconv.ParseUint(domain, 16, 32); err == nil && n < 1<<16 {
			return fmt.Sprintf("%04x:%s", n+uint64(host)<<16, rest)
		}
	}
	return a.Value
}
