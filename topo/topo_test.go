package topo_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"tutti/model/units"
	"tutti/topo"
)

func open(t testing.TB, name string) *topo.System {
	s, err := topo.Open(name)
	require.NoError(t, err)
	return s
}

// NCCL 2.28.3 logged this on the machine that the file was dumped on:
// "GPU/0-60 :GPU/0-60 (0/5000.0/LOC) GPU/0-70 (2/370.8/NVL) … NVS/0-0 (1/370.8/NVL) CPU/… (1/48.0/PHB)".
func TestPathsOfLiveMachine(t *testing.T) {
	s := open(t, "h200x4")
	require.Len(t, s.GPUs, 4)
	assert.Equal(t, 90, s.SM())
	for i, gpu := range s.GPUs {
		for j, peer := range s.GPUs {
			if i == j {
				checkPath(t, s, gpu, peer, 0, "5000.0 GB/s", topo.PathLOC)
			} else {
				checkPath(t, s, gpu, peer, 2, "370.8 GB/s", topo.PathNVL)
			}
		}
		checkPath(t, s, gpu, s.NVS, 1, "370.8 GB/s", topo.PathNVL)
		checkPath(t, s, gpu, s.CPUs[0], 1, "48.0 GB/s", topo.PathPHB)
	}
}

// A port is near the GPU on its PCI switch. The other GPUs send to it through
// that one over NVLink, and receive from it through CPUs.
func TestPathsToNICs(t *testing.T) {
	s := open(t, "dgx-h100")
	require.Len(t, s.GPUs, 8)
	require.Len(t, s.NETs, 8)
	for i, gpu := range s.GPUs {
		for k, net := range s.NETs {
			switch {
			case i == k:
				checkPath(t, s, gpu, net, 3, "48.0 GB/s", topo.PathPIX)
				checkPath(t, s, net, gpu, 3, "48.0 GB/s", topo.PathPIX)
			case i/4 == k/4:
				checkPath(t, s, gpu, net, 5, "48.0 GB/s", topo.PathPXN)
				checkPath(t, s, net, gpu, 5, "48.0 GB/s", topo.PathPHB)
			default:
				checkPath(t, s, gpu, net, 5, "48.0 GB/s", topo.PathPXN)
				checkPath(t, s, net, gpu, 6, "22.0 GB/s", topo.PathSYS)
			}
		}
	}
}

// checkPath also walks the links: they must join up.
func checkPath(t *testing.T, s *topo.System, from, to, hops int, rate string, kind topo.PathType) {
	p := s.Path(from, to)
	assert.Len(t, p.Links, hops)
	assert.Equal(t, rate, p.Rate.String())
	assert.Equal(t, kind, p.Type)
	at := from
	for _, l := range p.Links {
		require.Equal(t, at, s.Links[l].From)
		at = s.Links[l].To
	}
	assert.Equal(t, to, at)
}

func TestOpenErrors(t *testing.T) {
	_, err := topo.Open("dgx-z80")
	assert.EqualError(t, err, `unknown machine "dgx-z80": want one of `+strings.Join(topo.Machines(), ", ")+`, or an NCCL topology FILE.xml`)
	_, err = topo.Open("nowhere.xml")
	assert.ErrorIs(t, err, os.ErrNotExist)
}

const (
	head = `<system version="1"><cpu numaid="0" arch="arm64">` + "\n"
	tail = "\n</cpu></system>"
)

func gpuXML(links string) string {
	return fmt.Sprintf("<pci busid=\"1\" class=\"0x030200\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"><gpu dev=\"0\" sm=\"90\">%s</gpu></pci>\n", links)
}

// ranked is a GPU that states its rank.
func ranked(bus, rank int) string {
	return fmt.Sprintf(`<pci busid="%d" link_speed="" link_width="0"><gpu sm="90" rank="%d"/></pci>`+"\n", bus, rank)
}

func manyGPUs() string {
	var text strings.Builder
	for i := range 600 {
		text.WriteString(ranked(i, i))
	}
	return text.String()
}

func TestReadXMLErrors(t *testing.T) {
	nvlink := func(target string) string {
		return `<nvlink target="` + target + `" count="4" tclass="0x030200"/>`
	}
	for name, c := range map[string]struct{ text, want string }{
		"empty":           {"", "f: not an NCCL topology: want one <system> element at the top"},
		"not XML":         {"GPU0 GPU1\n", "f: not an NCCL topology: want one <system> element at the top"},
		"cut short":       {head + gpuXML(""), "f:3: not XML: unexpected EOF"},
		"another root":    {`<graphs version="1"/>`, "f: not an NCCL topology: want one <system> element at the top"},
		"version":         {`<system version="3"/>`, `f:1: <system> has version "3": want 1, as NCCL writes it, or RCCL's 2`},
		"no GPU":          {head + tail, "f:1: no <gpu> element: want a complete dump (NCCL_TOPO_DUMP_FILE), not a PCI template"},
		"twice":           {head + gpuXML("") + gpuXML("") + tail, "f:3: bus id 1 stands twice, first in line 2"},
		"unknown target":  {head + gpuXML("\n"+nvlink("7")) + tail, `f:3: <nvlink> of GPU 1 has target "7": want the bus id of a GPU`},
		"missing":         {head + `<pci busid="1"><gpu dev="0"/></pci>` + tail, "f:2: <gpu> lacks sm"},
		"absurd":          {head + `<pci busid="1"><gpu sm="-9"/></pci>` + tail, `f:2: <gpu> has sm="-9": want a whole number from 10 to 1000`},
		"attribute twice": {head + `<pci busid="1" busid="2"/>` + tail, "f:2: <pci> has busid twice"},
		"bus id":          {head + gpuXML("") + `<pci busid="here"/>` + tail, `f:3: <pci> has busid="here": want a PCI bus id, as in 0000:1b:00.0`},
		"one way":         {head + gpuXML("\n"+nvlink("2")) + strings.Replace(gpuXML(""), `"1"`, `"2"`, 1) + tail, "f:3: <nvlink> from GPU 1 to 2 has no counterpart in the other direction"},
		"rank":            {head + ranked(1, 0) + ranked(2, 0) + tail, "f:3: <gpu> has rank 0, which GPU 1 has"},
		"NUMA node":       {head + gpuXML("") + `</cpu><cpu numaid="0" arch="arm64">` + tail, "f:3: numaid 0 stands twice on one host"},
		"processor":       {`<system version="1"><cpu numaid="0" arch="z80">` + gpuXML("") + tail, `f:1: <cpu> has arch="z80": want x86_64, arm64 or ppc64`},
		"device":          {head + gpuXML("") + `<nic><net dev="3"/>` + "\n" + `<net dev="3"/></nic>` + tail, "f:4: <net> has dev 3, which another has on the same host"},
		"latency":         {head + gpuXML("") + `<nic><net dev="3" latency="NaN"/></nic>` + tail, `f:3: <net> has latency="NaN": want a number from 0 to 1e+06`},
		"guid":            {head + gpuXML("") + `<nic><net dev="3" guid="me"/></nic>` + tail, `f:3: <net> has guid="me": want a hexadecimal number`},
		"sideways":        {head + gpuXML("") + `<pci busid="3" class="0x060400" link_speed="" link_width="0"><pcilink target="1"/></pci>` + tail, `f:3: <pcilink> of PCI switch 3 has target "1": want the bus id of another PCI switch`},
		"apart":           {head + gpuXML("") + `</cpu><cpu numaid="0" host_hash="0x7" arch="arm64">` + strings.Replace(gpuXML(""), `"1"`, `"2"`, 1) + tail, "f:1: no path from GPU 1 to GPU 2"},
		"many GPUs":       {head + manyGPUs() + tail, "f:578: more than 576 nodes of type GPU, which NCCL does not take"},
		"too many":        {head + strings.Repeat("<x/>", 1<<15) + tail, "f:2: too large for an NCCL topology: want at most 4 MiB, 16384 elements and 64 levels"},
		"too deep":        {head + strings.Repeat("<x>", 99) + tail, "f:2: too large for an NCCL topology: want at most 4 MiB, 16384 elements and 64 levels"},
	} {
		_, err := topo.ReadXML(strings.NewReader(c.text), "f")
		assert.EqualError(t, err, c.want, name)
	}
}

// Whatever the text, reading ends in a machine whose paths can be asked for and
// that is the same when written and read again, or in an error that names the file.
func FuzzReadXML(f *testing.F) {
	for _, file := range files(f) {
		text, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(text)
	}
	f.Add([]byte(head + gpuXML(`<c2c bw="9" count="2"/>`) + tail))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := topo.ReadXML(bytes.NewReader(text), "f")
		if err != nil {
			require.True(t, strings.HasPrefix(err.Error(), "f:"), err)
			return
		}
		for _, g := range s.GPUs {
			require.NotEqual(t, topo.PathDIS, s.Path(s.GPUs[0], g).Type)
		}
		var again bytes.Buffer
		require.NoError(t, s.WriteXML(&again))
		same, err := topo.ReadXML(&again, "f")
		require.NoError(t, err)
		require.Equal(t, dump(t, s), dump(t, same))
		_, err = s.Fuse(topo.PathSYS)
		require.NoError(t, err)
	})
}

// A route is a chain of as many links between any two ranks, its slowest link
// is the port or the PCI link beside it, and it stays off the spine exactly
// when both ends are on one leaf.
func TestRoutes(t *testing.T) {
	machine := open(t, "dgx-h100")
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.IntRange(2, 200).Draw(t, "nodes")
		c, err := topo.NewCluster(machine, nodes, 0, topo.RailOptimised)
		require.NoError(t, err)
		rank := rapid.IntRange(0, c.Ranks()-1)
		a, b := rank.Draw(t, "a"), rank.Draw(t, "b")
		out, in := a%8, rapid.SampledFrom([]int{a % 8, b % 8}).Draw(t, "in")
		route := c.Route(a, b, out, in)
		slowest := units.Rate(1e15)
		for _, l := range route {
			_, rate := c.Link(l)
			slowest = min(slowest, rate)
		}
		switch {
		case a == b:
			require.Empty(t, route)
		case a/8 == b/8:
			require.Len(t, route, 2)
			require.Equal(t, "370.8 GB/s", slowest.String())
		case a/8/32 == b/8/32 && in == out:
			require.Len(t, route, 3+2+len(machine.Path(machine.NETs[in], machine.GPUs[b%8]).Links))
			require.LessOrEqual(t, slowest, 48*units.GBps)
		default:
			require.Len(t, route, 3+4+len(machine.Path(machine.NETs[in], machine.GPUs[b%8]).Links))
		}
	})
}

func TestClusterErrors(t *testing.T) {
	machine := open(t, "dgx-h100")
	alone, err := topo.ReadXML(strings.NewReader(head+gpuXML("")+tail), "alone.xml")
	require.NoError(t, err)
	for _, c := range []struct {
		machine     *topo.System
		nodes, gpus int
		want        string
	}{
		{machine, 0, 0, "0 nodes: want 1 to 16384"},
		{machine, 1e9, 0, "1000000000 nodes: want 1 to 16384"},
		{machine, 1, 9, "9 GPUs of dgx-h100: want 1 to 8"},
		{alone, 2, 0, "2 nodes of alone.xml: the machine has no <net> to join them by"},
	} {
		_, err := topo.NewCluster(c.machine, c.nodes, c.gpus, topo.RailOptimised)
		assert.EqualError(t, err, c.want)
	}
}
