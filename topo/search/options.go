package search

import (
	"fmt"
	"strconv"
)

// Options say what to search for besides rings and trees.
type Options struct {
	// NoNVLS leaves NVLS out, as NCCL_NVLS_ENABLE=0 does.
	NoNVLS bool
	// CollNet looks for the graphs of collectives in the network, as
	// NCCL_COLLNET_ENABLE=1 does.
	CollNet bool
	// SHARP has CollNet use NETs whose switches reduce ([topo.Cluster.Reduces]),
	// whatever the machine's file says of them.
	SHARP bool
	// CrossNic is whether rings may leave a machine by another port than they enter
	// by, as NCCL_CROSS_NIC says; the zero value lets the search decide.
	CrossNic CrossNic
	// Given are graphs to use in the place of a search (NCCL_GRAPH_FILE).
	Given *Graphs
}

// CrossNic is a choice for ports.
type CrossNic int

// The choices, for NCCL_CROSS_NIC 2, 0 and 1.
const (
	CrossNicAuto CrossNic = iota
	CrossNicNever
	CrossNicAny
)

// Variables lists the environment variables of NCCL's that [Options.Set] knows.
func Variables() []string {
	return []string{"NCCL_NVLS_ENABLE", "NCCL_COLLNET_ENABLE", "NCCL_CROSS_NIC"}
}

// Set gives the option of an environment variable of NCCL's a value, as NCCL reads
// it. It reports whether the variable is one of [Variables], and fails for values
// that have no meaning.
func (o *Options) Set(name, value string) (known bool, err error) {
	last, known := map[string]int{"NCCL_NVLS_ENABLE": 2, "NCCL_COLLNET_ENABLE": 1, "NCCL_CROSS_NIC": 2}[name]
	if !known {
		return false, nil
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 0 || n > last {
		return true, fmt.Errorf("%s=%s: want a number from 0 to %d", name, value, last)
	}
	switch name {
	case "NCCL_NVLS_ENABLE":
		o.NoNVLS = n == 0
	case "NCCL_COLLNET_ENABLE":
		o.CollNet = n == 1
	default:
		o.CrossNic = []CrossNic{CrossNicNever, CrossNicAny, CrossNicAuto}[n]
	}
	return true, nil
}
