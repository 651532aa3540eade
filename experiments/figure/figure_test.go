package figure

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tutti/experiments/rows"
	"tutti/model"
	"tutti/model/units"
)

// grid makes a row for each cluster size, algorithm and protocol at each of two
// sizes.
func grid(ranks []int, algorithms []model.Algorithm, protocols []model.Protocol) (list []rows.Row) {
	for _, n := range ranks {
		for _, a := range algorithms {
			for _, p := range protocols {
				for _, size := range []units.Bytes{units.KiB, units.MiB} {
					list = append(list, rows.Row{Source: "sim", Machine: "m", Algorithm: a, Protocol: p, Nodes: 1, Ranks: n, Bytes: size, Time: units.Microsecond})
				}
			}
		}
	}
	return list
}

// What is compared decides the panels and lines: algorithms on one cluster,
// clusters for each algorithm, protocols where a size has several.
func TestPanels(t *testing.T) {
	two := []model.Algorithm{model.Ring, model.Tree}
	for _, c := range []struct {
		rows         []rows.Row
		title        string
		panels, line []string
	}{
		{grid([]int{8}, two, []model.Protocol{model.LL}), "allreduce on 8 GPUs of m, simulated", []string{""}, []string{"ring", "tree"}},
		{grid([]int{8, 16}, two, []model.Protocol{model.LL}), "allreduce on m, simulated", []string{"ring", "tree"}, []string{"8 GPUs", "16 GPUs"}},
		{grid([]int{8, 16}, two[:1], []model.Protocol{model.LL}), "allreduce by ring on m, simulated", []string{""}, []string{"8 GPUs", "16 GPUs"}},
		{grid([]int{8}, two[:1], []model.Protocol{model.LL, model.Simple}), "allreduce by ring on 8 GPUs of m, simulated", []string{""}, []string{"ring ll", "ring simple"}},
	} {
		panels, _ := panels(c.rows, axisOf(Size))
		var names, lines []string
		for _, p := range panels {
			names = append(names, p.title)
		}
		for _, l := range panels[0].lines {
			lines = append(lines, l.name)
			assert.Len(t, l.rows, 2)
		}
		assert.Equal(t, c.title, title(c.rows))
		assert.Equal(t, c.panels, names, c.title)
		assert.Equal(t, c.line, lines, c.title)
	}
}

// A figure of any shape can be drawn in every format, also one of a single
// point, of a single byte or of a single rank, and replaces what was there.
func TestWrite(t *testing.T) {
	for _, format := range Formats {
		path := filepath.Join(t.TempDir(), "x"+format)
		require.NoError(t, Check(path))
		require.NoFileExists(t, path)
		point := grid([]int{8}, []model.Algorithm{model.Ring}, []model.Protocol{model.LL})[:1]
		smallest := slices.Clone(point)
		smallest[0].Bytes, smallest[0].Datatype = 1, model.Int8
		for _, list := range [][]rows.Row{
			point, smallest,
			grid([]int{1}, model.Algorithms(), model.Protocols()), // no bus, no bandwidth
			grid([]int{1, 8, 16}, model.Algorithms(), model.Protocols()),
		} {
			require.NoError(t, Write(path, list))
			info, err := os.Stat(path)
			require.NoError(t, err)
			assert.Greater(t, info.Size(), int64(1000))
		}
		left, err := os.ReadDir(filepath.Dir(path))
		require.NoError(t, err)
		assert.Len(t, left, 1)
	}
}

// A PDF does not tell when it was made: two runs give the same bytes.
func TestPDFIsTimeless(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.pdf")
	require.NoError(t, Write(path, grid([]int{8}, model.Algorithms(), model.Protocols())))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, date := range []string{"/CreationDate (D:19700101000000)", "/ModDate (D:19700101000000)"} {
		assert.Contains(t, string(text), date)
	}
}

func TestTicks(t *testing.T) {
	var labels []string
	for _, tick := range (byteTicks{}).Ticks(float64(units.KiB), float64(8*units.GiB)) {
		if tick.Label != "" {
			labels = append(labels, tick.Label)
		}
	}
	assert.Equal(t, []string{"1 KiB", "32 KiB", "1 MiB", "32 MiB", "1 GiB"}, labels)
	labels = nil
	for _, tick := range (roundTicks{}).Ticks(0, 507) {
		labels = append(labels, tick.Label)
	}
	assert.Equal(t, []string{"0", "100", "200", "300", "400", "500"}, labels)
}
