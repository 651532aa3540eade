package main

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tutti/topo"
)

// What the parts of a study give, in any order and form, is what the whole gives;
// what is missing, contradicts or is of another study is told.
func TestShardsMerge(t *testing.T) {
	t.Chdir(t.TempDir())
	study := []string{"sim", "--nodes", "1,2", "-f", "64", "-q"}
	run := func(file string, args ...string) {
		out, notes, code := tutti(append(study, args...)...)
		require.Zero(t, code, notes)
		require.NoError(t, os.WriteFile(file, []byte(out), 0o600))
	}
	whole, _, _ := tutti(append(study, "--csv")...)
	run("1.csv", "--csv", "--shard", "1/3")
	t.Setenv("SLURM_ARRAY_TASK_ID", "7")
	t.Setenv("SLURM_ARRAY_TASK_MIN", "5")
	t.Setenv("SLURM_ARRAY_TASK_STEP", "2")
	t.Setenv("SLURM_ARRAY_TASK_COUNT", "3")
	run("2.csv", "--csv")
	t.Setenv("SLURM_ARRAY_TASK_ID", "")
	t.Setenv("JOB_COMPLETION_INDEX", "2")
	run("3.csv", "--csv", "--shard", "auto/3")
	run("3.json", "--json", "--shard", "auto/3")
	run("other.csv", "--csv", "--shard", "1/3", "--proto", "simple")

	out, notes, code := tutti("merge", "--csv", "3.csv", "1.csv", "2.csv", "1.csv")
	assert.Zero(t, code)
	assert.Equal(t, whole, out)
	assert.Contains(t, notes, "rows stand there more than once, all alike")
	table, _, _ := tutti("merge", "3.csv", "1.csv", "2.csv")
	other, _, code := tutti("merge", "1.csv", "2.csv", "3.json")
	assert.Zero(t, code)
	assert.Equal(t, table, other)

	out, notes, code = tutti("merge", "1.csv", "3.csv")
	assert.Equal(t, 1, code)
	assert.NotEmpty(t, out)
	assert.Regexp(t, `^tutti: \d+ of 24 cases are missing: [\d,-]+\n$`, notes)
	_, notes, code = tutti("merge", "1.csv", "other.csv")
	assert.Equal(t, 1, code)
	assert.Contains(t, notes, "want parts of one")
	for file, rails := range map[string]string{"pairs.csv": "[0, 1], [2, 3], [4, 5], [6, 7]", "fours.csv": "[0, 1, 2, 3], [4, 5, 6, 7]"} {
		yaml := "rails: [" + regexp.MustCompile(`\d`).ReplaceAllString(rails, "mlx5_$0") + "]"
		require.NoError(t, os.WriteFile("rails.yaml", []byte(yaml), 0o600))
		run(file, "--csv", "--shard", "1/3", "--fabric", "rails.yaml")
	}
	_, notes, _ = tutti("merge", "pairs.csv", "fours.csv")
	assert.Contains(t, notes, "want parts of one")
	text, err := os.ReadFile("1.csv")
	require.NoError(t, err)
	slower := strings.Replace(string(text), ",tree,ll,1,8,1,float,sum,1024,", ",tree,ll,1,8,1,float,sum,1024,9", 1)
	require.NotEqual(t, string(text), slower)
	require.NoError(t, os.WriteFile("slower.csv", []byte(slower), 0o600))
	out, notes, code = tutti("merge", "1.csv", "slower.csv")
	assert.Equal(t, 1, code)
	assert.Empty(t, out)
	assert.Regexp(t, `allreduce tree over ll on 8 ranks of dgx-h100, 1 KiB takes .* in 1.csv, and .* in slower.csv`, notes)
}

// Every collective by every algorithm runs, or says why not.
func TestSimCombinations(t *testing.T) {
	for _, nodes := range []string{"1", "2"} {
		for _, c := range collectives() {
			out, notes, code := tutti("sim", "--nodes", nodes, "--coll", c.String(), "--algo",
				"ring,tree,nvls,nvlstree,collnet,collnetchain,pat,simplering,railring,oneshot,twoshot,hierarchical,p2p", "--sizes", "64K", "--csv")
			assert.Zero(t, code, notes)
			assert.Equal(t, 13, strings.Count(out, "\n")-1+strings.Count(notes, "left out: "), "%v on %s nodes", c, nodes)
			out, notes, code = tutti("sim", "--nodes", nodes, "--coll", c.String(), "--sizes", "64K", "--csv")
			assert.Zero(t, code, notes)
			assert.Greater(t, strings.Count(out, "\n"), 1)
		}
	}
}

func TestWhatif(t *testing.T) {
	t.Chdir(t.TempDir())
	out, notes, code := tutti("whatif", "--algo", "ring", "--sizes", "64M", "--fabric", "fat-tree", "--against", "oversubscription=4:1", "--against", "fabric=single-switch", "--plot", "x.png")
	assert.Zero(t, code)
	assert.Equal(t, "figure: x.png\n", notes)
	lines := strings.Split(out, "\n")
	assert.Equal(t, "# B: oversubscription 4:1, fabric fat-tree", lines[1])
	assert.Regexp(t, `^ +128 +67108864  ring/\w+ +[\d.]+  ring/\w+ +[\d.]+  [1-4]\.\d+  ring/\w+ +[\d.]+  0\.\d+ $`, lines[4])
	assert.FileExists(t, "x.png")
	for args, want := range map[string]string{
		"":                              "nothing to compare with: want --against FLAG=VALUE,…, or a list of fabrics",
		"--against speed=2":             `--against speed=2: "speed=2" is no setting: want FLAG=VALUE with one of machine, fabric, nodes, gpus, net-rate, without, oversubscription, routing, sharing, profile, algo, proto, channels, fault, straggler, jitter, seed, seeds, nic, queue-pairs, gdr`,
		"--against without=eth0":        "--against without=eth0: --without eth0: the machine has no such NIC: want some of mlx5_0, mlx5_1, mlx5_2, mlx5_3, mlx5_4, mlx5_5, mlx5_6, mlx5_7",
		"--against oversubscription=no": "--against oversubscription=no: --oversubscription no: want 0.01:1 to 1000:1, such as 2:1",
	} {
		out, notes, code := tutti(append([]string{"whatif"}, strings.Fields(args)...)...)
		assert.Equal(t, "tutti: "+want+"\n", notes)
		assert.Equal(t, 2, code)
		assert.Empty(t, out)
	}
}

// One machine with slower NICs holds up a ring as much as if all had such.
func TestWhatifMixed(t *testing.T) {
	t.Chdir(t.TempDir())
	text, err := topo.XML("dgx-h100")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile("slow.xml", []byte(strings.ReplaceAll(string(text), `speed="400000"`, `speed="200000"`)), 0o600))
	out, notes, code := tutti("whatif", "--nodes", "4", "--algo", "ring", "--proto", "simple", "--sizes", "1G", "--csv", "--plot", "w.svg",
		"--against", "machine=dgx-h100:3,slow.xml:1", "--against", "machine=slow.xml")
	assert.Zero(t, code, notes)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	require.Len(t, lines, 4)
	for i, want := range []string{"machine dgx-h100,1.0000,sim,dgx-h100,", `"machine dgx-h100:3,slow.xml:1",1.9871,sim,"dgx-h100:3,slow.xml:1",`, "machine slow.xml,1.9869,sim,slow.xml,"} {
		assert.True(t, strings.HasPrefix(lines[i+1], want), lines[i+1])
	}
	drawn, err := os.ReadFile("w.svg")
	require.NoError(t, err)
	assert.Contains(t, string(drawn), ">allreduce of 1 GiB, simulated<") // no machine is that of all
}

func TestShardErrors(t *testing.T) {
	for text, want := range map[string]string{
		"0/4":  "--shard 0/4: want 1/4 to 4/4, or auto/4",
		"1/no": `--shard 1/no: "no" is no number of parts: want I/N, as in 3/8, or auto/N`,
		"3":    "--shard 3: want I/N, as in 3/8, auto/N or auto",
		"auto": "--shard auto: neither SLURM_ARRAY_TASK_ID nor JOB_COMPLETION_INDEX is set",
		"9/9":  "shard 9 of 9 has no cases: there are 1",
	} {
		_, notes, code := tutti("sim", "--nodes", "1", "--algo", "ring", "--sizes", "1M", "--plot", "none", "--shard", text)
		assert.Equal(t, "tutti: "+want+"\n", notes)
		assert.Equal(t, 2, code)
	}
}

// A call beside another is told with its time alone.
func TestTogether(t *testing.T) {
	out, notes, code := tutti("sim", "--nodes", "2", "--gpus", "2", "--algo", "ring", "--sizes", "4M", "--csv", "--with", "coll=alltoall,bytes=1M,start=10us", "--with", "bytes=1K,after=1")
	assert.Zero(t, code, notes)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	require.Len(t, lines, 4)
	assert.Equal(t, "case,call,ranks,coll,algo,proto,channels,size(B),start(us),time(us),alone(us),slower(%),busbw(GB/s)", lines[0])
	assert.Regexp(t, `^0,1,4,alltoall,p2p,simple,\d+,1048576,10.00,[\d.]+,[\d.]+,\+[\d.]+,`, lines[2])
	for with, want := range map[string]string{
		"bytes=1K,after=1": `"1": want a number from 0 to 0`, "coll=allreduce": "want bytes=SIZE, as in bytes=64M", "nodes=3": `"nodes=3": want KEY=VALUE with some of after, algo, bytes, channels, coll, proto, root, start`,
	} {
		_, notes, code := tutti("sim", "--nodes", "1", "--sizes", "1M", "--plot", "none", "--with", with)
		assert.Equal(t, "tutti: --with "+with+": "+want+"\n", notes)
		assert.Equal(t, 2, code)
	}
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
	for args, want := range map[string]string{
		"trace --out x.png":                                             "--out x.png: want a name in .json or .svg",
		"trace --nodes 64 --size 1G --channels 16":                      "more than 4194304 steps: want fewer nodes, channels or bytes",
		"trace --nodes 8 --size 1G -O x.svg":                            "steps are too many for a picture: want at most 20000, or --out in .json",
		"sim --fault link=x,rate=2":                                     `--fault: "link=x,rate=2": want link=NAME,rate=SHARE with a share from 0 to 1`,
		"sim --nodes 1 --sizes 1M --algo ring --fault link=leaf,rate=0": `: fault on "leaf": no link in use has that in its name, as "node 0 GPU 0000:10:00.0 > node 0 NVS 0" has`,
		"sim --fault link=x,rate=1,rate=1":                              `--fault: "link=x,rate=1,rate=1": want link=NAME`,
		"sim --straggler rank=3":                                        `--straggler: "rank=3": want rank=N and delay=TIME, such as 50us, or slow=TIMES, from 1 up`,
		"sim --nodes 1 --straggler rank=8,slow=2":                       "--straggler: rank 8: want 0 to 7",
		"sim --jitter NaN%":                                             "--jitter NaN%: want a deviation such as 5%, above 0 and at most 100%",
		"sim --nic cpu":                                                 "--nic cpu: want proxy or gpu",
		"sim --queue-pairs -1":                                          "--queue-pairs -1: want 1 to 128, or 0 for no limit",
		"sim --sizes=":                                                  "--sizes is empty: want a value, or no --sizes",
		"whatif --against nodes=2,nodes=3":                              "--against nodes=2,nodes=3: nodes stands there twice",
		"trace --root 3":                                                "--root is for broadcast and reduce: allreduce has none",
		"trace --size 0":                                                "nothing to trace: no rank has anything to do: want more bytes",
		"sim --with bytes=1M --plot x.png":                              "--with and --plot exclude each other: want one of them",
		"sim --seeds 3":                                                 "--seeds without --jitter: nothing varies",
		"sim --fault link=x":                                            `--fault: "link=x": want link=NAME,rate=SHARE with a share from 0 to 1`,
	} {
		_, notes, code := tutti(strings.Fields(args)...)
		assert.Contains(t, notes, want)
		assert.Equal(t, 2, code)
	}
}

// The links' bytes are told as table, CSV and JSON, and drawn; the bottleneck that
// the result names comes first.
func TestSimLinks(t *testing.T) {
	t.Chdir(t.TempDir())
	call := []string{"sim", "--nodes", "2", "--algo", "ring", "--sizes", "256M"}
	out, notes, code := tutti(append(call, "--links=3", "--heatmap", "links.svg")...)
	assert.Zero(t, code)
	assert.Equal(t, "heat map: links.svg\n", notes)
	lines := strings.Split(out, "\n")
	assert.Contains(t, lines[0], "held up by node 0 GPU 0000:10:00.0 > node 0 PCI 0000:0f:00.0, 96 %")
	assert.Regexp(t, `^ +1  node 0 GPU 0000:10:00.0 > node 0 PCI 0000:0f:00.0 +16  62914560  +96\.\d +46\.\d+ +48 $`, lines[2])
	assert.Equal(t, "# and 7 more: --links=10", lines[5])
	drawn, err := os.ReadFile("links.svg")
	require.NoError(t, err)
	assert.Contains(t, string(drawn), "leaf &gt; NET")

	all, _, code := tutti(append(call, "--links=all", "--csv")...)
	assert.Zero(t, code)
	assert.Equal(t, 1+2*8*10, strings.Count(all, "\n"))
	text, _, code := tutti(append(call, "--links", "--json")...)
	assert.Zero(t, code)
	var file struct{ Cases []struct{ Links []linkRow } }
	require.NoError(t, json.Unmarshal([]byte(text), &file))
	assert.Len(t, file.Cases[0].Links, 10)
	for args, want := range map[string]string{
		"--links=0":                      "--links=0: want how many, from 1 up, or all",
		"--links --plot x.png":           "--links and --plot exclude each other: want one of them",
		"--heatmap x.txt":                "--heatmap: figure x.txt: want a name that ends in .png, .svg, .pdf",
		"--heatmap x.png --algo all":     "--heatmap draws one case, and these are 9: want one of --nodes, --algo, --proto and --sizes each",
		"--heatmap x.png --sizes 1M,32M": "--heatmap draws one case, and these are 3: want one of --nodes, --algo, --proto and --sizes each",
	} {
		_, notes, code := tutti(append(call, strings.Fields(args)...)...)
		assert.Equal(t, 2, code, args)
		assert.Equal(t, "tutti: "+want+"\n", notes)
	}
}
