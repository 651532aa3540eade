package calibrate_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tutti/experiments/calibrate"
	"tutti/model/profile"
	"tutti/topo"
)

const probed = "../hotkernels/probe-h200x4.csv"

// A probe becomes the constants of the wires, which are near those that were
// measured by other means.
func TestProbe(t *testing.T) {
	f, err := os.Open(probed)
	require.NoError(t, err)
	defer f.Close()
	p, err := calibrate.ReadProbe(f, probed)
	require.NoError(t, err)
	machine, err := topo.Open("h200x4")
	require.NoError(t, err)
	start := profile.ForGPU(90)
	got, names, err := p.Constants(machine, start)
	require.NoError(t, err)
	for _, name := range names {
		was, _ := start.Value(name)
		is, _ := got.Value(name)
		assert.InEpsilon(t, was, is, .03, name)
	}
	small, err := topo.Open("dgx-a100")
	require.NoError(t, err)
	_, _, err = p.Constants(small, start)
	assert.ErrorContains(t, err, "want the probe's own machine")
}

// What is not a probe's, or only a part of it, is told with its line.
func TestProbeErrors(t *testing.T) {
	text, err := os.ReadFile(probed)
	require.NoError(t, err)
	lines := strings.SplitAfter(string(text), "\n")
	for _, c := range []struct{ text, want string }{
		{"", `columns ""`},
		{"source,machine\n", "want those of tutti run --probe"},
		{strings.Join(lines[:3], ""), "cut short"},
		{lines[0] + "flag,4,1,4,1,1,0,0,false,false,NaN,1\n", `p:2: time_us is "NaN": want a number above 0`},
		{lines[0] + "flag,4,4,4,1,1,0,0,false,false,1,1\n", "p:2: 4 gpus and 4 peers"},
		{lines[0] + lines[1] + "flag,8,1,4,1,1,0,0,false,false,1,1\n", "p:3: 8 GPUs, and 4 above"},
		{lines[0] + "nap,4,1,4,1,1,0,0,false,false,1,1\n", `unknown engine "nap"`},
		{lines[0] + "flag,4\n", "wrong number of fields"},
	} {
		_, err := calibrate.ReadProbe(strings.NewReader(c.text), "p")
		assert.ErrorContains(t, err, c.want)
	}
}

func FuzzReadProbe(f *testing.F) {
	text, err := os.ReadFile(probed)
	require.NoError(f, err)
	f.Add(string(text))
	f.Fuzz(func(t *testing.T, text string) {
		if p, err := calibrate.ReadProbe(strings.NewReader(text), "p"); err == nil {
			assert.Positive(t, p.GPUs)
		}
	})
}
