package topo

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Settings are those of NCCL's environment variables that change how it sees a
// machine. The zero Settings are NCCL's defaults.
type Settings struct {
	// P2PLevel is how far apart peers may be (NCCL_P2P_LEVEL; NCCL_P2P_DISABLE=1
	// is PathLOC); nil for what [System] has by itself.
	P2PLevel *PathType
	// GDRLevel is how far a GPU may be from a NIC that moves its data
	// (NCCL_NET_GDR_LEVEL); nil for PathPXB.
	GDRLevel *PathType
	// NoPXN has GPUs send to every port by themselves (NCCL_PXN_DISABLE=1), and
	// NoPXNC2C through none whose GPU has C2C to it (NCCL_PXN_C2C=0).
	NoPXN, NoPXNC2C bool
	// NoGDRC2C has no NIC move data of a GPU that it is beside by C2C
	// (NCCL_NET_GDR_C2C=0).
	NoGDRC2C bool
	// NoNVB lets no GPU forward between its NVLinks (NCCL_NVB_DISABLE=1).
	NoNVB bool
	// NETsPerGPU is how many of the ports that are nearest to it a GPU uses by
	// itself (NCCL_NETDEVS_POLICY): 0 for its share of them (AUTO), AllNETs for
	// all (ALL), else so many (MAX:N).
	NETsPerGPU int
}

// AllNETs stands for every port that is nearest to a GPU.
const AllNETs = 1 << 30

// Variables lists the environment variables of NCCL's that [Settings.Set] knows.
func Variables() []string {
	return []string{
		"NCCL_P2P_LEVEL", "NCCL_P2P_DISABLE", "NCCL_NET_GDR_LEVEL", "NCCL_NET_GDR_C2C",
		"NCCL_PXN_DISABLE", "NCCL_PXN_C2C", "NCCL_NVB_DISABLE", "NCCL_NETDEVS_POLICY",
	}
}

// Set gives the setting of an environment variable of NCCL's a value, as NCCL
// reads it. It reports whether the variable is one of [Variables], and fails,
// unlike NCCL, for values that have no meaning.
func (s *Settings) Set(name, value string) (known bool, err error) {
	switch name {
	case "NCCL_P2P_LEVEL":
		s.P2PLevel, err = parseLevel(value)
	case "NCCL_P2P_DISABLE":
		var off bool
		if off, err = parseFlag(value); off {
			s.P2PLevel = new(PathType) // PathLOC
		}
	case "NCCL_NET_GDR_LEVEL":
		s.GDRLevel, err = parseLevel(value)
	case "NCCL_PXN_DISABLE":
		s.NoPXN, err = parseFlag(value)
	case "NCCL_PXN_C2C":
		s.NoPXNC2C, err = parseNoFlag(value)
	case "NCCL_NET_GDR_C2C":
		s.NoGDRC2C, err = parseNoFlag(value)
	case "NCCL_NVB_DISABLE":
		s.NoNVB, err = parseFlag(value)
	case "NCCL_NETDEVS_POLICY":
		s.NETsPerGPU, err = parsePolicy(value)
	default:
		return false, nil
	}
	if err != nil {
		err = fmt.Errorf("%s=%s: %w", name, value, err)
	}
	return true, err
}

// With returns the system as NCCL sees it with the given settings. Nodes and links
// keep their numbers.
func (s *System) With(settings Settings) *System {
	w := *s
	w.settings = settings
	w.computePaths()
	return &w
}

func parseFlag(value string) (bool, error) {
	if value != "0" && value != "1" {
		return false, errors.New("want 0 or 1")
	}
	return value == "1", nil
}

func parseNoFlag(value string) (bool, error) {
	on, err := parseFlag(value)
	return !on && err == nil, err
}

// parseLevel reads the name of a type of path, or one of the numbers that NCCL
// had for them before.
func parseLevel(value string) (*PathType, error) {
	for t := PathLOC; t <= PathSYS; t++ {
		if t.String() == value {
			return &t, nil
		}
	}
	if n, err := strconv.Atoi(value); err == nil && n >= 0 {
		t := []PathType{PathLOC, PathPIX, PathPXB, PathPHB, PathSYS, PathSYS}[min(n, 5)]
		return &t, nil
	}
	return nil, errors.New("want a type of path from LOC to SYS, or a number from 0 to 5")
}

func parsePolicy(value string) (int, error) {
	limit, isMax := strings.CutPrefix(value, "MAX:")
	switch n, err := strconv.Atoi(limit); {
	case value == "AUTO":
		return 0, nil
	case value == "ALL":
		return AllNETs, nil
	case isMax && err == nil && n > 0:
		return n, nil
	}
	return 0, errors.New("want AUTO, ALL or MAX:N")
}
