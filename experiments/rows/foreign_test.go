package rows_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tutti/experiments/rows"
	"tutti/model"
	"tutti/model/units"
)

// sampleLog has the layout of all_reduce_perf of nccl-tests 2.17.
const sampleLog = `# Collective test starting: all_reduce_perf
# nThread 1 nGpus 2 minBytes 1024 maxBytes 2048 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0
#
# Using devices
#  Rank  0 Group  0 Pid  12345 on     node-a device  0 [0000:01:00] NVIDIA H200
#  Rank  1 Group  0 Pid  12345 on     node-b device  0 [0000:01:00] NVIDIA H200
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
        1024           256     float     sum      -1    10.24    0.10    0.10      0    10.10    0.10    0.10      0
node-a:12345:12345 [0] NCCL INFO Channel 00/24 : 0 1
        2048           512     float     sum      -1    10.50    0.20    0.20      0    10.40    0.20    0.20      0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 0.1462
#
`

const sampleSeries = `collective,series,gpus,bytes,time_us_median,time_us_min,time_us_max,algbw_GBps,busbw_GBps
allreduce,nccl-default,4,8,10.166,10.146,10.263,0.00,0.00
allreduce,Ring-LL128,4,16,18.284,18.1,18.4,0.00,0.00
`

func TestReadForeign(t *testing.T) {
	like := rows.Row{Machine: "h200x4", Algorithm: model.Tree, Protocol: model.LL, Channels: 1}
	got, err := rows.Read(strings.NewReader(sampleLog), "log", like)
	require.NoError(t, err)
	want := rows.Row{Source: "log", Machine: "h200x4", Algorithm: model.Tree, Protocol: model.LL, Nodes: 2, Ranks: 2, Channels: 1,
		Datatype: model.Float32, Redop: model.Sum, Bytes: 1024, Time: units.FromMicroseconds(10.24)}
	require.Len(t, got, 2)
	assert.Equal(t, want, got[0])
	got, err = rows.Read(strings.NewReader(sampleSeries), "table", like)
	require.NoError(t, err)
	require.Len(t, got, 1, "a series that no schedule is known of is left out")
	assert.Equal(t, model.LL128, got[0].Protocol)
	got, err = rows.Read(strings.NewReader(sampleCSV), "csv", like)
	require.NoError(t, err)
	assert.Equal(t, sample, got)
}

// Nothing is read from a file that is not whole.
func TestReadForeignErrors(t *testing.T) {
	change := func(old, new string) string { return strings.Replace(sampleLog, old, new, 1) }
	cut := strings.Index(sampleLog, "# Out of bounds")
	for want, text := range map[string]string{
		"f: cut short after 2 rows: want the line # Avg bus bandwidth at the end": sampleLog[:cut],
		"f:11: 6 columns: want 13:": sampleLog[:strings.Index(sampleLog, "0.10    0.10      0")],
		"f:9: columns size count type redop time algbw busbw #wrong time algbw busbw #wrong: want size count type": change("    root ", ""),
		`f:11: time is "nan": want a number`:                                                          change("10.24", "nan"),
		`f:11: #wrong is "7": results were wrong`:                                                     change("0.10      0 ", "0.10      7 "),
		"f:14: Out of bounds values : 3 FAILED: results were wrong":                                   change("0 OK", "3 FAILED"),
		"f:13: busbw is 0.4 GB/s, and allreduce of 2 ranks has 0.20: want the log of that collective": change("0.20    0.20", "0.20    0.40"),
		"f: no rows": strings.Join(strings.Split(sampleLog, "\n")[:10], "\n"),
		"f: no list of devices (# Rank …): want the whole log": "# nThread 1\n",
		"f: not measured rows: want CSV with the header":       "hello\n",
		`f:2: time_us_median is "NaN": want a number`:          strings.Replace(sampleSeries, "nccl-default,4,8,10.166", "Ring-LL,4,8,NaN", 1),
	} {
		_, err := rows.Read(strings.NewReader(text), "f", rows.Row{Channels: 1})
		require.Error(t, err, want)
		assert.True(t, strings.HasPrefix(err.Error(), want), "%v\nwant %v", err, want)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(sampleLog)
	f.Add(sampleSeries)
	f.Add(sampleCSV)
	f.Fuzz(func(t *testing.T, text string) {
		list, err := rows.Read(strings.NewReader(text), "f", rows.Row{Machine: "m", Channels: 1})
		if err != nil {
			return
		}
		for _, r := range list {
			assert.Positive(t, r.Time)
			assert.Positive(t, r.Ranks)
		}
	})
}
