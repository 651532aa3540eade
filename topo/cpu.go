package topo

// Architectures and vendors of CPUs that NCCL treats in a way of their own.
const (
	ArchX86   = "x86_64"
	ArchARM   = "arm64"
	ArchPower = "ppc64"

	VendorIntel = "GenuineIntel"
	VendorAMD   = "AuthenticAMD"
)

// NCCL's numbers for processors, which its log prints: CPU/0-1 (1/1/3) is an
// x86 processor by Intel, a Sapphire Rapids. -1 stands for what does not apply.
// Source: NCCL 2.28.3, src/graph/topo.h, and ncclTopoAddCpu in topo.cc.

func (n Node) arch() int {
	return map[string]int{ArchX86: 1, ArchPower: 2, ArchARM: 3}[n.Arch]
}

func (n Node) vendor() int {
	if n.Arch != ArchX86 {
		return -1
	}
	return map[string]int{
		VendorIntel: 1, VendorAMD: 2,
		"CentaurHauls": 3, "  Shanghai  ": 3, // both are Zhaoxin
	}[n.Vendor]
}

// generation tells Broadwell, Skylake, Sapphire Rapids and Emerald Rapids apart,
// which bear the models below, and YongFeng from other processors by Zhaoxin.
func (n Node) generation() int {
	switch n.vendor() {
	case 1:
		generation := 1
		for _, first := range []int{0x55, 0x8F, 0xCF} {
			if n.Family == 6 && n.Model >= first {
				generation++
			}
		}
		return generation
	case 3:
		if n.Family == 7 && n.Model == 0x5B {
			return 1
		}
	}
	return -1
}
