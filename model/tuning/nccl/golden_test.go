package nccl_test

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tutti/model"
	"tutti/model/tuning/nccl"
	"tutti/model/units"
	"tutti/topo"
)

// machines are what testdata/golden.txt does not say of the machines in it.
var machines = map[string]nccl.Communicator{
	"h200x2":      {MinSM: 90, NVSwitch: true},
	"h200x4":      {MinSM: 90, NVSwitch: true},
	"h100x8":      {MinSM: 90, NVSwitch: true},
	"h100x8_coll": {MinSM: 90, NVSwitch: true},
	"a100x8":      {MinSM: 80, NVSwitch: true, AMD: true},
	"dgxa100":     {MinSM: 80, NVSwitch: true, AMD: true},
	"b200x8":      {MinSM: 100, NVSwitch: true},
	"gb200x4":     {MinSM: 100, NVSwitch: true},
	"l40x4_pcie":  {MinSM: 89},
}

// block is one machine and node count of testdata/golden.txt: what NCCL 2.28.3's
// unmodified sources found for it.
type block struct {
	name       string
	comm       nccl.Communicator
	settings   nccl.Settings
	coll, nvls int // channels
	table      string
}

var (
	headForm  = regexp.MustCompile(`^=== xml/(\w+)\.xml nodes=(\d+) nvls=(\d) collnet=(\d)`)
	graphForm = regexp.MustCompile(`^(\w+) +Pattern (\d), crossNic \d, nChannels (\d+), bw ([\d.]+)/([\d.]+), type (\w+)/(\w+), sameChannels (\d)`)
)

// golden reads testdata/golden.txt. Graphs come from it, not from our search.
func golden(t *testing.T) []block {
	text, err := os.ReadFile("testdata/golden.txt")
	require.NoError(t, err)
	var blocks []block
	var at *block
	for line := range strings.Lines(string(text)) {
		if f := headForm.FindStringSubmatch(line); f != nil {
			c, known := machines[f[1]]
			require.True(t, known, line)
			c.MaxSM = c.MinSM
			_, err := fmt.Sscan(f[2], &c.Nodes)
			require.NoError(t, err)
			blocks = append(blocks, block{name: f[1] + " n" + f[2] + " nvls" + f[3], comm: c, settings: nccl.Settings{CollNet: f[4] == "1"}})
			at = &blocks[len(blocks)-1]
			continue
		}
		if f := graphForm.FindStringSubmatch(line); f != nil {
			g := map[string]*nccl.Graph{"RING": &at.comm.Ring, "TREE": &at.comm.Tree, "CHAIN": &at.comm.CollNetChain, "DIRECT": &at.comm.CollNet, "NVLS": &at.comm.NVLS}[f[1]]
			_, err := fmt.Sscan(strings.Join(f[2:6], " "), &g.Pattern, &g.Channels, &g.BwIntra, &g.BwInter)
			require.NoError(t, err)
			g.TypeIntra, g.TypeInter, g.SameChannels = pathType(f[6]), pathType(f[7]), f[8] == "1"
			g.Heads = g.Channels
			continue
		}
		switch {
		case at.comm.Ranks == 0: // the first channel of the ring
			at.comm.Ranks = at.comm.Nodes * strings.Count(line, "GPU/")
		case strings.HasPrefix(line, "CHANNELS"):
			_, err := fmt.Sscanf(line, "CHANNELS coll %d nvls %d", &at.coll, &at.nvls)
			require.NoError(t, err)
		case strings.Contains(line, " |"):
			at.table += line
		}
	}
	return blocks
}

func pathType(name string) topo.PathType {
	for p := topo.PathLOC; p < topo.PathDIS; p++ {
		if p.String() == name {
			return p
		}
	}
	return topo.PathDIS
}

// Every table that NCCL prints is ours, byte for byte, and so are the channels.
func TestTables(t *testing.T) {
	blocks := golden(t)
	require.Len(t, blocks, 22)
	for _, b := range blocks {
		m, err := nccl.New(b.comm, b.settings)
		require.NoError(t, err)
		var table bytes.Buffer
		require.NoError(t, m.WriteTable(&table))
		assert.Equal(t, b.table, table.String(), b.name)
		assert.Equal(t, b.coll, m.MaxChannels(nccl.Ring), b.name)
		assert.Equal(t, b.nvls, m.MaxChannels(nccl.NVLSTree), b.name)
	}
}

var collectives = map[string]model.Collective{"AR": model.AllReduce, "AG": model.AllGather, "RS": model.ReduceScatter, "Bcast": model.Broadcast}

// Every choice by powers of two from 8 bytes to 8 GiB is NCCL's, and so is the
// time that it predicts at both ends of each range.
func TestChoices(t *testing.T) {
	models := map[string]*nccl.Model{}
	for _, b := range golden(t) {
		if b.settings.CollNet {
			continue
		}
		with := b.comm
		for range 2 { // the second is NCCL_NVLS_ENABLE=0
			m, err := nccl.New(with, b.settings)
			require.NoError(t, err)
			models[b.name] = m
			b.name, with.NVLS = strings.TrimSuffix(b.name, "nvls1")+"nvls0", nccl.Graph{}
		}
	}
	text, err := os.ReadFile("testdata/choice-by-size.txt")
	require.NoError(t, err)
	var sizes []units.Bytes
	for size := units.Bytes(8); size <= 8*units.GiB; size *= 2 {
		sizes = append(sizes, size)
	}
	compared := 0
	for line := range strings.Lines(string(text)) {
		head, ranges, _ := strings.Cut(strings.TrimSpace(line), ": ")
		at := strings.LastIndex(head, " ")
		m := models[head[:at]]
		require.NotNil(t, m, head)
		got, err := m.Ranges(nccl.Call{Collective: collectives[head[at+1:]], Datatype: model.Float32}, sizes)
		require.NoError(t, err)
		var list []string
		for _, r := range got {
			list = append(list, r.String())
		}
		assert.Equal(t, ranges, strings.Join(list, "; "), head)
		compared++
	}
	assert.Equal(t, 52, compared)
}

// The blocks and threads that NCCL launched on 4x H200.
func TestLaunch(t *testing.T) {
	m, err := nccl.New(golden(t)[3].comm, nccl.Settings{})
	require.NoError(t, err)
	for size, want := range map[units.Bytes][2]int{
		units.KiB: {1, 96}, 4 * units.KiB: {1, 128}, 8 * units.KiB: {1, 256}, 16 * units.KiB: {1, 512}, 32 * units.KiB: {2, 512},
		256 * units.KiB: {16, 512}, 512 * units.KiB: {24, 512}, units.GiB: {24, 512},
	} {
		channels, threads := m.Launch(nccl.Call{Collective: model.AllReduce, Bytes: size}, nccl.Ring, model.LL)
		assert.Equal(t, want, [2]int{channels, threads}, size.String())
	}
	channels, threads := m.Launch(nccl.Call{Collective: model.AllReduce, Bytes: units.GiB}, nccl.Ring, model.Simple)
	assert.Equal(t, [2]int{24, 544}, [2]int{channels, threads})
}

// NCCL_ALGO and NCCL_PROTO switch what they name, for all functions or for one.
func TestLists(t *testing.T) {
	comm := golden(t)[3].comm
	off := func(s nccl.Settings, c model.Collective, a nccl.Algorithm, p model.Protocol) bool {
		m, err := nccl.New(comm, s)
		require.NoError(t, err)
		return m.Cost(c, a, p).Bandwidth == 0
	}
	assert.False(t, off(nccl.Settings{Algo: "ring,TREE"}, model.AllReduce, nccl.Tree, model.LL))
	assert.True(t, off(nccl.Settings{Algo: "ring,tree"}, model.AllReduce, nccl.NVLS, model.Simple))
	assert.True(t, off(nccl.Settings{Algo: "^ring"}, model.Broadcast, nccl.Ring, model.LL))
	assert.True(t, off(nccl.Settings{Proto: "LL,Simple;allreduce:^LL"}, model.AllReduce, nccl.Ring, model.LL))
	assert.False(t, off(nccl.Settings{Proto: "LL,Simple;allreduce:^LL"}, model.AllGather, nccl.Ring, model.LL))
	assert.True(t, off(nccl.Settings{Proto: "LL,Simple;allreduce:^LL"}, model.AllGather, nccl.Ring, model.LL128))
	comm.Ring.TypeIntra = topo.PathSYS // not trusted, but asked for
	assert.True(t, off(nccl.Settings{}, model.AllReduce, nccl.Ring, model.LL128))
	assert.False(t, off(nccl.Settings{Proto: "LL128"}, model.AllReduce, nccl.Ring, model.LL128))
	_, err := nccl.New(comm, nccl.Settings{Algo: "ring;tree"})
	assert.ErrorContains(t, err, "only the first list may go without a function")
}

// The logs of 14 nodes of one GPU on sockets: latencies of single ranks, PAT and
// slow links come out, too.
func TestOneGPUPerNode(t *testing.T) {
	graph := nccl.Graph{Pattern: 3, Channels: 1, BwIntra: 2.4, BwInter: 1.2, TypeIntra: topo.PathLOC, TypeInter: topo.PathPHB, SameChannels: true}
	ring := graph
	ring.Pattern, ring.BwIntra = 4, 1.2
	m, err := nccl.New(nccl.Communicator{Ranks: 14, Nodes: 14, MinSM: 90, MaxSM: 90, NVSwitch: true, Ring: ring, Tree: graph}, nccl.Settings{})
	require.NoError(t, err)
	var table bytes.Buffer
	require.NoError(t, m.WriteTable(&table))
	for _, want := range []string{
		" Max NThreads |            512 |            640 |            512 |            512 |            640 |            256 |              0 |              0 |            640 |\n",
		"    Broadcast |     0.0/   0.0 |     0.0/   0.0 |     0.0/   0.0 |     9.3/   0.6 |    18.0/   0.0 |    22.4/   1.2 |     0.0/   0.0 |     0.0/   0.0 |     0.0/   0.0 |\n",
		"    AllGather |     0.0/   0.0 |     0.0/   0.0 |     0.0/   0.0 |    71.6/   0.6 |   124.5/   0.0 |   190.4/   1.3 |     5.0/   0.0 |     8.5/   0.0 |    14.0/   0.0 |\n",
		"    AllReduce |    36.8/   0.1 |    65.0/   0.0 |    92.4/   0.5 |   136.6/   0.3 |   235.0/   0.0 |   372.4/   0.6 |     5.0/   0.0 |     8.5/   0.0 |    14.0/   0.0 |\n",
		"    AllReduce |     5.0/   0.0 |     8.5/   0.0 |    14.0/   0.0 |     0.0/   0.0 |     0.0/   0.0 |     0.0/   0.0 |     0.0/   0.0 |     0.0/   0.0 |     0.0/   0.0 |\n",
		"    AllGather |     0.0/   0.0 |     0.0/   0.0 |    59.2/   0.9 |\n",
	} {
		assert.Contains(t, table.String(), want)
	}
}
