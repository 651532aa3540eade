package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// From a topology file to NCCL's table, line for line, and to its choices.
func TestTuneAsNCCL(t *testing.T) {
	text, err := os.ReadFile("../../model/tuning/nccl/testdata/golden.txt")
	require.NoError(t, err)
	for _, machine := range []string{"h200x4", "h100x8", "b200x8"} {
		for _, nodes := range []string{"1", "2", "4"} {
			_, block, ok := strings.Cut(string(text), "=== xml/"+machine+".xml nodes="+nodes+" nvls=1 collnet=0\n")
			require.True(t, ok)
			block, _, _ = strings.Cut(block, "===")
			_, table, _ := strings.Cut(block[strings.Index(block, "TREE0"):], "\n")
			out, notes, code := tutti("tune", "--as", "nccl", "--machine", "../../topo/search/testdata/"+machine+".xml", "--nodes", nodes)
			assert.Zero(t, code)
			assert.Empty(t, notes)
			assert.Equal(t, table, out, "%s on %s nodes", machine, nodes)
		}
	}
	out, _, code := tutti("tune", "--as", "nccl", "--machine", "h200x4", "--by-size", "-b", "8", "--nccl-algo", "^nvls")
	assert.Zero(t, code)
	assert.Contains(t, out, "    allreduce: Ring/LL 8..2M (10.20..32.51); Ring/LL128 4M..8M (44.40..63.39); Ring/Simple 16M..8G (98.71..35820.20)\n")
}

func TestTuneErrors(t *testing.T) {
	for args, want := range map[string]string{
		"--as oracle":        "--as oracle: want nccl",
		"--nodes 0":          "--nodes 0: want 1 to 16384",
		"--nccl-algo star":   `NCCL_ALGO=star: unknown "star": want one of Tree, Ring, CollNetDirect, CollNetChain, NVLS, NVLSTree, PAT`,
		"--nccl-algo x:ring": `NCCL_ALGO=x:ring: unknown function "x": want one of Broadcast, Reduce, AllGather, ReduceScatter, AllReduce`,
		"--nccl-proto LL;LL": `NCCL_PROTO=LL;LL: only the first list may go without a function: want function:LL`,
	} {
		out, notes, code := tutti(append([]string{"tune"}, strings.Fields(args)...)...)
		assert.Equal(t, "tutti: "+want+"\n", notes, args)
		assert.Equal(t, 2, code, args)
		assert.Empty(t, out, args)
	}
}
