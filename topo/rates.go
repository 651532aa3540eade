package topo

import "tutti/model/units"

// Rates that NCCL 2.28.3 gives to links (src/graph/topo.h, topo.cc). They are
// what its search divides into channels; package profile says what part of
// them is reached.
const (
	rateOnDie      = 5000 * units.GBps
	rateSYSARM     = 6 * units.GBps
	rateSYSAMD     = 16 * units.GBps
	rateSYSPower   = 32 * units.GBps
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

// cpuModel is what a cpu element says about the processor.
type cpuModel struct {
	arch, vendor  string
	family, model int
}

// sysRate is what the link between two sockets carries.
func (m cpuModel) sysRate() units.Rate {
	switch {
	case m.arch == "ppc64":
		return rateSYSPower
	case m.arch == "arm64":
		return rateSYSARM
	case m.vendor == "AuthenticAMD":
		return rateSYSAMD
	case m.vendor != "GenuineIntel":
		if m.family == 7 && m.model == 0x5B { // YongFeng
			return 9 * units.GBps
		}
		return 6 * units.GBps // other Zhaoxin
	case m.family == 6 && m.model >= 0xCF: // Emerald Rapids
		return 40 * units.GBps
	case m.family == 6 && m.model >= 0x8F: // Sapphire Rapids
		return 22 * units.GBps
	case m.family == 6 && m.model >= 0x55: // Skylake
		return 10 * units.GBps
	default: // Broadwell and before
		return 6 * units.GBps
	}
}
