package main

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tutti/topo"
	"tutti/topo/fabric"
)

func TestTopoList(t *testing.T) {
	out, notes, code := tutti("topo", "list")
	assert.Zero(t, code)
	assert.Empty(t, notes)
	assert.Contains(t, out, "\n dgx-1v               8  sm_70         6           120  no           4        100  dgx-1     public NCCL dump (NVIDIA/nccl issue 671, GPUs 0 to 3) ")
	assert.Len(t, strings.Split(strings.TrimSpace(out), "\n"), 1+len(topo.Machines()))

	out, _, code = tutti("topo", "list", "--csv")
	assert.Zero(t, code)
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	require.NoError(t, err)
	assert.Equal(t, []string{"l40x4-pcie", "4", "sm_89", "-", "-", "no", "2", "100", "", "NVIDIA L40 product brief (PCIe Gen4 x16, no NVLink)"}, rows[len(rows)-1])

	out, _, code = tutti("topo", "list", "--json")
	assert.Zero(t, code)
	var list struct{ Machines []machineInfo }
	require.NoError(t, json.Unmarshal([]byte(out), &list))
	for i, m := range list.Machines {
		assert.Equal(t, topo.Machines()[i], m.Name)
		assert.NotEmpty(t, m.About, m.Name)
		assert.NotEmpty(t, m.Source, m.Name)
	}
}

func TestTopoFabric(t *testing.T) {
	out, _, code := tutti("topo", "fabric")
	assert.Zero(t, code)
	assert.Contains(t, out, " superpod-4su              2  adaptive  128 x dgx-h100   DGX SuperPOD of up to four scalable units")
	out, _, code = tutti("topo", "fabric", "--csv")
	assert.Zero(t, code)
	assert.Len(t, strings.Split(strings.TrimSpace(out), "\n"), 1+len(fabric.Names()))
	for _, name := range fabric.Names() {
		out, _, code = tutti("topo", "fabric", name)
		assert.Zero(t, code)
		_, err := fabric.Read([]byte(out), name)
		assert.NoError(t, err)
	}
	_, notes, code := tutti("topo", "fabric", "torus")
	assert.Equal(t, 2, code)
	assert.Contains(t, notes, `unknown fabric "torus": want one of fat-tree, `)
}

func TestTopoShow(t *testing.T) {
	out, notes, code := tutti("topo", "show", "--machine", "l40x4-pcie", "--nodes", "6", "--fabric", "fat-tree")
	assert.Zero(t, code)
	assert.Empty(t, notes)
	_, tables, _ := strings.Cut(out, "\n\n")
	assert.Equal(t, strings.TrimPrefix(`
 GPU  bus id        arch   NUMA  NVLinks  NVLink(GB/s)  PCI(GB/s) 
   0  0000:10:00.0  sm_89     0        0             0         24 
   1  0000:20:00.0  sm_89     0        0             0         24 
   2  0000:30:00.0  sm_89     1        0             0         24 
   3  0000:40:00.0  sm_89     1        0             0         24 

 NIC     NUMA  rate(Gb/s)  path  nearest GPUs  rail 
 mlx5_0     0         100  PIX   0-1              0 
 mlx5_1     1         100  PIX   2-3              1 

 path from  GPU0  GPU1  GPU2  GPU3  mlx5_0  mlx5_1 
 GPU0       LOC   PIX   SYS   SYS   PIX     SYS    
 GPU1       PIX   LOC   SYS   SYS   PIX     SYS    
 GPU2       SYS   SYS   LOC   PIX   SYS     PIX    
 GPU3       SYS   SYS   PIX   LOC   SYS     PIX    

6 x l40x4-pcie on fat-tree: 24 ranks, ecmp routing
 level  switches  ports down  ports up  cables  rate(Gb/s)  each way(TB/s)  latency(us)  SHARP 
 leaf          2           8        32      12         100            0.15            -  no    
 spine        32           2         0      64          25             0.2            -  no    
`, "\n"), tables)
}

// The matrix of nvidia-smi becomes a machine, which can be written and read
// again; a fabric names machine and number of nodes; the forms agree.
func TestTopoShowFiles(t *testing.T) {
	matrix, err := os.ReadFile("../../topo/smi/testdata/unfolded.txt")
	require.NoError(t, err)
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("matrix.txt", matrix, 0o600))
	first, _, code := tutti("topo", "show", "--machine", "matrix.txt", "--nic-rate", "mlx5_ib*=400,mlx5_eth*=25Gb/s", "--gpu-kind", "h200", "--xml", "m.xml")
	require.Zero(t, code)
	assert.Contains(t, first, "assumed: NVLinks go to NVSwitches, as a GPU has fewer than to all others together\n")
	assert.Contains(t, first, " mlx5_eth4     1          25  PHB   4-7          \n")
	second, _, code := tutti("topo", "show", "--machine", "m.xml", "--svg", "m.svg")
	require.Zero(t, code)
	_, tables, _ := strings.Cut(first, "\n\n")
	_, again, _ := strings.Cut(second, "\n\n")
	assert.Equal(t, tables, again)

	out, _, code := tutti("topo", "show", "--fabric", "nvl72-rails", "--json", "--xml", "rack.xml", "--svg", "rack.svg")
	require.Zero(t, code)
	var d description
	require.NoError(t, json.Unmarshal([]byte(out), &d))
	assert.Equal(t, "18-host gb200x4", d.Machine.Name)
	assert.Equal(t, 576, d.Cluster.Ranks)
	assert.Equal(t, 3, *d.NETs[71].Rail)
	rack, err := topo.Open("rack.xml")
	require.NoError(t, err)
	assert.Len(t, rack.GPUs, 72)
	for _, file := range []string{"m.svg", "rack.svg"} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.True(t, strings.HasSuffix(string(text), "</svg>\n"), file)
	}
}

// Whatever is wrong is told in one line that names it, and no file is left
// behind.
func TestTopoErrors(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("pcie.txt", []byte("GPU0 GPU1\nGPU0 X SYS\nGPU1 SYS X\n"), 0o600))
	require.NoError(t, os.WriteFile("notes.txt", []byte("nothing\n"), 0o600))
	require.NoError(t, os.WriteFile("rails.yaml", []byte("machine: dgx-h100\nnodes: 4\nrails: [ib0, ib1]\n"), 0o600))
	require.NoError(t, os.WriteFile("torn.yaml", []byte("leaf:\n  nodes: [\n"), 0o600))
	require.NoError(t, os.Mkdir("folder", 0o700))
	before, err := filepath.Glob("*")
	require.NoError(t, err)
	for args, want := range map[string]struct {
		code int
		text string
	}{
		"show --machine dgx-z80":                           {2, `--machine: unknown machine "dgx-z80": want one of ` + strings.Join(topo.Machines(), ", ") + ", or an NCCL topology FILE.xml"},
		"show --machine nowhere.xml":                       {1, "open nowhere.xml: no such file or directory"},
		"show --machine nowhere.txt":                       {1, "open nowhere.txt: no such file or directory"},
		"show --machine notes.txt":                         {1, "notes.txt:1: not the output of nvidia-smi topo -m: want a header that begins with GPU0"},
		"show --machine pcie.txt":                          {2, "pcie.txt: no NVLinks tell what the GPUs are: want their kind, one of a10, a100, b200, h100, h200, l40, v100 (see --gpu-kind, --nic-rate)"},
		"show --machine pcie.txt --gpu-kind z80":           {2, "--gpu-kind z80: want one of a10, a100, b200, h100, h200, l40, v100"},
		"show --machine pcie.txt --cpu-kind z80":           {2, "--cpu-kind z80: want one of amd, broadwell, emerald-rapids, grace, icelake, sapphire-rapids, skylake"},
		"show --machine pcie.txt --nic-rate fast":          {2, `--nic-rate: "fast" is not a rate: want a number with its unit, such as 400 Gb/s or 50 GB/s`},
		"show --machine pcie.txt --nic-rate 0":             {2, "--nic-rate: 0: want more than 0 and at most 1000000 Gb/s"},
		"show --machine dgx-h100 --nic-rate 400":           {2, "--nic-rate is for the output of nvidia-smi topo -m: want --machine FILE.txt"},
		"show --nodes 0":                                   {2, "--nodes 0: want 1 to 16384"},
		"show --gpus 9":                                    {2, "9 GPUs of dgx-h100: want 1 to 8"},
		"show --fabric torus":                              {2, `--fabric: unknown fabric "torus": want one of ` + strings.Join(fabric.Names(), ", ") + ", or a FILE.yaml"},
		"show --fabric fat-tree":                           {2, "--fabric fat-tree does not say how many machines it joins: want --nodes, too"},
		"show --fabric nowhere.yaml":                       {1, "open nowhere.yaml: no such file or directory"},
		"show --fabric torn.yaml":                          {1, "torn.yaml:2: sequence end token ']' not found"},
		"show --fabric rails.yaml":                         {2, "rails.yaml:3: rails: NET mlx5_0 of dgx-h100 is on none: want all of the machine's on one"},
		"show --fabric superpod-4su --nodes 129":           {2, "superpod-4su:12: spine.nodes: room for 128 machines, and there are 129"},
		"show --machine dgx-h100:2,dgx-h200":               {2, `--machine dgx-h100:2,dgx-h200: "dgx-h200" does not say how many: want NAME:N,…, as in dgx-h100:6,slow.xml:2`},
		"show --machine dgx-h100:0":                        {2, "--machine dgx-h100:0: 0 nodes: want 1 to 16384"},
		"show --machine dgx-h100:9999,dgx-h200:9999":       {2, "9999 nodes of dgx-h200: want 1 to 16384, of all together"},
		"show --machine dgx-h100:2,dgx-h200:1 --nodes 2":   {2, "--nodes: --machine dgx-h100:2,dgx-h200:1 is 3: leave --nodes out"},
		"show --machine dgx-h100:2,gb200x4:1 --gpus 5":     {2, "5 GPUs of gb200x4: want 1 to 4"},
		"show --machine dgx-h100:2,dgx-h200:1 --xml m.xml": {2, "--xml: want one machine: a mixture has no topology of its own"},
		"show --svg nowhere/x.svg":                         {1, "nowhere/x.svg: cannot be written: no such file or directory"},
		"show --xml folder":                                {1, "folder: there is something that is not a regular file"},
		"list --csv --json":                                {2, "--csv and --json exclude each other: want one of them"},
		"list all":                                         {2, `unknown command "all" for "tutti topo list"`},
		"draw":                                             {2, `unknown command "draw" for "tutti topo"`},
	} {
		out, notes, code := tutti(append([]string{"topo"}, strings.Fields(args)...)...)
		assert.Equal(t, "tutti: "+want.text+"\n", notes, args)
		assert.Equal(t, want.code, code, args)
		assert.Empty(t, out, args)
	}
	after, err := filepath.Glob("*")
	require.NoError(t, err)
	assert.Equal(t, before, after)
}

func TestTopoTellsFailedWrites(t *testing.T) {
	for _, args := range [][]string{{"list"}, {"fabric"}, {"fabric", "fat-tree"}, {"show"}, {"show", "--json"}} {
		err := run(full{}, full{}, append([]string{"topo"}, args...))
		require.EqualError(t, err, "writing the results: no space left")
	}
}

// What NCCL logged on a real machine is what tutti says of it.
func TestTopoShowAsNCCL(t *testing.T) {
	log, err := os.ReadFile("../../topo/search/testdata/log-sockets-n8g4.txt")
	require.NoError(t, err)
	i, j := strings.Index(string(log), "=== System"), strings.Index(string(log), "Pattern")
	out, _, code := tutti("topo", "show", "--machine", "../../topo/testdata/h200x4-live.xml", "--nodes", "8", "--format", "nccl")
	assert.Zero(t, code)
	assert.Equal(t, string(log[i:j]), out)
	_, notes, code := tutti("topo", "show", "--format", "html")
	assert.Equal(t, 2, code)
	assert.Contains(t, notes, "--format html: want one of table, nccl, json")
}
