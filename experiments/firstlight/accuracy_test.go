package firstlight

import (
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tutti/experiments/rows"
	"tutti/experiments/sweep"
	"tutti/model"
	"tutti/model/units"
	"tutti/topo"
)

var update = flag.Bool("update", false, "write accuracy.md anew")

// TestAccuracy simulates every row that is kept here, with the same machine,
// algorithm, protocol and channels, and holds the errors to accuracy.md. Large
// rings over Simple are within 10 %.
func TestAccuracy(t *testing.T) {
	var doc strings.Builder
	doc.WriteString("# Simulated against measured\n\nWritten by `go test ./experiments/firstlight -update`. Errors are simulated over measured time, less one.\n")
	for _, file := range []struct{ name, title string }{
		{"measured.csv", "NCCL 2.28.3 on 4x H200, measured for this project"},
		{"published.csv", "DGX-class machines, as others have published"},
	} {
		fmt.Fprintf(&doc, "\n## %s\n", file.title)
		for _, series := range bySeries(read(t, file.name)) {
			simulated := simulate(t, series)
			r := series[0]
			fmt.Fprintf(&doc, "\n%s: %v over %v on %d ranks, %d x %s\n\n", r.Source, r.Algorithm, r.Protocol, r.Ranks, r.Nodes, r.Machine)
			doc.WriteString("| size | measured us | simulated us | measured busbw | simulated busbw | error |\n|---:|---:|---:|---:|---:|---:|\n")
			var errors []float64
			for i, m := range series {
				s := simulated[i]
				e := s.Time.Microseconds()/m.Time.Microseconds() - 1
				errors = append(errors, math.Abs(e))
				fmt.Fprintf(&doc, "| %v | %.2f | %.2f | %.2f | %.2f | %+.1f %% |\n", m.Bytes, m.Time.Microseconds(), s.Time.Microseconds(),
					float64(m.BusBW()/units.GBps), float64(s.BusBW()/units.GBps), 100*e)
				if m.Source == "nccl" && m.Algorithm == model.Ring && m.Protocol == model.Simple && m.Bytes >= 64*units.MiB {
					assert.LessOrEqual(t, math.Abs(e), .10, m.Bytes.String())
				}
			}
			slices.Sort(errors)
			fmt.Fprintf(&doc, "\nmedian %.1f %%, worst %.1f %%\n", 100*errors[len(errors)/2], 100*errors[len(errors)-1])
		}
	}
	if *update {
		require.NoError(t, os.WriteFile("accuracy.md", []byte(doc.String()), 0o644))
	}
	want, err := os.ReadFile("accuracy.md")
	require.NoError(t, err)
	assert.Equal(t, string(want), doc.String(), "if the change is meant: go test ./experiments/firstlight -update, and say why")
}

func read(t *testing.T, name string) []rows.Row {
	f, err := os.Open(name)
	require.NoError(t, err)
	defer f.Close()
	list, err := rows.ReadCSV(f, name)
	require.NoError(t, err)
	return list
}

// bySeries splits the rows where anything but size and time changes.
func bySeries(list []rows.Row) (series [][]rows.Row) {
	key := func(r rows.Row) rows.Row { r.Bytes, r.Time = 0, 0; return r }
	for len(list) > 0 {
		n := slices.IndexFunc(list, func(r rows.Row) bool { return key(r) != key(list[0]) })
		if n < 0 {
			n = len(list)
		}
		series = append(series, list[:n])
		list = list[n:]
	}
	return series
}

// simulate runs the rows of one series, on as many channels as NCCL takes for
// each size.
func simulate(t *testing.T, series []rows.Row) []rows.Row {
	r := series[0]
	machine, err := topo.Open(r.Machine)
	require.NoError(t, err)
	cluster, err := topo.NewCluster(machine, r.Nodes, r.Ranks/r.Nodes, topo.RailOptimised)
	require.NoError(t, err)
	study := sweep.Study{
		Clusters: []*topo.Cluster{cluster}, Collective: r.Collective, Datatype: r.Datatype, Redop: r.Redop,
		Algorithms: []model.Algorithm{r.Algorithm}, Protocols: []model.Protocol{r.Protocol},
	}
	for _, m := range series {
		study.Sizes = append(study.Sizes, m.Bytes)
	}
	jobs, notes, err := study.Jobs()
	require.NoError(t, err)
	require.Empty(t, notes)
	simulated, err := sweep.Run(t.Context(), jobs, 0, func(sweep.Job) {})
	require.NoError(t, err)
	return sweep.Rows(simulated)
}
