package collectives_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tutti/experiments/collectives"
	"tutti/experiments/figure"
)

var update = flag.Bool("update", false, "write the README's tables and figures anew")

// The README's tables are what the files say.
func TestREADME(t *testing.T) {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	before, _, found := strings.Cut(string(text), "<!-- tables -->\n")
	require.True(t, found)
	var out strings.Builder
	fmt.Fprint(&out, before, "<!-- tables -->\n")
	for _, gpus := range []int{4, 2} {
		for _, c := range collectives.All() {
			results, err := collectives.Read(gpus, c)
			require.NoError(t, err)
			require.NotEmpty(t, results)
			fmt.Fprintf(&out, "\n## %v on %d GPUs\n\n", c, gpus)
			require.NoError(t, collectives.Table(&out, results))
		}
	}
	if *update {
		require.NoError(t, os.WriteFile("README.md", []byte(out.String()), 0o644))
	}
	assert.Equal(t, out.String(), string(text), "go test ./experiments/collectives -update")
}

// The figures are drawn from the files, and nothing measured beats the limit.
func TestFigure(t *testing.T) {
	for _, gpus := range []int{4, 2} {
		path := fmt.Sprintf("h200x%d.png", gpus)
		if !*update {
			path = filepath.Join(t.TempDir(), path)
		}
		groups, err := collectives.Groups(gpus)
		require.NoError(t, err)
		for _, g := range groups {
			limit := g.Lines[len(g.Lines)-1]
			for _, l := range g.Lines[:len(g.Lines)-1] {
				for i, r := range l.Rows {
					assert.Greater(t, r.Time, limit.Rows[i].Time, "%s by %s, %v", g.Title, l.Name, r.Bytes)
				}
			}
		}
		require.NoError(t, figure.WriteTimesOf(path, fmt.Sprintf("Collectives of float on %d H200s, measured, NVLS off", gpus), groups))
	}
}
