package main

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// From a topology file to NCCL's table, line for line, and to its choices.
func TestTuneAsNCCL(t *testing.T) {
	text, err := os.ReadFile("../../model/tuning/nccl/testdata/golden.txt")
	require.NoError(t, err)
	compared := 0
	for _, block := range strings.Split(string(text), "=== xml/")[1:] {
		head, block, _ := strings.Cut(block, "\n")
		form := regexp.MustCompile(`^(\S+) nodes=(\d) nvls=(\d) collnet=(\d)`).FindStringSubmatch(head)
		require.NotNil(t, form, head)
		_, table, _ := strings.Cut(block[strings.Index(block, "TREE0"):], "\n")
		out, notes, code := tutti("tune", "--as", "nccl", "--machine", "../../topo/search/testdata/"+form[1], "--nodes", form[2], "--nvls="+form[3], "--collnet="+form[4])
		assert.Zero(t, code, notes)
		assert.Equal(t, table, out, head)
		compared++
	}
	assert.Equal(t, 22, compared)
	out, _, code := tutti("tune", "--as", "nccl", "--machine", "h200x4", "--by-size", "-b", "8", "--nccl-algo", "^nvls")
	assert.Zero(t, code)
	assert.Contains(t, out, "    allreduce: Ring/LL 8..2M (10.20..32.51); Ring/LL128 4M..8M (44.40..63.39); Ring/Simple 16M..8G (98.71..35820.20)\n")
}

func TestTuneErrors(t *testing.T) {
	for args, want := range map[string]string{
		"--as oracle":        "--as oracle: want tutti or nccl",
		"--export yaml":      "--export yaml: want one of nccl-tuner, env, mscclpp",
		"--export env --csv": "--csv and --export exclude each other: want one of them",
		"--coll gather":      `--coll: unknown collective "gather": want one of allreduce, allgather, reducescatter, broadcast, reduce, alltoall, sendrecv, exchange`,
		"--profile h300":     `--profile: unknown profile "h300": want one of a100-nvswitch, b200-nvswitch, h100-nvswitch, h200-nvswitch, ndr-rail, v100-nvlink, or a FILE.yaml`,
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

// Every collective has its winners, of one node and of several.
func TestTuneCollectives(t *testing.T) {
	for _, c := range []string{"allgather", "reducescatter", "broadcast", "reduce", "alltoall", "sendrecv", "exchange"} {
		for _, nodes := range []string{"1", "2"} {
			out, notes, code := tutti("tune", "--coll", c, "--nodes", nodes, "--csv")
			assert.Zero(t, code, c)
			assert.NotEmpty(t, out, c)
			assert.Empty(t, notes, c)
		}
	}
}

// On an NVSwitch host tutti's own kernels stand beside NCCL's ways, and not among
// what is exported for NCCL.
func TestTuneKernels(t *testing.T) {
	out, _, code := tutti("tune", "--machine", "h200x4", "--sizes", "1M", "--explain")
	assert.Zero(t, code)
	assert.Contains(t, out, "tutti/twoshot_ll128")
	assert.Contains(t, out, "ring/ll ")
	for _, c := range []string{"allgather", "reducescatter", "broadcast", "reduce", "alltoall", "sendrecv"} {
		out, _, code = tutti("tune", "--machine", "h200x4", "--coll", c, "--sizes", "1M", "--explain")
		assert.Zero(t, code, c)
		assert.Contains(t, out, "tutti/oneshot_ll128", c)
	}
	out, _, code = tutti("tune", "--machine", "h200x4", "--export", "nccl-tuner")
	assert.Zero(t, code)
	assert.NotContains(t, out, "twoshot")
}

// The winners cover all sizes without a gap, what is exported says the same, and
// every form can be written.
func TestTuneWinners(t *testing.T) {
	t.Chdir(t.TempDir())
	_, _, code := tutti("tune", "--nodes", "2", "-b", "8", "--plot", "x.svg")
	assert.Zero(t, code)
	out, notes, code := tutti("tune", "--nodes", "2", "-b", "8", "--csv")
	assert.Zero(t, code)
	assert.Empty(t, notes)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	require.Greater(t, len(lines), 2)
	assert.Equal(t, "from_bytes,to_bytes,winner,channels,time_us,next,next_slower,nccl,nccl_slower", lines[0])
	tuner, _, code := tutti("tune", "--nodes", "2", "-b", "8", "--export", "nccl-tuner")
	assert.Zero(t, code)
	exported := strings.Split(strings.TrimSpace(tuner), "\n")
	next := 8
	for _, line := range lines[1:] {
		next = follows(t, next, strings.Split(line, ",")[:2])
	}
	assert.Equal(t, 8<<30+4, next)
	next = 8
	for _, line := range exported[1:] {
		next = follows(t, next, strings.Split(line, ",")[1:3])
	}
	assert.Equal(t, 8<<30+4, next)
	for _, form := range []string{"--json", "--explain", "--export=env", "--export=mscclpp"} {
		out, _, code := tutti("tune", form)
		assert.Zero(t, code, form)
		assert.NotEmpty(t, out, form)
	}
}

// follows checks that a range begins at a size and returns where the next begins.
func follows(t *testing.T, from int, ends []string) int {
	assert.Equal(t, strconv.Itoa(from), ends[0])
	to, err := strconv.Atoi(ends[1])
	require.NoError(t, err)
	return to + 4
}
