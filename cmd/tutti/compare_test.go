package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tutti/topo"
)

func TestCompare(t *testing.T) {
	rows, err := filepath.Abs("../../experiments/firstlight/measured.csv")
	require.NoError(t, err)
	t.Chdir(t.TempDir())
	out, _, code := tutti("compare", rows, "--by", "model", "--plot", "x.png")
	assert.Zero(t, code)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	assert.Regexp(t, `^all +model +160 +3\.\d % +\d\.\d % +1\d\.\d %$`, lines[len(lines)-1])
	_, err = os.Stat("x.png")
	assert.NoError(t, err)
	out, _, code = tutti("compare", rows, "--by", "model", "--csv")
	assert.Zero(t, code)
	assert.Len(t, strings.Split(strings.TrimSpace(out), "\n"), 161)
	assert.Contains(t, out, "busbw_GBps,model_us,model_error\n")
}

// The rows of tutti run, where libraries chose the way by size, are a series for each
// library; tutti's own kernels are told of by their constants.
func TestCompareRun(t *testing.T) {
	const measured = "../../experiments/hotkernels/h200x4.csv"
	out, notes, code := tutti("compare", measured, "--machine", "h200x4")
	assert.Zero(t, code)
	assert.Equal(t, "left out: 120 rows by NCCL's kernels for symmetric windows, which have no model\n", notes)
	assert.Regexp(t, `(?m)^ +268435456 hybrid_push +\d+\.\d+ +\d+\.\d+ +[+-]\d\.\d % +- +-$`, out)
	assert.Regexp(t, `(?m)^cuda on 4 ranks +model +60 +[1-3]\.\d % +\d\.\d % +\d\.\d %$`, out)
	assert.Regexp(t, `(?m)^nccl on 4 ranks in bfloat16 +sim +60 `, out)
	out, _, code = tutti("compare", measured, "--machine", "h200x4", "--by", "model", "--csv", "-q")
	assert.Zero(t, code)
	assert.Contains(t, out, ",busbw_GBps,kernel,model_us,model_error\n")
	_, notes, code = tutti("compare", measured)
	assert.Equal(t, 2, code)
	assert.Contains(t, notes, "want --machine NAME|FILE.xml, such as tutti topo show --machine live --xml FILE writes there")
}

// nccl-tests do not say which way NCCL chose: NCCL's own model does.
func TestCompareLog(t *testing.T) {
	log := "# nThread 1 nGpus 8\n# Collective test starting: all_reduce_perf\n"
	for rank := range 8 {
		log += fmt.Sprintf("#  Rank  %d Group  0 Pid  1 on  host device  %[1]d [0000:01:00] NVIDIA H100\n", rank)
	}
	log += "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n" +
		"1024 256 float sum -1 20.00 0.05 0.09 0 20.00 0.05 0.09 0\n" +
		"1073741824 268435456 float sum -1 4000.00 268.44 469.76 0 4000.00 268.44 469.76 0\n" +
		"# Avg bus bandwidth    : 234.9\n"
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("all_reduce.log", []byte(log), 0o600))
	out, _, code := tutti("compare", "all_reduce.log", "--machine", "dgx-h100", "--by", "model")
	assert.Zero(t, code)
	assert.Contains(t, out, "        1024 ring over ll              20.00")
	assert.Contains(t, out, "  1073741824 nvls over simple        4000.00")
	out, _, code = tutti("compare", "all_reduce.log", "--machine", "dgx-h100", "--by", "model", "--algo", "tree")
	assert.Zero(t, code)
	assert.Contains(t, out, "  1073741824 tree over simple        4000.00")
}

// What cannot be compared or fitted is told, and nothing is written.
func TestRowErrors(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("empty.csv", []byte("source,machine,collective,algorithm,protocol,nodes,ranks,channels,datatype,redop,bytes,time_us,algbw_GBps,busbw_GBps\n"), 0o600))
	require.NoError(t, os.WriteFile("few.csv", []byte("collective,series,gpus,bytes,time_us_median,time_us_min,time_us_max,algbw_GBps,busbw_GBps\nallreduce,Ring-LL,4,8,10,10,10,0,0\n"), 0o600))
	require.NoError(t, os.WriteFile("huge.csv", []byte("source,machine,collective,algorithm,protocol,nodes,ranks,channels,datatype,redop,bytes,time_us,algbw_GBps,busbw_GBps\nnccl,h200x4,allreduce,ring,ll,1,4,24,float,sum,4611686018427387904,10,0,0\n"), 0o600))
	for args, want := range map[string]struct {
		code int
		text string
	}{
		"compare huge.csv":                                                  {1, "4194304 TiB: want at most 1 TiB, more than a GPU's memory"},
		"compare empty.csv":                                                 {1, "empty.csv: no rows below the header"},
		"compare nowhere.csv":                                               {1, "open nowhere.csv: no such file or directory"},
		"compare few.csv":                                                   {2, "few.csv does not say which machine it was measured on: want --machine NAME|FILE.xml"},
		"compare few.csv --machine h200x4 --by hand":                        {2, "--by hand: want some of model, sim"},
		"compare few.csv --machine dgx-z80":                                 {1, (topo.UnknownMachineError("dgx-z80")).Error()},
		"profile fit few.csv --machine h200x4":                              {1, "1 rows over ll for 7 constants: want at least 14"},
		"profile fit few.csv --profile h300":                                {2, "few.csv does not say which machine it was measured on: want --machine NAME|FILE.xml"},
		"profile fit few.csv --machine h200x4 --keep copy":                  {2, "--keep: unknown constant copy: want one that tutti profile list h200-nvswitch has"},
		"profile list h300":                                                 {2, `--profile: unknown profile "h300": want one of a100-nvswitch, b200-nvswitch, h100-nvswitch, h200-nvswitch, ndr-rail, v100-nvlink, or a FILE.yaml`},
		"compare few.csv --machine h200x4 --profile a100-nvswitch,ndr-rail": {1, "profile a100-nvswitch,ndr-rail is for GPUs of compute capability 8.x, and h200x4 has 9.0: want another --profile"},
	} {
		out, notes, code := tutti(strings.Fields(args)...)
		assert.Equal(t, "tutti: "+want.text+"\n", notes, args)
		assert.Equal(t, want.code, code, args)
		assert.Empty(t, out, args)
	}
}
