package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The shards of a study, put together, are the study; a scheduler's variables
// stand for --shard.
func TestShards(t *testing.T) {
	t.Chdir(t.TempDir())
	study := []string{"sim", "--nodes", "1,2", "--algo", "ring,tree", "--sizes", "1K,1M,4M", "--csv"}
	whole, _, code := tutti(study...)
	require.Zero(t, code)
	files := []string{"merge"}
	for _, i := range []string{"0", "1", "2", "3", "4"} {
		part, _, code := tutti(append(study, "--shard", i+"/5")...)
		require.Zero(t, code)
		t.Setenv("JOB_COMPLETION_INDEX", i)
		t.Setenv("COMPLETIONS", "5")
		same, _, _ := tutti(study...)
		require.Equal(t, part, same)
		require.NoError(t, os.WriteFile(i+".csv", []byte(part), 0o600))
		files = append(files, i+".csv")
	}
	merged, _, code := tutti(files...)
	assert.Zero(t, code)
	assert.Equal(t, whole, merged)
}

func TestShardErrors(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("empty.csv", nil, 0o600))
	require.NoError(t, os.WriteFile("other.csv", []byte("a,b\n"), 0o600))
	for args, want := range map[string]struct {
		code int
		text string
	}{
		"sim --shard 5/5":                          {2, "--shard 5/5: want I/N with I from 0 to N-1, as in 0/8"},
		"sim --shard auto":                         {2, "--shard auto: neither SLURM_ARRAY_TASK_ID nor JOB_COMPLETION_INDEX is set with its count"},
		"sim --nodes 1 --sizes 8 --shard 7/9":      {2, "shard 7 of 9 has no cases: want at most as many shards as cases"},
		"sim --nodes 2 --fabric moon --sizes 8":    {2, "--fabric: "},
		"sim --fault link=x":                       {2, `--fault: "link=x": want link=NAME,rate=SHARE with a share above 0 and at most 1`},
		"merge":                                    {2, "requires at least 1 arg(s)"},
		"merge nowhere.csv":                        {1, "open nowhere.csv: no such file or directory"},
		"merge empty.csv":                          {1, "empty.csv: empty: want the CSV of tutti sim --csv; did that shard fail?"},
		"merge other.csv":                          {1, "other.csv:1: want the header source,machine,…"},
		"whatif --nodes 1":                         {2, "--versus is missing"},
		"whatif --nodes 1 --versus now":            {2, `--versus: "now" is no flag`},
		"whatif --nodes 1 --versus --fast":         {2, "--versus: unknown flag: --fast"},
		"trace --out x.png":                        {2, "--out x.png: want a name in .json or .svg"},
		"trace --nodes 64 --size 1G --channels 16": {2, "more than 4194304 steps: want fewer nodes, channels or bytes"},
		"trace --nodes 8 --size 1G -O x.svg":       {2, "steps are too many for a picture: want at most 20000, or --out in .json"},
		"sim --nodes 16384 --algo tree --sizes 1G --no-symmetry --memory 1G": {1, "tree over simple on 131072 GPUs needs about"},
	} {
		out, notes, code := tutti(strings.Fields(args)...)
		assert.Contains(t, notes, want.text, args)
		assert.Equal(t, want.code, code, args)
		assert.Empty(t, out, args)
	}
}

func TestWhatif(t *testing.T) {
	out, _, code := tutti("whatif", "--nodes", "1", "--algo", "ring", "--sizes", "64M", "--proto", "simple", "--csv", "--versus", "--proto ll128 --channels 8")
	assert.Zero(t, code)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	require.Len(t, lines, 2)
	assert.Equal(t, "ranks,size(B),algo,proto,time(us),busbw(GB/s),held up by,time'(us),busbw'(GB/s),held up by',change(%)", lines[0])
	assert.Contains(t, lines[1], "8,67108864,ring,simple > ll128,")
}

func TestTrace(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"t.json", "t.svg"} {
		out, _, code := tutti("trace", "--nodes", "2", "--gpus", "2", "--size", "1M", "--out", name)
		require.Zero(t, code)
		assert.Contains(t, out, name+": 28 steps of 4 workers, ")
	}
	text, err := os.ReadFile("t.json")
	require.NoError(t, err)
	assert.True(t, json.Valid(text))
}
