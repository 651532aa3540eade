package topo

import (
	"strings"

	"tutti/model/units"
)

// Rates that NCCL 2.28.3 gives to links (src/graph/topo.h, topo.cc). They are
// what its search divides into channels; package profile says what part of
// them is reached.
const (
	rateOnDie      = 5000 * units.GBps
	netDefaultMbps = 10000 // Mb/s, where a net states no speed
)

// nvlinkRate is what one NVLink of a GPU carries.
func nvlinkRate(sm int) units.Rate {
	switch {
	case sm >= 100:
		return 40.1 * units.GBps
	case sm >= 90:
		return 20.6 * units.GBps
	case sm == 86:
		return 12 * units.GBps
	case sm >= 60 && sm < 70:
		return 18 * units.GBps
	default:
		return 20 * units.GBps
	}
}

// NVLinkRate is what one NVLink of the given GPU node carries.
func (s *System) NVLinkRate(gpu int) units.Rate { return nvlinkRate(s.Nodes[gpu].SM) }

// xgmiRate is what one XGMI link of an AMD GPU carries, by its architecture,
// which older files give as a number (RCCL, src/graph/topo.h).
func xgmiRate(gcn string) units.Rate {
	switch {
	case strings.HasPrefix(gcn, "gfx94") || strings.HasPrefix(gcn, "gfx95"): // MI300, MI350
		return 48 * units.GBps
	case gcn == "gfx90a" || gcn == "910": // MI200
		return 36 * units.GBps
	default:
		return 24 * units.GBps
	}
}

// pciLanes gives, by the link_speed that sysfs prints, what one lane carries in
// units of 100 Mb/s of payload.
var pciLanes = map[string]int{
	"2.5 GT/s": 15, "5 GT/s": 30, "8 GT/s": 60, "16 GT/s": 120, "32 GT/s": 240,
	"2.5 GT/s PCIe": 15, "5.0 GT/s PCIe": 30, "8.0 GT/s PCIe": 60, "16.0 GT/s PCIe": 120,
	"32.0 GT/s PCIe": 240, "64.0 GT/s PCIe": 480,
}

// pciRate is what a PCI link carries; a speed that is not known counts as 8
// GT/s, and a width of 0, as virtual machines state it, as 16 lanes.
func pciRate(speed string, width int) units.Rate {
	lane, known := pciLanes[speed]
	if !known {
		lane = 60
	}
	if width == 0 {
		width = 16
	}
	return units.Rate(width*lane) / 80 * units.GBps
}

// sysRate is what the link from a CPU to another socket carries.
func (n Node) sysRate() units.Rate {
	switch n.arch() {
	case 2: // Power
		return 32 * units.GBps
	case 3: // ARM
		return 6 * units.GBps
	}
	switch n.vendor() {
	case 1: // Intel: Broadwell and before, Skylake, Sapphire Rapids, Emerald Rapids
		return []units.Rate{6, 10, 22, 40}[n.generation()-1] * units.GBps
	case 2: // AMD
		return 16 * units.GBps
	case 3: // Zhaoxin: YongFeng is faster
		if n.generation() == 1 {
			return 9 * units.GBps
		}
		return 6 * units.GBps
	default:
		return rateOnDie
	}
}
