package main

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tutti/topo"
)

// writeShapes writes DGX H100s that lack a GPU, or every other NIC.
func writeShapes(t *testing.T) {
	t.Chdir(t.TempDir())
	full, err := topo.XML("dgx-h100")
	require.NoError(t, err)
	half := regexp.MustCompile(`<net [^>]*dev="[1357]"[^>]*/>`).ReplaceAll(full, nil)
	seven, rank := regexp.MustCompile(`(?s)<gpu dev="3".*?</gpu>`).ReplaceAll(full, nil), -1
	seven = regexp.MustCompile(`rank="\d+"`).ReplaceAllFunc(seven, func([]byte) []byte { rank++; return fmt.Appendf(nil, `rank="%d"`, rank) })
	require.NoError(t, os.WriteFile("half.xml", half, 0o600))
	require.NoError(t, os.WriteFile("seven.xml", bytes.TrimSpace(seven), 0o600))
}

// Every command takes machines of several shapes, or says plainly why not.
func TestMixedShapes(t *testing.T) {
	writeShapes(t)
	const mixture = "dgx-h100:2,seven.xml:1,half.xml:1"
	ring := "--algo ring --proto simple --plot none"
	for args, want := range map[string]string{
		"sim " + ring + " --sizes 64M":                       "\n    31  67108864 ",
		"sim " + ring + " --sizes 64M --links -q":            "node 3 NET mlx5_0 > leaf 0 ",
		"sim " + ring + " --sizes 4M --heatmap h.svg -q":     "\n    31  4194304 ",
		"sim --coll alltoall --sizes 1M --plot none":         "\n    31  1048544 ",
		"sim --algo nvlstree --sizes 1M --plot none":         " nvlstree ",
		"whatif " + ring + " --sizes 4M --against gdr=false": "\n    31  4194304 ",
		"trace --algo tree --size 64K -O t.svg":              "",
		"predict -b 64M -e 64M":                              "\n    67108864 ",
		"tune":                                               "\n        1024 ",
		"topo show":                                          "\n mlx5_6     1         400  PIX              6     6 \n",
		"topo show --format nccl":                            "\n# half.xml\n",
		"topo show --json":                                   `"machines": [`,
		"search":                                             "\n ring   0         mlx5_0 > 0 6 5 4 3 2 1 > mlx5_0    seven.xml \n",
		"search --format nccl":                               "\n# seven.xml\nRING  Pattern 4, ",
		"search --json --ranks all":                          `"machine": "half.xml",`,
		"schedule verify --algo nvlstree --size 1M":          "31 ranks on 4 nodes,",
		"sim --algo hierarchical --sizes 1M":                 "! " + mixture + ": hierarchical joins the GPUs of the same number on all machines, and 8 GPUs of dgx-h100 take part, and 7 of seven.xml: want ring or tree",
		"sim --algo railring --sizes 1M":                     "! rail rings pass every machine by the same rails, and 8 GPUs",
		"sim --algo collnet --sizes 1M":                      "! collnet on a network that reduces is simulated for NETs of the same number on all machines, and 8 GPUs",
		"sim --without mlx5_3 --sizes 1M":                    "! half.xml: --without mlx5_3: the machine has no such NIC: want some of mlx5_0, mlx5_2, mlx5_4, mlx5_6",
		"search --graph-file g.xml":                          "! --graph-file: want one machine: each of a mixture has graphs of its own",
		"sim --gpus 8":                                       "! 8 GPUs of seven.xml: want 1 to 7",
	} {
		out, notes, code := tutti(append(strings.Fields(args), "--machine", mixture)...)
		if refusal, refused := strings.CutPrefix(want, "! "); refused {
			assert.NotZero(t, code, args)
			assert.Contains(t, notes, refusal, args)
			continue
		}
		assert.Zero(t, code, "%s: %s", args, notes)
		assert.Contains(t, out, want, args)
	}
}

// Rows of a mixture are compared, and fitted to, like those of one machine.
func TestCompareMixed(t *testing.T) {
	writeShapes(t)
	out, notes, code := tutti("sim", "--machine", "dgx-h100:3,seven.xml:1", "--algo", "ring", "--proto", "ll", "-b", "64K", "-e", "2M", "-i", "64K", "--csv", "--plot", "none")
	require.Zero(t, code, notes)
	require.NoError(t, os.WriteFile("rows.csv", []byte(out), 0o600))
	out, notes, code = tutti("compare", "rows.csv")
	assert.Zero(t, code, notes)
	assert.Regexp(t, `all +sim +32 +0.0 % +0.0 % +0.0 %`, out)
	_, notes, code = tutti("profile", "fit", "rows.csv", "-o", "fit.yaml", "-q")
	assert.Zero(t, code, notes)
	for args, want := range map[string]string{
		"compare rows.csv --machine dgx-h100:2,seven.xml:2":        "31 ranks on 4 nodes: dgx-h100:2,seven.xml:2 has 30 on 4",
		"compare rows.csv --machine dgx-h100:3,seven.xml":          `--machine dgx-h100:3,seven.xml: "seven.xml" does not say how many: want NAME:N,…, as in dgx-h100:6,slow.xml:2`,
		"profile probe probe.csv --machine dgx-h100:3,seven.xml:1": "--machine dgx-h100:3,seven.xml:1: a probe is of one machine: want its name or FILE.xml",
	} {
		_, notes, code := tutti(strings.Fields(args)...)
		assert.NotZero(t, code, args)
		assert.Contains(t, notes, want, args)
	}
}
