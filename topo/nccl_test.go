package topo_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tutti/model/units"
	"tutti/topo"
)

// files lists the machines at hand: the built-in ones, those of public
// repositories and those that NCCL's own results were taken on.
func files(t testing.TB) (list []string) {
	for _, pattern := range []string{"machines/*.xml", "testdata/*.xml", "search/testdata/*.xml"} {
		found, err := filepath.Glob(pattern)
		require.NoError(t, err)
		list = append(list, found...)
	}
	return list
}

// What is no machine says so; every machine is the same after it was written and
// read again.
func TestFiles(t *testing.T) {
	template := "this is a template that NCCL completes at run time; want what it dumps then (NCCL_TOPO_DUMP_FILE), or a built-in machine"
	refused := map[string]string{
		"aws-p4d.24xl-8xA100.xml": ":15: no <gpu> element, though 8 PCI devices have the class of a GPU and 4 that of a NIC: " + template,
		"aws-p5.48xl-8xH100.xml":  ":15: no <gpu> element: want a complete dump (NCCL_TOPO_DUMP_FILE), not a PCI template",
		"azure-ndv2-8xV100.xml":   ":1: no <gpu> element, though 8 PCI devices have the class of a GPU and 1 that of a NIC: " + template,
		"azure-ndv4-8xA100.xml":   ":1: no <gpu> element, though 8 PCI devices have the class of a GPU and 8 that of a NIC: " + template,
		"azure-ndv5-8xH100.xml":   ":1: no <gpu> element, though 8 PCI devices have the class of a GPU and 8 that of a NIC: " + template,
		"azure-ncv4-graph.xml":    ": not an NCCL topology: want one <system> element at the top",
		"h200x4-live-graph.xml":   ": not an NCCL topology: want one <system> element at the top",
	}
	for _, file := range files(t) {
		s, err := topo.ReadFile(file)
		if want, known := refused[filepath.Base(file)]; known {
			assert.EqualError(t, err, file+want)
			continue
		}
		require.NoError(t, err)
		var text strings.Builder
		require.NoError(t, s.WriteXML(&text))
		again, err := topo.ReadXML(strings.NewReader(text.String()), file)
		require.NoError(t, err)
		assert.Equal(t, dump(t, s), dump(t, again), file)
		assert.Equal(t, s.Nodes, again.Nodes, file)
		assert.Equal(t, s.Links, again.Links, file)
	}
}

// A cloud's template, completed, is the machine that is built in, but for the
// names and numbers of its NICs.
func TestComplete(t *testing.T) {
	text, err := os.ReadFile("testdata/azure-ndv5-8xH100.xml")
	require.NoError(t, err)
	complete, assumed, err := topo.Complete(text, "template", topo.Hardware{SM: 90, NVLinks: 18, NIC: 400 * units.Gbps})
	require.NoError(t, err)
	assert.Equal(t, []string{
		"each of the 8 PCI devices of that class is a GPU that takes part, ranks in their order",
		"the 18 NVLinks of a GPU go to NVSwitches",
		"each of the 8 NICs has one port of 400 Gb/s",
	}, assumed)
	s, err := topo.ReadXML(strings.NewReader(string(complete)), "template")
	require.NoError(t, err)
	built, err := topo.Open("azure-nd-h100-v5")
	require.NoError(t, err)
	assert.Equal(t, kinds(built), kinds(s))
	assert.Equal(t, built.MaxRate(), s.MaxRate())
	assert.Equal(t, built.TotalRate(), s.TotalRate())

	_, _, err = topo.Complete(complete, "whole", topo.Hardware{})
	assert.ErrorContains(t, err, "a <gpu> element: this is no template, but says itself what its GPUs are")
	text, err = os.ReadFile("testdata/aws-p5.48xl-8xH100.xml")
	require.NoError(t, err)
	_, _, err = topo.Complete(text, "p5", topo.Hardware{})
	assert.EqualError(t, err, "p5:15: no <pci> element has the class of a GPU, 0x03: it does not say where they are")
}

func dump(t testing.TB, s *topo.System) string {
	var text strings.Builder
	require.NoError(t, topo.Dump(&text, s))
	return text.String()
}

// machine reads elements of one NUMA node each, on CPUs by the given vendor.
func machine(t testing.TB, vendor string, nodes ...string) *topo.System {
	var text strings.Builder
	text.WriteString(`<system version="1">`)
	for i, node := range nodes {
		fmt.Fprintf(&text, `<cpu numaid="%d" arch="x86_64" vendor="%s" familyid="6" modelid="143">%s</cpu>`, i, vendor, node)
	}
	text.WriteString(`</system>`)
	s, err := topo.ReadXML(strings.NewReader(text.String()), "machine")
	require.NoError(t, err)
	return s
}

const generation4 = `link_speed="16.0 GT/s PCIe" link_width="16"`

func gpu(bus string, links ...string) string {
	return fmt.Sprintf(`<pci busid="%s" class="0x030200" %s><gpu sm="80">%s</gpu></pci>`, bus, generation4, strings.Join(links, ""))
}

func nvlink(target string) string {
	return fmt.Sprintf(`<nvlink target="%s" count="2" tclass="0x030200"/>`, target)
}

func nic(bus string, dev int, gdr int) string {
	return fmt.Sprintf(`<pci busid="%s" class="0x020700" %s><nic><net name="net%d" dev="%d" speed="200000" gdr="%d"/></nic></pci>`, bus, generation4, dev, dev, gdr)
}

func pciSwitch(bus, device string, inside ...string) string {
	return fmt.Sprintf(`<pci busid="%s" class="0x060400" vendor="0x1000" device="%s" subsystem_vendor="0x1000" subsystem_device="0xa000" %s>%s</pci>`,
		bus, device, generation4, strings.Join(inside, ""))
}

// kinds writes the types of the paths between GPUs, and between GPUs and NETs and
// back, with the numbers of hops.
func kinds(s *topo.System) string {
	var words []string
	path := func(from, to int) {
		p := s.Path(from, to)
		words = append(words, fmt.Sprintf("%v/%d", p.Type, len(p.Links)))
	}
	for _, a := range s.GPUs {
		for _, b := range s.GPUs {
			if a < b {
				path(a, b)
			}
		}
	}
	for _, g := range s.GPUs {
		for _, net := range s.NETs {
			path(g, net)
			path(net, g)
		}
	}
	return strings.Join(words, " ")
}

func TestPathRules(t *testing.T) {
	intel, amd := topo.VendorIntel, topo.VendorAMD
	for name, c := range map[string]struct {
		machine *topo.System
		want    string
	}{
		"peers on one switch, near a port": {
			machine(t, intel, pciSwitch("01:00.0", "1", gpu("02:00.0"), gpu("03:00.0"), nic("04:00.0", 0, 1))),
			"PIX/2 PIX/3 PIX/3 PIX/3 PIX/3"},
		"a port that cannot reach GPUs is fed by the CPU": {
			machine(t, intel, pciSwitch("01:00.0", "1", gpu("02:00.0"), nic("04:00.0", 0, 0))),
			"PHB/5 PHB/5"},
		"GPUs below one CPU meet in memory": {
			machine(t, intel, gpu("02:00.0")+gpu("03:00.0")),
			"PHB/2"},
		"GPUs below two CPUs meet in memory": {
			machine(t, intel, gpu("02:00.0"), gpu("03:00.0")),
			"SYS/3"},
		"a Broadcom switch is one switch": {
			machine(t, intel, pciSwitch("01:00.0", "0xc010", pciSwitch("02:00.0", "0xc010", gpu("03:00.0")), pciSwitch("04:00.0", "0xc010", nic("05:00.0", 0, 1)))),
			"PIX/3 PIX/3"},
		"another switch of two levels is not": {
			machine(t, intel, pciSwitch("01:00.0", "1", pciSwitch("02:00.0", "1", gpu("03:00.0")), pciSwitch("04:00.0", "1", nic("05:00.0", 0, 1)))),
			"PXB/5 PXB/5"},
		"switches linked sideways": {
			machine(t, amd, pciSwitch("01:00.0", "1", gpu("02:00.0"), `<pcilink target="03:00.0"/>`)+pciSwitch("03:00.0", "1", gpu("04:00.0"), `<pcilink target="01:00.0"/>`)),
			"PXB/3"},
		"NVLink through another GPU": {
			machine(t, intel, gpu("01:00.0", nvlink("02:00.0"))+gpu("02:00.0", nvlink("01:00.0"), nvlink("03:00.0"))+gpu("03:00.0", nvlink("02:00.0"))),
			"NVL/1 NVB/2 NVL/1"},
		"a far port by the GPU beside it, but not back": {
			machine(t, intel, gpu("01:00.0", nvlink("03:00.0"))+pciSwitch("02:00.0", "1", gpu("03:00.0", nvlink("01:00.0")), nic("04:00.0", 0, 1))),
			"NVL/1 PXN/4 PHB/4 PIX/3 PIX/3"},
		"a port on the CPU that a GPU has C2C to": {
			machine(t, intel, gpu("01:00.0", `<c2c bw="40000" count="5"/>`)+nic("04:00.0", 0, 1)),
			"P2C/3 P2C/3"},
	} {
		assert.Equal(t, c.want, kinds(c.machine), name)
	}
	// The links to NICs without a bus id are all those of the first.
	nicless := `<nic><net name="eth%d" dev="%d"/></nic>`
	s := machine(t, intel, gpu("01:00.0")+fmt.Sprintf(nicless, 0, 0), fmt.Sprintf(nicless, 1, 1))
	assert.Equal(t, "PHB/3 PHB/3 PHB/3 PHB/3", kinds(s))
	assert.Len(t, s.Of(topo.NIC), 1)
}

// NCCL's settings change paths as they do in NCCL.
func TestSettings(t *testing.T) {
	s := machine(t, topo.VendorIntel, gpu("01:00.0", nvlink("03:00.0"))+pciSwitch("02:00.0", "1", gpu("03:00.0", nvlink("01:00.0")), nic("04:00.0", 0, 1)))
	assert.Equal(t, "NVL/1 PXN/4 PHB/4 PIX/3 PIX/3", kinds(s))
	for _, c := range []struct{ name, value, want string }{
		{"NCCL_P2P_LEVEL", "NVL", "NVL/1 PXN/4 PHB/4 PIX/3 PIX/3"},
		{"NCCL_P2P_DISABLE", "1", "PHB/3 PHB/4 PHB/4 PIX/3 PIX/3"},
		{"NCCL_P2P_LEVEL", "0", "PHB/3 PHB/4 PHB/4 PIX/3 PIX/3"},
		{"NCCL_PXN_DISABLE", "1", "NVL/1 PHB/4 PHB/4 PIX/3 PIX/3"},
		{"NCCL_NET_GDR_LEVEL", "LOC", "NVL/1 PHB/4 PHB/4 PHB/5 PHB/5"},
	} {
		var set topo.Settings
		known, err := set.Set(c.name, c.value)
		require.True(t, known)
		require.NoError(t, err)
		assert.Equal(t, c.want, kinds(s.With(set)), "%s=%s", c.name, c.value)
	}
	for _, name := range topo.Variables() {
		known, err := new(topo.Settings).Set(name, "much")
		assert.True(t, known)
		assert.ErrorContains(t, err, name+"=much: want ")
	}
	known, err := new(topo.Settings).Set("HOME", "here")
	assert.False(t, known)
	assert.NoError(t, err)
}

// GPUs share out the ports near them, or use all of them.
func TestLocalNET(t *testing.T) {
	s := machine(t, topo.VendorIntel, pciSwitch("01:00.0", "1", gpu("02:00.0"), gpu("03:00.0"), nic("04:00.0", 0, 1), nic("05:00.0", 1, 1), nic("06:00.0", 2, 1), nic("07:00.0", 3, 1)))
	ports := func(s *topo.System) string {
		var words []string
		for _, g := range s.GPUs {
			var list []string
			for channel := range 5 {
				list = append(list, s.Nodes[s.LocalNET(g, channel)].Name)
			}
			words = append(words, strings.Join(list, " "))
		}
		return strings.Join(words, ", ")
	}
	assert.Equal(t, "net0 net1 net0 net1 net0, net2 net3 net2 net3 net2", ports(s))
	var all, one topo.Settings
	_, err := all.Set("NCCL_NETDEVS_POLICY", "ALL")
	require.NoError(t, err)
	_, err = one.Set("NCCL_NETDEVS_POLICY", "MAX:1")
	require.NoError(t, err)
	assert.Equal(t, "net0 net1 net2 net3 net0, net2 net3 net0 net1 net2", ports(s.With(all)))
	assert.Equal(t, "net0 net0 net0 net0 net0, net2 net2 net2 net2 net2", ports(s.With(one)))
}

// Ranks are those of the file, whatever its order.
func TestRanks(t *testing.T) {
	at := func(bus string, rank int) string {
		return strings.Replace(gpu(bus), "<gpu", fmt.Sprintf(`<gpu rank="%d"`, rank), 1)
	}
	s := machine(t, topo.VendorIntel, pciSwitch("01:00.0", "0xc010", pciSwitch("02:00.0", "0xc010", at("05:00.0", 9)), at("04:00.0", 3))+gpu("06:00.0")+at("03:00.0", 5))
	var names []string
	for _, g := range s.GPUs {
		names = append(names, s.Label(g))
	}
	assert.Equal(t, []string{"GPU/0-4000", "GPU/0-3000", "GPU/0-5000"}, names) // without rank, no part
	assert.Equal(t, "GPU/0-5000", s.Label(s.Of(topo.GPU)[0]))
}

// Without the GPUs that take no part, two are left beside AMD's CPUs, which lets
// them be peers at any distance.
func TestRestrict(t *testing.T) {
	s := machine(t, topo.VendorAMD, gpu("01:00.0"), gpu("02:00.0"), gpu("03:00.0")+nic("04:00.0", 0, 1))
	p := s.Path(s.GPUs[0], s.GPUs[1])
	assert.Equal(t, topo.PathSYS, p.Type)
	pair := s.Restrict(2, false)
	assert.Len(t, pair.GPUs, 2)
	assert.Empty(t, pair.NETs)
	assert.NotContains(t, dump(t, pair), "NET/")
	assert.NotContains(t, dump(t, pair), "GPU/0-3000")
	assert.Same(t, s, s.Restrict(0, true))
}

// Ports of one NIC become one, of four at the most; then those of one switch.
func TestFuse(t *testing.T) {
	b200, err := topo.ReadFile("testdata/modal-b200-8gpu-nvswitch.xml")
	require.NoError(t, err)
	fused, err := b200.Fuse(topo.PathPort)
	require.NoError(t, err)
	names := func(s *topo.System) (list []string) {
		for _, net := range s.NETs {
			list = append(list, fmt.Sprint(s.Nodes[net].Name, " ", s.Links[s.Nodes[net].Out[0]].Rate))
		}
		return list
	}
	assert.Equal(t, []string{"mlx5_4 25.0 GB/s", "mlx5_0+mlx5_1+mlx5_2+mlx5_3 50.0 GB/s",
		"mlx5_5+mlx5_6+mlx5_7+mlx5_8 200.0 GB/s", "mlx5_9+mlx5_10+mlx5_11+mlx5_12 200.0 GB/s"}, names(fused))

	s := machine(t, topo.VendorIntel, pciSwitch("01:00.0", "1", gpu("02:00.0"), nic("04:00.0", 0, 1), nic("05:00.0", 1, 1)), nic("06:00.0", 2, 1))
	fused, err = s.Fuse(topo.PathPIX)
	require.NoError(t, err)
	assert.Equal(t, []string{"net0+net1 50.0 GB/s", "net2 25.0 GB/s"}, names(fused))
	assert.Equal(t, "PIX/3 PIX/3 SYS/5 SYS/5", kinds(fused))
	p := fused.Path(fused.GPUs[0], fused.NETs[0])
	assert.Equal(t, "24.0 GB/s", p.Rate.String()) // the GPU's own link
	_, err = s.Fuse(topo.PathNVB)
	assert.EqualError(t, err, "NICs cannot be fused at level NVB: want LOC, PORT, PIX, PXB, P2C, PXN, PHB or SYS")
}

// AMD's GPUs have XGMI links, at the rates that RCCL gives them.
func TestXGMI(t *testing.T) {
	s, err := topo.ReadFile("testdata/rccl-topo_8p_90a-MI250.xml")
	require.NoError(t, err)
	assert.Equal(t, "36.0 GB/s", s.Path(s.GPUs[0], s.GPUs[1]).Rate.String())
	s, err = topo.ReadFile("testdata/rccl-topo_8p_940-MI300X.xml")
	require.NoError(t, err)
	for _, g := range s.GPUs[1:] {
		p := s.Path(s.GPUs[0], g)
		assert.Equal(t, "48.0 GB/s", p.Rate.String())
		assert.Equal(t, topo.PathNVL, p.Type)
	}
}

// A dump names everything as NCCL's log does; testdata of package search has
// whole logs.
func TestDump(t *testing.T) {
	s := machine(t, topo.VendorIntel, pciSwitch("01:00.0", "0x77", gpu("02:00.0"), nic("04:00.0", 3, 1)))
	assert.Equal(t, strings.TrimPrefix(`
=== System : maxBw 24.0 totalBw 24.0 ===
CPU/0-0 (1/1/3)
+ PCI[24.0] - PCI/0-1000 (100000771000a000)
              + PCI[24.0] - GPU/0-2000 (0)
              + PCI[24.0] - NIC/0-4000
                            + NET[25.0] - NET/0-3 (0/3/0/25.000000)
==========================================
GPU/0-2000 :GPU/0-2000 (0/5000.0/LOC) CPU/0-0 (2/24.0/PHB) NET/0-3 (3/24.0/PIX) 
NET/0-3 :GPU/0-2000 (3/24.0/PIX) CPU/0-0 (3/24.0/PHB) NET/0-3 (0/5000.0/LOC) 
`, "\n"), dump(t, s))
	var full fullDisk
	assert.ErrorIs(t, topo.Dump(full, s), os.ErrClosed)
	assert.ErrorIs(t, s.WriteXML(full), os.ErrClosed)
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, os.ErrClosed }
