package sim_test

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"tutti/model"
	"tutti/model/profile"
	"tutti/model/units"
	"tutti/sim"
	"tutti/topo"
)

// variant returns a built-in machine with some of its text replaced, old by new.
func variant(t require.TestingT, name string, changes ...string) *topo.System {
	text, err := topo.XML(name)
	require.NoError(t, err)
	changed := strings.NewReplacer(changes...).Replace(string(text))
	m, err := topo.ReadXML(strings.NewReader(changed), strings.TrimSpace(name+" "+strings.Join(changes, " ")))
	require.NoError(t, err)
	return m
}

// Of these a mixture's machines are slower than DGX H100, or faster.
var (
	slowNIC  = []string{`speed="400000"`, `speed="200000"`}
	fastNIC  = []string{`speed="400000"`, `speed="800000"`, `32.0 GT/s`, `64.0 GT/s`}
	oneNIC   = []string{`name="mlx5_3" dev="3" speed="400000"`, `name="mlx5_3" dev="3" speed="200000"`}
	fastGPUs = []string{`sm="90"`, `sm="100"`}
	slowGPU  = []string{`<gpu dev="3" sm="90"`, `<gpu dev="3" sm="90"`, `sm="90"`, `sm="100"`} // but one of the fast ones
	fewLinks = []string{`count="18"`, `count="9"`}
	ampere   = []string{`sm="90"`, `sm="80"`}
	slowPCI  = []string{`32.0 GT/s`, `8.0 GT/s`}
)

// Rails that are alike on one machine are told apart by another on which they are
// not.
func TestSymmetryOfMixtures(t *testing.T) {
	for name, changes := range map[string][2][]string{"NIC": {nil, oneNIC}, "GPU": {fastGPUs, slowGPU}} {
		c, err := topo.NewMixedCluster([]topo.Part{{Machine: variant(t, "dgx-h100", changes[0]...), Nodes: 3}, {Machine: variant(t, "dgx-h100", changes[1]...), Nodes: 1}}, 0, topo.RailOptimised)
		require.NoError(t, err)
		w := newWorldOn(c)
		for _, a := range []model.Algorithm{model.Ring, model.NVLSTree} {
			s := w.schedule(t, a, model.Simple, 64*units.MiB)
			folded, err := sim.Run(s, c, profile.ForGPU(90))
			require.NoError(t, err)
			all, err := sim.RunWith(s, c, profile.ForGPU(90), sim.Options{NoSymmetry: true})
			require.NoError(t, err)
			require.Equal(t, all.Time, folded.Time, "%s, %v", name, a)
			require.Less(t, folded.Workers, folded.Of)
		}
	}
}

// without returns DGX H100 without one of its GPUs and some NETs, by their numbers.
func without(t require.TestingT, gpu, nets string) *topo.System {
	text, err := topo.XML("dgx-h100")
	require.NoError(t, err)
	text = regexp.MustCompile(`(?s)<gpu dev="[`+gpu+`]".*?</gpu>`).ReplaceAll(text, nil)
	text = regexp.MustCompile(`<net [^>]*dev="[`+nets+`]"[^>]*/>`).ReplaceAll(text, nil)
	rank := -1
	text = regexp.MustCompile(`rank="\d+"`).ReplaceAllFunc(text, func([]byte) []byte { rank++; return fmt.Appendf(nil, `rank="%d"`, rank) })
	m, err := topo.ReadXML(bytes.NewReader(text), "dgx-h100 without GPU "+gpu+" and NETs "+nets)
	require.NoError(t, err)
	return m
}

// drawMixture draws machines, in any order, and joins them: of one build, that
// differ in speed, or of any.
func drawMixture(t *rapid.T, name string, nodes, gpus int, fabric topo.Fabric, known map[string]*topo.System) *topo.Cluster {
	var parts []topo.Part
	for left := nodes; left > 0; {
		change := rapid.SampledFrom([][]string{nil, slowNIC, fastNIC, oneNIC, fastGPUs, slowGPU, fewLinks, ampere, slowPCI, {}, {"3", "-"}, {"0", "5"}, {"-", "1357"}, {"-", "0-6"}}).Draw(t, "machine")
		key := name + strings.Join(change, " ")
		if change != nil && len(change) == 0 {
			key = rapid.SampledFrom([]string{"gb200x4", "dgx-b200", "aws-p5", "dgx-a100"}).Draw(t, "another")
		}
		switch {
		case known[key] != nil:
		case len(change) == 0:
			known[key] = variant(t, key)
		case len(change) > 0 && len(change[0]) == 1:
			known[key] = without(t, change[0], change[1])
		default:
			known[key] = variant(t, name, change...)
		}
		n := rapid.IntRange(1, left).Draw(t, "of them")
		parts = append(parts, topo.Part{Machine: known[key], Nodes: n})
		left -= n
	}
	c, err := topo.NewMixedCluster(parts, gpus, fabric)
	require.NoError(t, err)
	return c
}

// A ring is as fast as its slowest machine: a faster one changes nothing, and
// without the slow one all are fast.
func TestSlowestMachineSetsTheRate(t *testing.T) {
	fast := variant(t, "dgx-h100")
	ring := func(parts ...topo.Part) units.Time {
		c, err := topo.NewMixedCluster(parts, 0, topo.RailOptimised)
		require.NoError(t, err)
		return newWorldOn(c).run(t, model.Ring, model.Simple, units.GiB, profile.ForGPU(c.Machine.SM())).Time
	}
	allFast := ring(topo.Part{Machine: fast, Nodes: 4})
	for name, change := range map[string][]string{"NICs": slowNIC, "NVLinks": fewLinks, "GPUs": ampere, "PCIe": slowPCI} {
		slow := variant(t, "dgx-h100", change...)
		one, all := ring(topo.Part{Machine: fast, Nodes: 3}, topo.Part{Machine: slow, Nodes: 1}), ring(topo.Part{Machine: slow, Nodes: 4})
		require.InEpsilon(t, float64(all), float64(one), 0.02, name)
		require.Greater(t, float64(one), 1.1*float64(allFast), name)
	}
	quick := variant(t, "dgx-h100", fastNIC...)
	require.Equal(t, allFast, ring(topo.Part{Machine: fast, Nodes: 3}, topo.Part{Machine: quick, Nodes: 1}))
	require.Equal(t, allFast, ring(topo.Part{Machine: fast, Nodes: 3}, topo.Part{Machine: variant(t, "dgx-h100"), Nodes: 1}))
}

// AllReduce of 1 GiB by rings over 32 GPUs takes 2*31/32 GiB out of every machine,
// by 8 ports of 25 GB/s each on the slow one.
func TestMixedRingByHand(t *testing.T) {
	c, err := topo.NewMixedCluster([]topo.Part{{Machine: variant(t, "dgx-h100"), Nodes: 3}, {Machine: variant(t, "dgx-h100", slowNIC...), Nodes: 1}}, 0, topo.RailOptimised)
	require.NoError(t, err)
	p := profile.ForGPU(90)
	r := newWorldOn(c).run(t, model.Ring, model.Simple, units.GiB, p)
	carried := 8 * 25e9 * p.Efficiency[topo.LinkNET]
	require.InEpsilon(t, 2*31./32*float64(units.GiB)/carried*1e6, r.Time.Microseconds(), 0.1)
	require.Contains(t, r.Cause().Name, "node 3")
}

// A ring has as many channels on all machines as the one that finds the fewest: 7 of
// 8 where a GPU is missing; and where every other NIC is, the others carry twice as
// much.
func TestMissingPartsByHand(t *testing.T) {
	full, p := variant(t, "dgx-h100"), profile.ForGPU(90)
	ring := func(last *topo.System) float64 {
		c, err := topo.NewMixedCluster([]topo.Part{{Machine: full, Nodes: 3}, {Machine: last, Nodes: 1}}, 0, topo.RailOptimised)
		require.NoError(t, err)
		return float64(newWorldOn(c).run(t, model.Ring, model.Simple, units.GiB, p).Time)
	}
	require.InEpsilon(t, 8./7, ring(without(t, "3", "-"))/ring(full), .02)
	require.InEpsilon(t, 2, ring(without(t, "-", "1357"))/ring(full), .02)
}
