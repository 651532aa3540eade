package collectives_test

import (
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tutti/experiments/collectives"
	"tutti/experiments/figure"
	"tutti/experiments/readmetest"
	"tutti/model/units"
)

var update = flag.Bool("update", false, "write the README's tables and figures anew")

// The README's tables are what the files say.
func TestREADME(t *testing.T) {
	readmetest.Check(t, *update, func(out io.Writer) {
		for _, gpus := range []int{4, 2} {
			for _, c := range collectives.All() {
				results, err := collectives.Read(gpus, c)
				require.NoError(t, err)
				require.NotEmpty(t, results)
				fmt.Fprintf(out, "\n## %v on %d GPUs\n\n", c, gpus)
				require.NoError(t, collectives.Table(out, results))
			}
		}
	})
}

// The figure is drawn from the files, and nothing measured beats the limit.
func TestFigure(t *testing.T) {
	path := filepath.Join(t.TempDir(), "h200x4.png")
	if *update {
		path = "h200x4.png"
	}
	groups, err := collectives.Groups()
	require.NoError(t, err)
	for _, g := range groups {
		limits := map[units.Bytes]units.Time{}
		for _, r := range g.Lines[len(g.Lines)-1].Rows {
			limits[r.Bytes] = r.Time
		}
		for _, l := range g.Lines[:len(g.Lines)-1] {
			for _, r := range l.Rows {
				assert.Greater(t, r.Time, limits[r.Bytes], "%s by %s, %v", g.Title, l.Name, r.Bytes)
			}
		}
	}
	require.NoError(t, figure.WriteTimesOf(path, "Collectives of float on 4 H200s, measured, NVLS off", groups))
}
