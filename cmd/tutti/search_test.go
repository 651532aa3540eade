package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const goldenMachines = "../../topo/search/testdata/"

func TestSearchTable(t *testing.T) {
	out, notes, code := tutti("search", "--machine", "h200x4")
	assert.Zero(t, code)
	assert.Empty(t, notes)
	assert.Equal(t, strings.TrimPrefix(`
h200x4: 1 x 4 GPUs
channels: 24 for collectives, 16 for NVLS, 32 for sends (32 to each peer)

 graph     pattern        channels  inside(GB/s)  between(GB/s)  inside by  between by  ports 
 ring      ring                 12            30              -  NVL                 -  none  
 tree      balanced tree        12            30              -  NVL                 -  none  
 nvls      heads                 4            60              -  NVL                 -  none  
 railring  ring                  4          92.7              -  NVL                 -  none  

 graph     channels  way through a machine 
 ring      0-11      0 1 2 3               
 tree      0-11      0 1 2 3               
 nvls      0         0                     
 nvls      1         1                     
 nvls      2         2                     
 nvls      3         3                     
 railring  0         1 2 3 0               
 railring  1         0 3 2 1               
 railring  2         3 0 1 2               
 railring  3         2 1 0 3               
`, "\n"), out)
}

// The format of NCCL is the block that NCCL's own search gave.
func TestSearchAsNCCL(t *testing.T) {
	golden, err := os.ReadFile(goldenMachines + "golden.txt")
	require.NoError(t, err)
	_, block, found := strings.Cut(string(golden), "=== xml/h100x8_coll.xml nodes=4 nvls=1 collnet=1\n")
	require.True(t, found)
	out, _, code := tutti("search", "--machine", goldenMachines+"h100x8_coll.xml", "--nodes", "4", "--collnet=1", "--format", "nccl")
	assert.Zero(t, code)
	assert.Equal(t, block, out) // it is the last one

	out, _, _ = tutti("search", "--machine", "h200x4", "--nvls=0", "--format", "nccl", "--ranks", "all")
	assert.NotContains(t, out, "NVLS")
	assert.Contains(t, out, "\nrank 2 Ring 23 : 1 -> 2 -> 3\n")
	assert.Contains(t, out, "\nrank 3 Trees [0] -1/-1/-1->3->2 [1] -1/-1/-1->3->2 ")
}

func TestSearchJSON(t *testing.T) {
	out, _, code := tutti("search", "--machine", goldenMachines+"l40x4_pcie.xml", "--nodes", "2", "--json", "--ranks", "all")
	assert.Zero(t, code)
	var found struct {
		Schema string
		NVLS   string
		Graphs []struct {
			Graph    string
			Channels []struct{ GPUs []int }
		}
		Links []struct {
			Next []int `json:"ring_next"`
		}
	}
	require.NoError(t, json.Unmarshal([]byte(out), &found))
	assert.Equal(t, "tutti.search/1", found.Schema)
	assert.Equal(t, "NVLS needs an NVSwitch, and "+goldenMachines+"l40x4_pcie.xml has none", found.NVLS)
	assert.Equal(t, "ring", found.Graphs[0].Graph)
	assert.Equal(t, []int{2, 3, 1, 0}, found.Graphs[0].Channels[1].GPUs)
	assert.Equal(t, []int{1, 4, 1, 4}, found.Links[0].Next)
}

// A graph file that is written and given again changes nothing, and one that was
// edited does.
func TestSearchGraphFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "graph.xml")
	first, _, code := tutti("search", "--nodes", "2", "--graph-dump-file", file)
	require.Zero(t, code)
	again, _, code := tutti("search", "--nodes", "2", "--graph-file", file)
	require.Zero(t, code)
	assert.Equal(t, first, again)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	form, _, _ := tutti("search", "--nodes", "2", "--format", "xml")
	assert.Equal(t, string(text), form)
	require.NoError(t, os.WriteFile(file, []byte(strings.Replace(string(text), `nchannels="8"`, `nchannels="2"`, 1)), 0o644))
	edited, _, code := tutti("search", "--nodes", "2", "--graph-file", file)
	require.Zero(t, code)
	assert.Contains(t, edited, "channels: 8 for collectives") // four of two graph channels: GPUs since Hopper have more
}

// A cloud's template is a machine once the kind of GPU and the NICs' rate are known.
func TestSearchTemplate(t *testing.T) {
	complete, _, code := tutti("search", "--machine", "../../topo/testdata/azure-ndv5-8xH100.xml", "--gpu-kind", "h100", "--nic-rate", "400", "--nodes", "2", "--format", "nccl")
	require.Zero(t, code)
	built, _, _ := tutti("search", "--machine", "azure-nd-h100-v5", "--nodes", "2", "--format", "nccl")
	assert.Equal(t, built, complete)
}

// NCCL's settings change what is found: without crossing NICs, rings send by PXN.
func TestSearchEnv(t *testing.T) {
	out, _, code := tutti("search", "--nodes", "2", "--env", "NCCL_CROSS_NIC=0,NCCL_NVLS_ENABLE=0", "--format", "nccl")
	require.Zero(t, code)
	assert.Contains(t, out, "RING  Pattern 4, crossNic 0, nChannels 8, bw 45.000000/45.000000, type NVL/PXN, sameChannels 0\n")
	assert.NotContains(t, out, "NVLS ")
}

// The picture shows the first ways of rings and trees.
func TestSearchPicture(t *testing.T) {
	file := filepath.Join(t.TempDir(), "search.svg")
	_, _, code := tutti("search", "--nodes", "2", "--svg", file)
	require.Zero(t, code)
	picture, err := os.ReadFile(file)
	require.NoError(t, err)
	for _, label := range []string{">ring 0<", ">ring 1<", ">tree 0<", ">tree 1<"} {
		assert.Contains(t, string(picture), label)
	}
	assert.Equal(t, 2*9+2*8, strings.Count(string(picture), "<polygon")) // arrows
}

func TestSearchErrors(t *testing.T) {
	for args, want := range map[string]string{
		"--machine dgx-z80":                     `--machine: unknown machine "dgx-z80"`,
		"--gpu-kind z80":                        "--gpu-kind z80: want one of a10, a100, ",
		"--gpu-kind h100 --cpu-kind amd":        "--cpu-kind is for the output of nvidia-smi topo -m: want --machine FILE.txt",
		"--gpu-kind h100 --nic-rate mlx5_0=400": "--nic-rate: a template does not name its NICs: want one rate",
		"--env NCCL_CROSS_NIC=7":                "--env: NCCL_CROSS_NIC=7: want a number from 0 to 2",
		"--env NCCL_P2P_LEVEL=FAR":              "--env: NCCL_P2P_LEVEL=FAR: want a type of path from LOC to SYS, or a number from 0 to 5",
		"--env NCCL_DEBUG=INFO":                 "--env: NCCL_DEBUG is none of NCCL's variables that matter here: want NCCL_P2P_LEVEL, ",
		"--format html":                         "--format html: want one of table, nccl, xml, json",
		"--format nccl --json":                  "--json and --format exclude each other: want one of them",
		"--ranks 3 --json":                      "--ranks 3: want all",
		"--ranks all":                           "--ranks is for --format nccl and --json, not for table",
		"--nodes 0":                             "--nodes 0: want 1 to",
		"--gpus 9":                              "9 GPUs of dgx-h100: want 1 to 8",
		"--net-merge-level NVL":                 "--net-merge-level NVL: want one of LOC, PORT, PIX, PXB, P2C, PXN, PHB, SYS",
		"rings":                                 `unknown command "rings" for "tutti search"`,
	} {
		_, notes, code := tutti(append([]string{"search"}, strings.Fields(args)...)...)
		assert.Equal(t, 2, code, args)
		assert.Contains(t, notes, want)
	}
	for args, want := range map[string]string{
		"--gpu-kind h100":                               "a <gpu> element: this is no template, but says itself what its GPUs are",
		"--machine nowhere.xml":                         "nowhere.xml",
		"--graph-file nowhere.xml":                      "nowhere.xml",
		"--graph-file " + goldenMachines + "h100x8.xml": "not an NCCL graph file: want one <graphs> element at the top",
		"--graph-dump-file " + "nowhere/graph.xml":      "nowhere/graph.xml",
	} {
		_, notes, code := tutti(append([]string{"search"}, strings.Fields(args)...)...)
		assert.Equal(t, 1, code, args)
		assert.Contains(t, notes, want)
	}
}
