package live

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tutti/topo"
)

// tree lays out a part of a file system: files with their text, links with "->"
// before where they lead.
func tree(t *testing.T, entries map[string]string) string {
	root := t.TempDir()
	for path, text := range entries {
		path = filepath.Join(root, path)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		if to, ok := bytes.CutPrefix([]byte(text), []byte("->")); ok {
			require.NoError(t, os.Symlink(string(to), path))
			continue
		}
		require.NoError(t, os.WriteFile(path, []byte(text+"\n"), 0o644))
	}
	return root
}

func device(entries map[string]string, path string, facts map[string]string) {
	for name, value := range facts {
		entries[path+"/"+name] = value
	}
	entries["sys/bus/pci/devices/"+filepath.Base(path)] = "->../../../../" + path
}

// What sysfs and NVML said on the virtual machine of testdata/h200x4.xml gives
// NCCL's own dump there.
func TestVirtualMachine(t *testing.T) {
	entries := map[string]string{
		"proc/cpuinfo":       "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 207\n\nprocessor\t: 1",
		"sys/class/net/eth0": "->../../devices/pci0000:00/0000:00:03.0/virtio2/net/eth0",
		"sys/class/net/lo":   "->../../devices/virtual/net/lo",
		"sys/devices/pci0000:00/0000:00:03.0/virtio2/net/eth0/device": "->../..",
		"sys/devices/pci0000:00/0000:00:03.0/virtio2/net/eth0/speed":  "-1",
		"sys/devices/virtual/net/lo/speed":                            "-1",
	}
	var gpus []GPU
	for _, bus := range []string{"0000:00:06.0", "0000:00:07.0", "0000:00:08.0", "0000:00:09.0"} {
		device(entries, "sys/devices/pci0000:00/"+bus, map[string]string{
			"class": "0x030200", "vendor": "0x10de", "device": "0x2335", "subsystem_vendor": "0x10de", "subsystem_device": "0x18bf",
			"max_link_speed": "32.0 GT/s PCIe", "max_link_width": "16", "numa_node": "-1",
		})
		g := GPU{BusID: bus, SM: 90}
		for range 18 {
			g.NVLinks = append(g.NVLinks, "fffffff:ff:ff.0")
		}
		gpus = append(gpus, g)
	}
	text, err := write(host{root: tree(t, entries), gpus: gpus})
	require.NoError(t, err)
	same(t, "testdata/h200x4.xml", text)
}

// same compares graphs, for NCCL orders attributes in another way.
func same(t *testing.T, file string, text []byte) {
	want, err := topo.ReadFile(file)
	require.NoError(t, err)
	got, err := topo.ReadXML(bytes.NewReader(text), file)
	require.NoError(t, err, "%s", text)
	assert.Equal(t, dump(t, want), dump(t, got))
}

func dump(t *testing.T, s *topo.System) string {
	var text bytes.Buffer
	require.NoError(t, topo.Dump(&text, s))
	return text.String()
}

// On a bare-metal host a GPU and a NIC hang below the same PCI switch, which is
// two bridges in sysfs.
func TestSwitch(t *testing.T) {
	const up = "sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0"
	entries := map[string]string{
		"proc/cpuinfo":                         "vendor_id: AuthenticAMD\ncpu family: 25\nmodel: 17\n",
		"sys/devices/system/node/node1/cpumap": "ffff",
		"sys/class/infiniband/mlx5_0":          "->../../" + up[4:] + "/0000:17:01.0/0000:19:00.0/infiniband/mlx5_0",
	}
	bridge := map[string]string{"class": "0x060400", "vendor": "0x1000", "device": "0xc030", "max_link_speed": "32.0 GT/s PCIe", "max_link_width": "16", "numa_node": "1"}
	device(entries, up, bridge)
	device(entries, up+"/0000:17:00.0/0000:18:00.0", map[string]string{"class": "0x030200", "max_link_speed": "32.0 GT/s PCIe", "max_link_width": "16"})
	const nic = up + "/0000:17:01.0/0000:19:00.0"
	device(entries, nic, map[string]string{"class": "0x020700", "max_link_speed": "32.0 GT/s PCIe", "max_link_width": "16"})
	entries["sys/devices/pci0000:15/0000:15:01.0/max_link_speed"] = "16.0 GT/s PCIe"
	entries["sys/devices/pci0000:15/0000:15:01.0/max_link_width"] = "16"
	entries["sys/module/nvidia_peermem/version"] = "580"
	entries[nic+"/infiniband/mlx5_0/device"] = "->../.."
	entries[nic+"/infiniband/mlx5_0/node_guid"] = "0123:4567:89ab:cdef"
	entries[nic+"/infiniband/mlx5_0/ports/1/state"] = "4: ACTIVE"
	entries[nic+"/infiniband/mlx5_0/ports/1/rate"] = "400 Gb/sec (4X NDR)"
	text, err := write(host{root: tree(t, entries), gpus: []GPU{{BusID: "0000:18:00.0", SM: 90}}})
	require.NoError(t, err)
	for _, want := range []string{
		`<cpu numaid="1" affinity="ffff" arch="x86_64" vendor="AuthenticAMD" familyid="175" modelid="17">`,
		`<pci busid="0000:16:00.0" class="0x060400" vendor="0x1000" device="0xc030" link_speed="16.0 GT/s PCIe" link_width="16">`,
		`<net name="mlx5_0" dev="0" latency="0" speed="400000" port="1" guid="0x123456789abcdef" maxconn="131072" gdr="1"></net>`,
	} {
		assert.Contains(t, string(text), want)
	}
	system, err := topo.ReadXML(bytes.NewReader(text), "live")
	require.NoError(t, err)
	assert.Equal(t, topo.PathPIX, system.Path(system.GPUs[0], system.NETs[0]).Type)
}

func TestNoGPU(t *testing.T) {
	_, err := write(host{root: t.TempDir()})
	assert.ErrorContains(t, err, "no GPU on this host")
}
