package hotkernels_test

import (
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tutti/experiments/figure"
	"tutti/experiments/hotkernels"
	"tutti/experiments/readmetest"
	"tutti/experiments/rows"
	"tutti/model"
)

var update = flag.Bool("update", false, "write the README's tables and figure anew")

// The README's tables are what the files say.
func TestREADME(t *testing.T) {
	readmetest.Check(t, *update, func(out io.Writer) {
		for _, gpus := range []int{4, 2} {
			for _, d := range []model.Datatype{model.Float32, model.BFloat16} {
				results, err := hotkernels.Read(gpus, d)
				require.NoError(t, err)
				require.Len(t, results, 30)
				fmt.Fprintf(out, "\n## %d GPUs, %v\n\n", gpus, d)
				require.NoError(t, hotkernels.Table(out, results))
			}
		}
		for _, gpus := range []int{4, 2} {
			ratios, err := hotkernels.Interpreted(gpus)
			require.NoError(t, err)
			require.Len(t, ratios, 30)
			fmt.Fprintf(out, "\n## Interpreter on %d GPUs, float: its time over NCCL's\n\n", gpus)
			require.NoError(t, hotkernels.InterpreterTable(out, ratios))
		}
	})
}

// The figure is drawn from the files, and nothing measured beats the limit.
func TestFigure(t *testing.T) {
	path := filepath.Join(t.TempDir(), "allreduce.png")
	if *update {
		path = "allreduce.png"
	}
	lines, err := hotkernels.Lines(4, model.Float32)
	require.NoError(t, err)
	limit := lines[len(lines)-1]
	for _, l := range lines[:len(lines)-1] {
		for _, r := range l.Rows {
			i := slices.IndexFunc(limit.Rows, func(of rows.Row) bool { return of.Bytes == r.Bytes })
			assert.Greater(t, r.Time, limit.Rows[i].Time, "%s, %v", l.Name, r.Bytes)
		}
	}
	require.NoError(t, figure.WriteTimes(path, "AllReduce of float on 4 H200s, measured, NVLS off", lines))
}
