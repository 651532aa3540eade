package hotkernels_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tutti/experiments/hotkernels"
	"tutti/model"
)

var update = flag.Bool("update", false, "write the README's tables anew")

// The README's tables are what the files say.
func TestREADME(t *testing.T) {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	before, _, found := strings.Cut(string(text), "<!-- tables -->\n")
	require.True(t, found)
	var out strings.Builder
	fmt.Fprint(&out, before, "<!-- tables -->\n")
	for _, gpus := range []int{4, 2} {
		for _, d := range []model.Datatype{model.Float32, model.BFloat16} {
			results, err := hotkernels.Read(gpus, d)
			require.NoError(t, err)
			require.Len(t, results, 30)
			fmt.Fprintf(&out, "\n## %d GPUs, %v\n\n", gpus, d)
			require.NoError(t, hotkernels.Table(&out, results))
		}
	}
	if *update {
		require.NoError(t, os.WriteFile("README.md", []byte(out.String()), 0o644))
	}
	assert.Equal(t, out.String(), string(text), "go test ./experiments/hotkernels -update")
}
