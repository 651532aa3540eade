package rows_test

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tutti/experiments/rows"
	"tutti/model"
	"tutti/model/units"
)

var sample = []rows.Row{
	{Source: "sim", Machine: "dgx-h100", Collective: model.AllReduce, Algorithm: model.Ring, Protocol: model.LL, Nodes: 1, Ranks: 8, Channels: 1,
		Datatype: model.Float32, Redop: model.Sum, Bytes: 1024, Time: 15_600_123 * units.Picosecond},
	{Source: "nccl", Machine: "h200x4", Collective: model.AllReduce, Algorithm: model.NVLSTree, Protocol: model.Simple, Nodes: 16, Ranks: 128, Channels: 16,
		Datatype: model.BFloat16, Redop: model.Max, Bytes: 8 * units.GiB, Time: 45_196_968 * units.Nanosecond},
}

const sampleCSV = `source,machine,collective,algorithm,protocol,nodes,ranks,channels,datatype,redop,bytes,time_us,algbw_GBps,busbw_GBps
sim,dgx-h100,allreduce,ring,ll,1,8,1,float,sum,1024,15.600123,0.0656,0.1149
nccl,h200x4,allreduce,nvlstree,simple,16,128,16,bfloat16,max,8589934592,45196.968,190.0555,377.1415
`

func TestCSVReadsBackEqual(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, rows.WriteCSV(&b, sample))
	assert.Equal(t, sampleCSV, b.String())
	again, err := rows.ReadCSV(&b, "f")
	require.NoError(t, err)
	assert.Equal(t, sample, again)
}

// Results on real data have further columns, which read back, too.
func TestCSVOfDataReadsBackEqual(t *testing.T) {
	list := slices.Clone(sample)
	list[0].InPlace, list[1].Wrong = true, new(int64)
	*list[1].Wrong, list[1].Kernel = 3, "oneshot_ll"
	var b bytes.Buffer
	require.NoError(t, rows.WriteCSV(&b, list))
	assert.Contains(t, b.String(), ",busbw_GBps,inplace,wrong,kernel\n")
	again, err := rows.ReadCSV(&b, "f")
	require.NoError(t, err)
	assert.Equal(t, list, again)
}

func TestTable(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, rows.WriteTable(&b, sample))
	assert.Equal(t, ""+
		" ranks     size(B)       count      type  redop      algo   proto  channels  time(us)  algbw(GB/s)  busbw(GB/s) \n"+
		"     8        1024         256     float    sum      ring      ll         1     15.60         0.07         0.11 \n"+
		"   128  8589934592  4294967296  bfloat16    max  nvlstree  simple        16  45196.97       190.06       377.14 \n", b.String())
}

func TestJSON(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, rows.WriteJSON(&b, sample))
	var got struct {
		Schema string
		Rows   []map[string]any
	}
	require.NoError(t, json.Unmarshal(b.Bytes(), &got))
	assert.Equal(t, rows.Schema, got.Schema)
	require.Len(t, got.Rows, 2)
	names := strings.Split(strings.SplitN(sampleCSV, "\n", 2)[0], ",")
	assert.Len(t, got.Rows[0], len(names))
	for _, name := range names {
		assert.Contains(t, got.Rows[0], name)
	}
	assert.Equal(t, 15.600123, got.Rows[0]["time_us"])
}

func TestReadCSVErrors(t *testing.T) {
	change := func(old, new string) string { return strings.Replace(sampleCSV, old, new, 1) }
	for want, text := range map[string]string{
		"f: no rows: want the header source,":                             "",
		"f: columns size,count: want source,":                             "size,count\n1,2\n",
		`f:2: unknown algorithm "butterfly": want one of ring, tree`:      change("ring", "butterfly"),
		`f:2: time_us is "NaN": want a number above 0`:                    change("15.600123", "NaN"),
		`f:2: time_us is "-1": want a number above 0`:                     change("15.600123", "-1"),
		`f:3: ranks is "0": want a whole number from 1`:                   change("128", "0"),
		"f: record on line 3: wrong number of fields":                     change("45196.968,190.0555,377.1415", "45196.968"),
		"f: parse error on line 3, column 5: bare \" in non-quoted-field": change("nccl", "nccl\""),
	} {
		_, err := rows.ReadCSV(strings.NewReader(text), "f")
		require.Error(t, err, want)
		assert.True(t, strings.HasPrefix(err.Error(), want), "%v\nwant %v", err, want)
	}
}

func FuzzReadCSV(f *testing.F) {
	f.Add(sampleCSV)
	f.Fuzz(func(t *testing.T, text string) {
		list, err := rows.ReadCSV(strings.NewReader(text), "f")
		if err != nil {
			return
		}
		var b bytes.Buffer
		require.NoError(t, rows.WriteCSV(&b, list))
		again, err := rows.ReadCSV(&b, "f")
		require.NoError(t, err)
		require.Len(t, again, len(list))
	})
}

// The measured rows that are kept can all be read.
func TestMeasured(t *testing.T) {
	f, err := os.Open("../firstlight/measured.csv")
	require.NoError(t, err)
	defer f.Close()
	list, err := rows.ReadCSV(f, "measured.csv")
	require.NoError(t, err)
	assert.Len(t, list, 160)
}
