package export_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tutti/model"
	"tutti/model/tuning/export"
	"tutti/model/tuning/nccl"
	"tutti/model/units"
)

var entries = []export.Entry{
	{Collective: model.AllReduce, From: 8, To: 128 * units.KiB, Algorithm: nccl.Tree, Protocol: model.LL, Channels: 4, Nodes: 2, Ranks: 16},
	{Collective: model.AllReduce, From: 128*units.KiB + 4, To: 8 * units.GiB, Algorithm: nccl.NVLSTree, Protocol: model.Simple, Channels: 16, Nodes: 2, Ranks: 16},
}

func TestReadsBackEqual(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, export.WriteTuner(&b, entries))
	assert.Equal(t, "# collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks\n"+
		"allreduce,8,131072,tree,ll,4,2,16\nallreduce,131076,8589934592,nvls_tree,simple,16,2,16\n", b.String())
	again, err := export.ReadTuner(&b, "f")
	require.NoError(t, err)
	assert.Equal(t, entries, again)
	b.Reset()
	require.NoError(t, export.WriteTable(&b, entries))
	again, err = export.ReadTable(&b, "f")
	require.NoError(t, err)
	assert.Equal(t, entries, again)
	b.Reset()
	require.NoError(t, export.WriteEnvironment(&b, entries))
	text := b.String()
	assert.NoError(t, export.CheckEnvironment(&b, "f", entries))
	assert.EqualError(t, export.CheckEnvironment(strings.NewReader(text), "f", entries[:1]), "f: NVLSTree is left for allreduce")
	assert.EqualError(t, export.CheckEnvironment(strings.NewReader("NCCL_ALGO=\"ring\"\n"), "f", entries), "f: Tree over ll is not left for allreduce")
	assert.EqualError(t, export.CheckEnvironment(strings.NewReader("NCCL_ALGO=ring\n"), "f", entries), `f:1: "NCCL_ALGO=ring": want NCCL_ALGO="…" or NCCL_PROTO="…"`)
	assert.Equal(t, nccl.Settings{Algo: "allreduce:Tree,NVLSTree", Proto: "allreduce:LL,Simple"}, export.Environment(entries))
}

func TestReadErrors(t *testing.T) {
	for want, text := range map[string]string{
		"f:1: 3 columns: want collective_type,": "a,b,c",
		`f:1: unknown collective "gather"`:      "gather,1,2,ring,ll,1,1,1",
		`f:2: unknown algorithm "star"`:         "#\nallreduce,1,2,star,ll,1,1,1",
		`f:1: "x": want a whole number`:         "allreduce,x,2,ring,ll,1,1,1",
		`f:1: sizes 4 to 2: want the smaller`:   "allreduce,4,2,ring,ll,1,1,1",
	} {
		_, err := export.ReadTuner(strings.NewReader(text), "f")
		assert.ErrorContains(t, err, want)
	}
}

func FuzzReadTuner(f *testing.F) {
	f.Add("allreduce,8,131072,tree,ll,4,2,16\n")
	f.Fuzz(func(t *testing.T, text string) {
		if list, err := export.ReadTuner(strings.NewReader(text), "f"); err == nil {
			var b bytes.Buffer
			require.NoError(t, export.WriteTuner(&b, list))
			again, err := export.ReadTuner(&b, "f")
			require.NoError(t, err)
			assert.Equal(t, list, again)
		}
	})
}

func FuzzReadTable(f *testing.F) {
	var b bytes.Buffer
	require.NoError(f, export.WriteTable(&b, entries))
	f.Add(b.String())
	f.Fuzz(func(t *testing.T, text string) {
		if list, err := export.ReadTable(strings.NewReader(text), "f"); err == nil {
			var b bytes.Buffer
			require.NoError(t, export.WriteTable(&b, list))
			again, err := export.ReadTable(&b, "f")
			require.NoError(t, err)
			assert.Equal(t, list, again)
		}
	})
}
