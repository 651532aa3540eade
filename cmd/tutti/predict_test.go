package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// From the log of a job to what to expect of it: NCCL's times are those of its
// table, tutti's within 15 % of what the same machine was measured to take.
func TestPredict(t *testing.T) {
	out, notes, code := tutti("predict", "--nccl-log", "../../experiments/nccllog/testdata/h200x4-single-node.txt", "--sizes", "8,2M,16M,1G")
	assert.Zero(t, code)
	assert.Contains(t, notes, "NCCL 2.28.3, 4 ranks, 1 x 4 GPUs")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	require.Len(t, lines, 5)
	for i, want := range []string{"8 ring/ll 1 10.20", "2097152 ring/ll 24 32.51", "16777216 ring/simple 24 98.71", "1073741824 ring/simple 24 4502.72"} {
		assert.Equal(t, want, strings.Join(strings.Fields(lines[1+i])[:4], " "))
	}
	out, _, code = tutti("predict", "--nodes", "16384", "--csv", "-q")
	assert.Zero(t, code)
	assert.Contains(t, out, "model,dgx-h100,allreduce,tree,ll,16384,131072,")
	out, _, code = tutti("predict", "--machine", "h200x4", "--coll", "reducescatter", "--sizes", "64K", "--csv", "-q")
	assert.Zero(t, code)
	assert.Contains(t, out, "model,h200x4,reducescatter,ring,ll,1,4,")
}

func TestPredictErrors(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("x.log", []byte("nothing of NCCL's\n"), 0o600))
	for args, want := range map[string]struct {
		code int
		text string
	}{
		"--nccl-log nowhere.log":     {1, "open nowhere.log: no such file or directory"},
		"--nccl-log x.log":           {1, "x.log: no machine (=== System :): want NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,GRAPH,TUNING from the start of the job"},
		"--nccl-log x.log --nodes 2": {2, "--nccl-log and --nodes exclude each other: want one of them"},
		"--gpus 1":                   {2, "a single rank has nothing to exchange"},
		"--profile a100-nvswitch":    {1, "profile a100-nvswitch: no value for handover.network.ring.ll, handover.network.ring.ll128, handover.network.ring.simple, handover.network.tree.ll, handover.network.tree.ll128, handover.network.tree.simple, handover.network.nvls.simple, handover.network.nvlstree.simple, latency.c2c, latency.pci, latency.sys, latency.net, efficiency.c2c, efficiency.pci, efficiency.sys, efficiency.net: lay it over another, as in --profile h200-nvswitch,ndr-rail"},
		"--coll alltoall":            {2, "NCCL's table has no way that carries out alltoall: tutti tune --coll alltoall has tutti's own"},
		"-o xor":                     {2, `-o: unknown operation "xor": want one of sum, prod, min, max, avg`},
	} {
		out, notes, code := tutti(append([]string{"predict"}, strings.Fields(args)...)...)
		assert.Equal(t, "tutti: "+want.text+"\n", notes, args)
		assert.Equal(t, want.code, code, args)
		assert.Empty(t, out, args)
	}
}
