package main

import (
	"bytes"
	"fmt"
	"strings"

	"tutti/topo"
)

// mergeLevels are the distances up to which ports are fused, in the words of
// NCCL_NET_MERGE_LEVEL.
var mergeLevels = map[string]topo.PathType{
	"LOC": topo.PathLOC, "PORT": topo.PathPort, "PIX": topo.PathPIX, "PXB": topo.PathPXB,
	"P2C": topo.PathP2C, "PXN": topo.PathPXN, "PHB": topo.PathPHB, "SYS": topo.PathSYS,
}

// mergeNames lists them, the least first, which fuses nothing.
var mergeNames = []string{"LOC", "PORT", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS"}

// fuse makes one of the ports of a machine that are near each other.
func fuse(xml []byte, name, level string) ([]byte, error) {
	distance, known := mergeLevels[level]
	if !known {
		return nil, usage(fmt.Errorf("--net-merge-level %s: want one of %s", level, strings.Join(mergeNames, ", ")))
	}
	if distance == topo.PathLOC {
		return xml, nil
	}
	machine, err := topo.ReadXML(bytes.NewReader(xml), name)
	if err != nil {
		return nil, err
	}
	if machine, err = machine.Fuse(distance); err != nil {
		return nil, err
	}
	var text bytes.Buffer
	err = machine.WriteXML(&text)
	return text.Bytes(), err
}
