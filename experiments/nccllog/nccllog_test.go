package nccllog_test

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tutti/experiments/nccllog"
	"tutti/model/tuning/nccl"
	"tutti/topo"
)

func text(t require.TestingT, name string) string {
	b, err := os.ReadFile("testdata/" + name + ".txt")
	require.NoError(t, err)
	return string(b)
}

// What a log shows comes back: the machine, the graphs, and the table, which we
// compute from these graphs as it is logged.
func TestRead(t *testing.T) {
	for _, want := range []struct {
		name         string
		ranks, nodes int
		rings, first int
		version, net string
		intra        topo.PathType
	}{
		{"h200x4-single-node", 4, 1, 12, 0, "2.28.3", "", topo.PathNVL},
		{"sockets-n8g4", 32, 8, 1, 0, "2.28.9", "Socket", topo.PathNVL},
		{"sockets-n14g1", 14, 14, 1, 0, "2.28.9", "Socket", topo.PathLOC},
	} {
		log, err := nccllog.Read(strings.NewReader(text(t, want.name)), want.name)
		require.NoError(t, err)
		assert.Equal(t, want.ranks, log.Cluster.Ranks())
		assert.Equal(t, want.nodes, log.Cluster.Nodes)
		assert.Equal(t, 90, log.Cluster.Machine.SM())
		assert.Len(t, log.Graphs.Ring.Channels, want.rings)
		assert.Equal(t, want.intra, log.Graphs.Ring.TypeIntra)
		assert.Equal(t, want.version, log.Version)
		assert.Equal(t, want.net, log.Plugin)
		require.True(t, log.Table.Whole())
		comm := nccl.Describe(log.Cluster, log.Graphs)
		var computed, logged bytes.Buffer
		m, err := nccl.New(comm, nccl.Settings{})
		require.NoError(t, err)
		require.NoError(t, m.WriteTable(&computed))
		require.NoError(t, nccl.NewFromTable(comm, log.Table).WriteTable(&logged))
		assert.Contains(t, text(t, want.name), logged.String(), "as it was logged")
		assert.Equal(t, logged.String(), computed.String(), want.name)
	}
}

// Prefixes of every line make no difference.
func TestPrefixes(t *testing.T) {
	plain := text(t, "sockets-n8g4")
	with := regexp.MustCompile(`(?m)^`).ReplaceAllString(plain, "node-a:123:456 [0] NCCL INFO ")
	log, err := nccllog.Read(strings.NewReader(with), "f")
	require.NoError(t, err)
	assert.Equal(t, 32, log.Cluster.Ranks())
}

func TestReadErrors(t *testing.T) {
	whole := text(t, "h200x4-single-node")
	change := func(old, new string) string { return strings.Replace(whole, old, new, 1) }
	for want, text := range map[string]string{
		"f: no machine (=== System :): want NCCL_DEBUG=INFO": "hello",
		"f: no communicator":                                   change("comm 0x", "com 0x"),
		"f: 5 ranks on 1 nodes, 4 of them here":                change("nRanks 4", "nRanks 5"),
		"f: the tuning table is cut short":                     whole[:strings.Index(whole, "CollNetChain")],
		"f: a graph of 12 channels shows 11 of them":           change(" 1 : GPU", " 1 ! GPU"),
		"f: channel GPU/0-60 GPU/0-60 GPU/0-80 GPU/0-90: want": change(" 0 : GPU/0-60 GPU/0-70", " 0 : GPU/0-60 GPU/0-60"),
		"f: channel through GPU/0-61, which the machine does":  change(" 0 : GPU/0-60", " 0 : GPU/0-61"),
		`f:4: "PCI[48.0]": want a node of the machine`:         change("+ PCI[5000.0] - NIC/0-0", "PCI[48.0]"),
	} {
		_, err := nccllog.Read(strings.NewReader(text), "f")
		require.Error(t, err, want)
		assert.True(t, strings.HasPrefix(err.Error(), want), "%v\nwant %v", err, want)
	}
}

func FuzzRead(f *testing.F) {
	for _, name := range []string{"h200x4-single-node", "sockets-n8g4", "sockets-n14g1"} {
		f.Add(text(f, name))
	}
	f.Fuzz(func(t *testing.T, text string) {
		if log, err := nccllog.Read(strings.NewReader(text), "f"); err == nil {
			assert.Positive(t, log.Cluster.Ranks())
		}
	})
}
