package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tutti/model"
	"tutti/topo"
)

// tutti runs the program as main does.
func tutti(args ...string) (stdout, stderr string, code int) {
	var out, errs bytes.Buffer
	err := run(&out, &errs, args)
	if err != nil {
		errs.WriteString("tutti: " + err.Error() + "\n")
		code = exitCode(err)
	}
	return out.String(), errs.String(), code
}

func TestSimTable(t *testing.T) {
	out, notes, code := tutti("sim", "--nodes", "1,2", "--sizes", "1K,256M", "--plot", "none")
	assert.Zero(t, code)
	assert.Empty(t, notes)
	assert.Equal(t, strings.TrimPrefix(`
 ranks    size(B)     count   type  redop      algo   proto  channels  time(us)  algbw(GB/s)  busbw(GB/s)  of bound  held up by                                              
     8       1024       256  float    sum      ring      ll         1     18.70         0.05         0.10       0 %  latency, 87 %                                           
     8  268435456  67108864  float    sum      ring  simple        24   1368.46       196.16       343.28      82 %  node 0 GPU 0000:10:00.0 > node 0 NVS 0, 95 %            
     8       1024       256  float    sum      tree      ll         1     21.50         0.05         0.08       0 %  latency, 97 %                                           
     8  268435456  67108864  float    sum      tree  simple        24   2078.37       129.16       226.02      54 %  node 0 GPU 0000:20:00.0 > node 0 NVS 0, 72 %            
     8       1024       256  float    sum      nvls  simple        16     25.17         0.04         0.07       0 %  latency, 100 %                                          
     8  268435456  67108864  float    sum      nvls  simple        16   1063.38       252.44       441.77      60 %  node 0 GPU 0000:10:00.0 > node 0 NVS 0, 90 %            
    16       1024       256  float    sum      ring      ll         1     41.12         0.02         0.05       0 %  latency, 88 %                                           
    16  268435456  67108864  float    sum      ring  simple        16   1359.82       197.40       370.13      88 %  node 0 GPU 0000:10:00.0 > node 0 PCI 0000:0f:00.0, 96 % 
    16       1024       256  float    sum      tree      ll         1     32.66         0.03         0.06       0 %  latency, 97 %                                           
    16  268435456  67108864  float    sum      tree   ll128        16   3000.13        89.47       167.76      40 %  copying by rank 0 channel 2 down, 94 %                  
    16       1024       256  float    sum  nvlstree  simple        16     52.34         0.02         0.04       0 %  latency, 100 %                                          
    16  268435456  67108864  float    sum  nvlstree  simple        16   1356.80       197.84       370.96      49 %  copying by rank 0 channel 1 gather, 76 %                
`, "\n"), out)
}

// The same call gives the same bytes, whatever the form, and the forms agree.
func TestSimIsDeterministic(t *testing.T) {
	for _, form := range [][]string{{"--csv"}, {"--json"}, {"--plot", "x.png"}, {"--plot", "x.svg"}, {"--plot", "x.pdf"}} {
		var first, figure string
		for range 2 {
			t.Chdir(t.TempDir())
			out, _, code := tutti(append([]string{"sim", "-b", "1K", "-e", "16M", "-f", "16", "--nodes", "1,3"}, form...)...)
			require.Zero(t, code)
			drawn, err := os.ReadFile(form[len(form)-1])
			require.Equal(t, len(form) == 2, err == nil)
			if first != "" {
				assert.Equal(t, first, out, form)
				assert.Equal(t, figure, string(drawn), form)
			}
			first, figure = out, string(drawn)
		}
	}
}

// Whatever is wrong is told in one line that names it, with exit code 2 for bad
// usage and 1 for a failure, and no file is left behind.
func TestSimErrors(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	require.NoError(t, os.WriteFile("page.xml", []byte("<html><body/></html>"), 0o600))
	require.NoError(t, os.WriteFile("torn.xml", []byte("<system version=\"1\">\n<cpu"), 0o600))
	before, err := filepath.Glob("*")
	require.NoError(t, err)
	for args, want := range map[string]struct {
		code int
		text string
	}{
		"--machine nowhere.xml": {1, "open nowhere.xml: no such file or directory"},
		"--machine page.xml":    {1, "page.xml: not an NCCL topology: want one <system> element at the top"},
		"--machine torn.xml":    {1, "torn.xml:2: not XML: unexpected EOF"},
		"--machine dgx-z80":     {2, `--machine: unknown machine "dgx-z80": want one of ` + strings.Join(topo.Machines(), ", ") + `, or an NCCL topology FILE.xml`},
		"--nodes 0":             {2, "--nodes 0: want 1 to 16384"},
		"--nodes 1000000000":    {2, "--nodes 1000000000: want 1 to 16384"},
		"--nodes many":          {2, `invalid argument "many" for "--nodes" flag: strconv.Atoi: parsing "many": invalid syntax (see tutti sim --help)`},
		"--gpus 9":              {2, "9 GPUs of dgx-h100: want 1 to 8"},
		"-b many":               {2, `-b: "many" is not a size: want a number of bytes, or one with K, M, G or T (powers of 1024), such as 64M`},
		"-b 0":                  {2, "-b: size of 0 bytes: want at least one element of float, 4 bytes"},
		"-b 2G -e 1G":           {2, "-b 2G is above -e 1G: want at most that"},
		"-f 1":                  {2, "-f 1: want a factor of at least 2"},
		"-i 4 -e 1G":            {2, "more than 10000 sizes from -b 1K to -e 1G: want a larger step"},
		"--sizes 3T":            {2, "--sizes: size of 3 TiB: want at most 1 TiB"},
		"--sizes 1M -b 8":       {2, "--sizes and --minbytes exclude each other: want one of them"},
		"--algo butterfly":      {2, `--algo: unknown algorithm "butterfly": want one of ring, tree, nvls, nvlstree, collnet, collnetchain, pat, simplering, railring, oneshot, twoshot, hierarchical, p2p, all or auto`},
		"--proto tcp":           {2, `--proto: unknown protocol "tcp": want one of ll, ll128, simple, all or auto`},
		"--coll gossip":         {2, `--coll: unknown collective "gossip": want one of allreduce, allgather, reducescatter, broadcast, reduce, alltoall, sendrecv, exchange`},
		"--algo nvls --nodes 2 --fabric fat-tree": {2, "nothing to simulate: 2 x dgx-h100: nvls spans one machine, not 2: want nvlstree"},
		"--algo nvls --gpus 2 --nodes 1":          {2, "nothing to simulate: 1 x dgx-h100: NVLS needs three GPUs or more on a machine, and 2 take part"},
		"--algo nvls --proto ll --nodes 1":        {2, "nothing to simulate: 1 x dgx-h100: nvls does not run over ll: want simple"},
		"-d quaternion":                           {2, `-d: unknown datatype "quaternion": want one of int8, uint8, int32, uint32, int64, uint64, half, float, double, bfloat16`},
		"-o xor":                                  {2, `-o: unknown operation "xor": want one of sum, prod, min, max, avg`},
		"--channels 65":                           {2, "--channels 65: want 1 to 64, or 0 for NCCL's choice"},
		"--plot table.txt":                        {2, "--plot: figure table.txt: want a name that ends in .png, .svg, .pdf, or --plot none"},
		"--plot nowhere/x.png":                    {1, "figure nowhere/x.png: cannot be written: no such file or directory (--plot PATH writes elsewhere, --plot none nothing)"},
		"--csv --json":                            {2, "--csv and --json exclude each other: want one of them"},
		"--fast":                                  {2, "unknown flag: --fast (see tutti sim --help)"},
		"now":                                     {2, `unknown command "now" for "tutti sim"`},
	} {
		out, notes, code := tutti(append([]string{"sim"}, strings.Fields(args)...)...)
		assert.Equal(t, "tutti: "+want.text+"\n", notes, args)
		assert.Equal(t, want.code, code, args)
		assert.Empty(t, out, args)
	}
	_, notes, code := tutti("simulate")
	assert.Equal(t, 2, code)
	assert.Contains(t, notes, `unknown command "simulate"`)
	after, err := filepath.Glob("*")
	require.NoError(t, err)
	assert.Equal(t, before, after)
}

// What a cluster cannot run is left out with a note where it was asked for by
// name.
func TestSimNotes(t *testing.T) {
	out, notes, code := tutti("sim", "--nodes", "1,2", "--fabric", "fat-tree", "--algo", "nvls,nvlstree", "--sizes", "1M", "--csv")
	assert.Zero(t, code)
	assert.Len(t, strings.Split(strings.TrimSpace(out), "\n"), 3)
	assert.Equal(t, "left out: 1 x dgx-h100: nvlstree joins several machines: want nvls on one\n"+
		"left out: 2 x dgx-h100: nvls spans one machine, not 2: want nvlstree\n", notes)
	_, notes, _ = tutti("sim", "--nodes", "1,2", "--fabric", "fat-tree", "--algo", "nvls,nvlstree", "--sizes", "1M", "--csv", "-q")
	assert.Empty(t, notes)
}

// full is a writer that has no room.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestSimTellsFailedWrites(t *testing.T) {
	for _, form := range []string{"--csv", "--json", "--plot=none"} {
		err := run(full{}, io.Discard, []string{"sim", "--nodes", "1", "--sizes", "1K", form})
		require.EqualError(t, err, "writing the results: no space left")
		assert.Equal(t, 1, exitCode(err))
	}
}

func TestSizes(t *testing.T) {
	for args, want := range map[string]string{
		"-b 8 -e 100":                     "8 16 32 64",
		"-b 10 -e 70 -f 3":                "8 28",
		"-b 4 -e 12 -i 4":                 "4 8 12",
		"-b 1T -e 2T -f 16777217":         "1099511627776",
		"--sizes 6,1K,7,1.5K -d bfloat16": "6 1024 1536",
	} {
		var f sizeFlags
		c := &cobra.Command{}
		f.register(c)
		d := c.Flags().StringP("datatype", "d", "float", "")
		require.NoError(t, c.ParseFlags(strings.Fields(args)))
		datatype, err := model.ParseDatatype(*d)
		require.NoError(t, err)
		sizes, err := f.sizes(c, datatype)
		require.NoError(t, err, args)
		var got []string
		for _, s := range sizes {
			got = append(got, strconv.FormatInt(int64(s), 10))
		}
		assert.Equal(t, want, strings.Join(got, " "), args)
	}
}

func TestHelp(t *testing.T) {
	out, _, code := tutti()
	assert.Zero(t, code)
	assert.Contains(t, out, "sim")
	out, _, code = tutti("sim", "--help")
	assert.Zero(t, code)
	assert.Contains(t, out, "nccl-tests")
}
