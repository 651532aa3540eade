package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tutti/experiments/rows"
)

// The table is nccl-tests', whatever the times are.
func TestRunTable(t *testing.T) {
	out, notes, code := tutti("run", "--sizes", "8,64K", "--algo", "ring", "--proto", "ll", "-n", "1", "--channels", "2")
	assert.Zero(t, code)
	assert.Regexp(t, `^no NVIDIA driver: cannot open libcuda.so.1: .*: running on the cores and memory of this computer \(--backend host\)\n$`, notes)
	out = regexp.MustCompile(`( {2} *[0-9.]+){3}( {2} +0)\b`).ReplaceAllString(out, "  TIME$2")
	out = regexp.MustCompile(`(bandwidth    : )[0-9.e-]+\n`).ReplaceAllString(out, "${1}X\n")
	assert.Equal(t, strings.TrimPrefix(`
# tutti host: allreduce on dgx-h100, 8 ranks in 1 nodes
# warmup iters: 1 iters: 1 validation: 1
#
#                                                             out-of-place                      in-place            
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong          algo   proto  nch
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)        
           8             2     float     sum      -1  TIME       0  TIME       0          ring      ll    2
       65536         16384     float     sum      -1  TIME       0  TIME       0          ring      ll    2
# Out of bounds values : 0 OK
# Avg bus bandwidth    : X
#
`, "\n"), out)
}

// Every collective, datatype and operation runs and is right; what cannot be in
// place has no such form.
func TestRunAll(t *testing.T) {
	for _, args := range []string{
		"-d all -o all --algo ring,twoshot", "-d half,uint8 -o avg,min --algo tree", "--coll allgather --algo all --nodes 2 --gpus 3", "--coll reducescatter --algo all -o avg -d half",
		"--coll broadcast -r all --gpus 3", "--coll reduce -r all -o max --gpus 3", "--coll alltoall --algo all", "--coll sendrecv", "--coll exchange --gpus 7",
	} {
		out, notes, code := tutti(append(strings.Fields("run -q --csv -n 1 -w 0 --sizes 4K"), strings.Fields(args)...)...)
		assert.Zero(t, code, "%s: %s", args, notes)
		list, err := rows.ReadCSV(strings.NewReader(out), args)
		require.NoError(t, err)
		require.NotEmpty(t, list)
		for _, r := range list {
			assert.Equal(t, "host", r.Source)
			require.NotNil(t, r.Wrong)
			assert.Zero(t, *r.Wrong)
		}
	}
	out, _, _ := tutti("run", "-q", "--coll", "sendrecv", "--sizes", "1K", "-n", "1")
	assert.Regexp(t, ` 0 +N/A +N/A +N/A +N/A +p2p`, out)
	out, _, _ = tutti("run", "-q", "--coll", "broadcast", "-r", "all", "--gpus", "3", "--sizes", "1K", "-n", "1")
	for _, root := range []string{"0", "1", "2"} {
		assert.Regexp(t, `float +none +`+root+` `, out)
	}
	out, _, _ = tutti("run", "-q", "--coll", "reduce", "-r", "1", "--sizes", "1K", "-n", "1", "-c", "0", "--json")
	var read struct{ Rows []map[string]any }
	require.NoError(t, json.Unmarshal([]byte(out), &read))
	require.Len(t, read.Rows, 2)
	assert.NotContains(t, read.Rows[0], "wrong")
	assert.Equal(t, true, read.Rows[1]["inplace"])
}

// What was measured before a run is given up is not lost.
func TestRunGivenUp(t *testing.T) {
	out, notes, code := tutti(strings.Fields("run -q --csv -g 2 --sizes 1K,64M -n 2000 -T 1")...)
	assert.Equal(t, 1, code)
	assert.Contains(t, notes, "64 MiB: given up: not done within 1s (-T)")
	list, err := rows.ReadCSV(strings.NewReader(out), "out")
	require.NoError(t, err)
	assert.Len(t, list, 2)
}

// Work that does not end when it is given up, as in a library, is left behind.
func TestWithin(t *testing.T) {
	ctx, stop := context.WithCancelCause(t.Context())
	stop(errors.New("too late"))
	forever := make(chan struct{})
	defer close(forever)
	err := within(ctx, time.Millisecond, func() error { <-forever; return nil })
	assert.EqualError(t, err, "given up: too late; it did not end 1ms later either, and is left behind")
	assert.ErrorIs(t, within(ctx, time.Minute, func() error { return io.EOF }), io.EOF)
}

// An exported schedule runs; one that was broken is refused, with the place.
func TestRunFile(t *testing.T) {
	t.Chdir(t.TempDir())
	_, notes, code := tutti("schedule", "export", "--algo", "tree", "--gpus", "3", "--file", "tree.json")
	require.Zero(t, code, notes)
	out, _, code := tutti("run", "-q", "--schedule", "tree.json", "-n", "1", "--csv")
	assert.Zero(t, code)
	assert.Contains(t, out, "host,tree.json,allreduce,tree,ll,1,3,1,float,sum,64,")
	text, err := os.ReadFile("tree.json")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile("broken.json", []byte(strings.Replace(string(text), `"input":true`, `"input":false`, 1)), 0o600))
	for _, args := range [][]string{{"run", "-q", "--schedule", "broken.json"}, {"schedule", "verify", "broken.json"}} {
		out, notes, code = tutti(args...)
		assert.Equal(t, 1, code)
		assert.Empty(t, out)
		assert.Contains(t, notes, "writes elements 0 to 16 of rank 0's output without the data of rank 0")
	}
}

func TestRunTellsFailedWrites(t *testing.T) {
	for _, form := range []string{"--csv", "--json", "--check=1"} {
		err := run(full{}, io.Discard, []string{"run", "--sizes", "1K", "-n", "1", form})
		require.EqualError(t, err, "writing the results: no space left")
		assert.Equal(t, 1, exitCode(err))
	}
}

func TestRunErrors(t *testing.T) {
	for args, want := range map[string]struct {
		code int
		text string
	}{
		"--backend abacus":                     {2, "--backend abacus: want some of [host cuda nccl nccl-symmetric], or auto alone"},
		"--backend host,auto":                  {2, "--backend auto: want some of [host cuda nccl nccl-symmetric], or auto alone"},
		"--backend=":                           {2, "--backend : want some of"},
		"--devices 0":                          {2, "--devices [0]: the host backend uses no GPUs (--backend cuda)"},
		"--probe --sweep":                      {2, "--sweep and --probe exclude each other: want one of them"},
		"--sweep --json":                       {2, "--sweep and --json exclude each other: want one of them"},
		"--probe --backend host":               {2, "--backend host: --probe, --sweep and --stress are of cuda alone"},
		"--stress -1s":                         {2, "--stress -1s: want more than 0"},
		"-d all,float":                         {2, "-d: all,float: want all alone, or some of [int8 uint8"},
		"-n 0":                                 {2, "-n 0: want at least 1"},
		"-w -1":                                {2, "-w -1: want 0 or more"},
		"-c 2":                                 {2, "-c 2: want 0 or 1"},
		"-T -1":                                {2, "-T -1: want a number of seconds, or 0 for no limit"},
		"-r 8":                                 {2, "-r 8: want a rank, 0 to 7, or all"},
		"-d word":                              {2, `-d: unknown datatype "word": want one of int8, uint8, int32, uint32, int64, uint64, half, float, double, bfloat16, or all`},
		"-d float,word":                        {2, `-d: unknown datatype "word": want one of int8, uint8, int32, uint32, int64, uint64, half, float, double, bfloat16, or all`},
		"--datatype=":                          {2, `-d: unknown datatype "": want one of int8, uint8, int32, uint32, int64, uint64, half, float, double, bfloat16, or all`},
		"-o xor":                               {2, `-o: unknown operation "xor": want one of sum, prod, min, max, avg, or all`},
		"--csv --json":                         {2, "--csv and --json exclude each other: want one of them"},
		"--schedule x.json --algo ring":        {2, "--schedule and --algo exclude each other: want one of them"},
		"--schedule x.json":                    {1, "--schedule: open x.json: no such file or directory"},
		"--coll alltoall --algo nvls":          {2, "nothing to run on 1 x dgx-h100: nvls does no alltoall: want allreduce or allgather or reducescatter"},
		"--nodes 2000 --algo ring -b 1T -e 1T": {1, "allreduce ring over simple on 16000 ranks, 1 TiB: allreduce of 1 TiB on 16000 ranks needs 32768000.0 GiB of memory for inputs and outputs, and this machine has"},
	} {
		out, notes, code := tutti(append([]string{"run", "-q"}, strings.Fields(args)...)...)
		assert.True(t, strings.HasPrefix(notes, "tutti: "+want.text), "%s: %s", args, notes)
		assert.Equal(t, want.code, code, args)
		assert.Empty(t, out, args)
	}
}
