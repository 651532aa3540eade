package live

import (
	"fmt"
	"strings"
	"sync"

	"tutti/backend/dynlib"
)

// nvmlPCI is nvmlPciInfo_t.
type nvmlPCI struct {
	legacy [16]byte // what NCCL writes of far ends
	_      [5]uint32
	busID  [32]byte
}

var nvml struct {
	Init        func() int32                                            `c:"nvmlInit_v2"`
	ErrorString func(code int32) string                                 `c:"nvmlErrorString"`
	Count       func(n *uint32) int32                                   `c:"nvmlDeviceGetCount_v2"`
	ByIndex     func(index uint32, device *uintptr) int32               `c:"nvmlDeviceGetHandleByIndex_v2"`
	PCI         func(device uintptr, info *nvmlPCI) int32               `c:"nvmlDeviceGetPciInfo_v3"`
	Capability  func(device uintptr, major, minor *int32) int32         `c:"nvmlDeviceGetCudaComputeCapability"`
	LinkState   func(device uintptr, link uint32, active *uint32) int32 `c:"nvmlDeviceGetNvLinkState"`
	LinkRemote  func(device uintptr, link uint32, info *nvmlPCI) int32  `c:"nvmlDeviceGetNvLinkRemotePciInfo_v2"`
	DriverText  func(text *byte, size uint32) int32                     `c:"nvmlSystemGetDriverVersion"`
}

var loadNVML = sync.OnceValue(func() error {
	if err := dynlib.Open(&nvml, "libnvidia-ml.so.1"); err != nil {
		return fmt.Errorf("no NVML: %w", err)
	}
	return check("nvmlInit", nvml.Init())
})

func check(call string, code int32) error {
	if code == 0 {
		return nil
	}
	return fmt.Errorf("%s: %s (%d)", call, nvml.ErrorString(code), code)
}

// DriverVersion returns the NVIDIA driver's version, as in "580.159.04".
func DriverVersion() (string, error) {
	if err := loadNVML(); err != nil {
		return "", err
	}
	text := make([]byte, 96)
	err := check("nvmlSystemGetDriverVersion", nvml.DriverText(&text[0], uint32(len(text))))
	return cString(text), err
}

// maxNVLinks is NVML_NVLINK_MAX_LINKS of Hopper and earlier.
const maxNVLinks = 18

// readGPUs asks NVML for the GPUs and the far ends of their NVLinks.
func readGPUs() ([]GPU, error) {
	if err := loadNVML(); err != nil {
		return nil, err
	}
	var n uint32
	if err := check("nvmlDeviceGetCount", nvml.Count(&n)); err != nil {
		return nil, err
	}
	var gpus []GPU
	for i := range n {
		var device uintptr
		if err := check("nvmlDeviceGetHandleByIndex", nvml.ByIndex(i, &device)); err != nil {
			return nil, err
		}
		var info nvmlPCI
		if err := check("nvmlDeviceGetPciInfo", nvml.PCI(device, &info)); err != nil {
			return nil, err
		}
		var major, minor int32
		if err := check("nvmlDeviceGetCudaComputeCapability", nvml.Capability(device, &major, &minor)); err != nil {
			return nil, err
		}
		g := GPU{BusID: busID(cString(info.busID[:])), SM: int(major*10 + minor)}
		for link := range uint32(maxNVLinks) {
			var active uint32
			if nvml.LinkState(device, link, &active) != 0 || active == 0 {
				continue // no such link, or it is down
			}
			var far nvmlPCI
			if nvml.LinkRemote(device, link, &far) == 0 {
				g.NVLinks = append(g.NVLinks, strings.ToLower(cString(far.legacy[:])))
			}
		}
		gpus = append(gpus, g)
	}
	return gpus, nil
}

// busID writes a bus id as sysfs does: "00000000:3B:00.0" becomes "0000:3b:00.0".
func busID(s string) string {
	s = strings.ToLower(s)
	if domain, rest, ok := strings.Cut(s, ":"); ok && len(domain) == 8 {
		return domain[4:] + ":" + rest
	}
	return s
}

func cString(text []byte) string {
	s, _, _ := strings.Cut(string(text), "\x00")
	return s
}
