package smi_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tutti/model/units"
	"tutti/topo"
	"tutti/topo/smi"
)

func read(t testing.TB, file string) []byte {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return text
}

var infiniband = smi.Options{GPU: "h100", NICs: []smi.NICRate{{Pattern: "mlx5_ib*", Rate: 400 * units.Gbps}}}

// The matrix of an HGX host with 8 GPUs and 13 NICs, published in the worklog of
// Penny, on one line there. With its InfiniBand NICs it is the DGX H100 but for
// the second PCI switch on the way to the neighbour's NIC.
func TestMatrix(t *testing.T) {
	folded, err := smi.Parse(read(t, "testdata/folded.txt"), "folded.txt")
	require.NoError(t, err)
	unfolded, err := smi.Parse(read(t, "testdata/unfolded.txt"), "unfolded.txt")
	require.NoError(t, err)
	require.Equal(t, folded, unfolded)
	require.Len(t, folded.Devices, 21)
	assert.Equal(t, smi.Device{Label: "NIC8", Name: "mlx5_eth0", NUMA: -1}, folded.Devices[16])
	assert.Equal(t, smi.Device{Label: "GPU7", Name: "GPU7", GPU: true, NUMA: 1}, folded.Devices[7])
	assert.Equal(t, "NV18 PXB", folded.Relations[2][3].String()+" "+folded.Relations[2][11].String())

	text, assumed, err := folded.XML(infiniband)
	require.NoError(t, err)
	assert.Equal(t, []string{
		"CPUs are of the kind sapphire-rapids",
		"mlx5_eth0, mlx5_eth1, mlx5_eth2, mlx5_eth3, mlx5_eth4 take no part, as no rate is given for them",
		"NVLinks go to NVSwitches, as a GPU has fewer than to all others together",
		"PCI links are 16 lanes of 32.0 GT/s PCIe, as its PCI generation has",
		"devices that are PIX to each other share a PCI switch, and switches of devices that are PXB hang on one more",
	}, assumed)
	s, err := topo.ReadXML(bytes.NewReader(text), "matrix")
	require.NoError(t, err)
	require.Len(t, s.GPUs, 8)
	require.Len(t, s.NETs, 8)
	require.Len(t, s.CPUs, 2)
	dgx, err := topo.Open("dgx-h100")
	require.NoError(t, err)
	for i, gpu := range s.GPUs {
		for k, peer := range s.GPUs {
			assert.Equal(t, dgx.Path(dgx.GPUs[i], dgx.GPUs[k]).Rate, s.Path(gpu, peer).Rate)
		}
		for k, net := range s.NETs {
			want := dgx.Path(dgx.NETs[k], dgx.GPUs[i])
			if i != k && i/2 == k/2 {
				want.Type = topo.PathPXB
			}
			got := s.Path(net, gpu)
			assert.Equal(t, want.Type, got.Type)
			assert.Equal(t, want.Rate, got.Rate)
		}
	}
}

const mesh = "\n\x1b[4mGPU0 GPU1 GPU2 mlx5_0 CPU Affinity\x1b[0m" + `
GPU0     X      NV2     NV1     PIX     0-19
GPU1    NV2      X      SYS     SYS     20-39
GPU2    NV1     SYS      X      SYS     20-39
mlx5_0  PIX     SYS     SYS      X
`

// A matrix of an older version, as on a terminal: NICs by their names, no NUMA
// nodes, and a mesh.
func TestMesh(t *testing.T) {
	m, err := smi.Parse([]byte(mesh), "mesh.txt")
	require.NoError(t, err)
	text, assumed, err := m.XML(smi.Options{})
	require.NoError(t, err)
	assert.Equal(t, []string{
		"GPUs are of the kind v100, after their NVLinks",
		"CPUs are of the kind broadwell",
		"NICs run at 10 Gb/s, which is what NCCL takes for unknown ones",
		"NVLinks go from GPU to GPU, as a GPU has enough for that",
	}, assumed[:4])
	assert.Contains(t, string(text), assumed[0])
	s, err := topo.ReadXML(bytes.NewReader(text), "mesh")
	require.NoError(t, err)
	assert.Equal(t, 40*units.GBps, s.Path(s.GPUs[0], s.GPUs[1]).Rate)
	assert.Equal(t, topo.PathNVB, s.Path(s.GPUs[1], s.GPUs[2]).Type)
	assert.Equal(t, topo.PathPIX, s.Path(s.GPUs[0], s.NETs[0]).Type)
	assert.Len(t, s.CPUs, 3, "SYS keeps them apart")
}

func TestErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    "f:1: not the output of nvidia-smi topo -m: want a header that begins with GPU0",
		"one\ntwo":                            "f:1: not the output of nvidia-smi topo -m: want a header that begins with GPU0",
		"GPU0 GPU1 CPU Affinity\n":            "f:1: no row for GPU0",
		"GPU0 GPU1\nGPU0 X NV4\n":             `f:2: "": want the row of GPU1`,
		"GPU0 GPU1\nGPU0 X NV4\nGPU1 NV2 X":   "f:3: NV2 for GPU1 and GPU0, but NV4 the other way round",
		"GPU0 GPU1\nGPU0 X PIXEL\nGPU1 NV2 X": `f:2: "PIXEL" for GPU0 and GPU1: want X for a device and itself, else NV#, PIX, PXB, PHB, NODE or SYS`,
		"GPU0 NIC0\nGPU0 X NV4\nNIC0 NV4 X":   `f:2: "NV4" for GPU0 and NIC0: want X for a device and itself, else NV#, PIX, PXB, PHB, NODE or SYS`,
		"GPU0 GPU1\nGPU0 PIX PIX":             `f:2: "PIX" for GPU0 and GPU0: want X for a device and itself, else NV#, PIX, PXB, PHB, NODE or SYS`,
		"GPU0 GPU1\nGPU1 GPU0":                "f:2: GPU1 stands twice in the header",
	} {
		_, err := smi.Parse([]byte(text), "f")
		assert.EqualError(t, err, want, text)
	}
	m, err := smi.Parse([]byte("GPU0 NIC0\nGPU0 X PIX 0-3 0\nNIC0 PIX X"), "f")
	require.NoError(t, err)
	for want, o := range map[string]smi.Options{
		"no NVLinks tell what the GPUs are: want their kind, one of a10, a100, b200, h100, h200, l40, v100":               {},
		`unknown kind of GPU "h900": want one of a10, a100, b200, h100, h200, l40, v100`:                                  {GPU: "h900"},
		`unknown kind of CPU "z80": want one of amd, broadwell, emerald-rapids, grace, icelake, sapphire-rapids, skylake`: {GPU: "l40", CPU: "z80"},
		`"[" is not a pattern of NIC names: syntax error in pattern`:                                                      {GPU: "l40", NICs: []smi.NICRate{{Pattern: "[", Rate: 1}}},
	} {
		_, _, err := m.XML(o)
		assert.EqualError(t, err, want)
	}
}

// Whatever the text, it ends in an error that names the file or in a topology
// that can be read, unless no way joins its GPUs.
func FuzzParse(f *testing.F) {
	f.Add(read(f, "testdata/unfolded.txt"))
	f.Add([]byte(mesh))
	f.Add([]byte("GPU0 NIC0 mlx5\x01<\nGPU0 X PIX PIX\nNIC0 PIX X PIX\nmlx5\x01< PIX PIX X\nNIC0: a--b\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := smi.Parse(text, "f")
		if err != nil {
			require.True(t, strings.HasPrefix(err.Error(), "f:"), err)
			return
		}
		out, _, err := m.XML(smi.Options{GPU: "h100", NICs: []smi.NICRate{{Pattern: "mlx5_0", Rate: units.GBps}, {Pattern: "m*", Rate: units.GBps}}})
		require.NoError(t, err)
		_, err = topo.ReadXML(bytes.NewReader(out), "f")
		require.NoError(t, err, "%s", out)
	})
}
