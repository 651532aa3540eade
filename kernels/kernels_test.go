package kernels_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tutti/kernels"
)

// The PTX is of the sources that stand here: otherwise run build.sh.
func TestPTXIsOfTheSources(t *testing.T) {
	sources, err := filepath.Glob("*.cu*")
	require.NoError(t, err)
	slices.SortFunc(sources, func(a, b string) int { // *.cu, then *.cuh, then build.sh, as there
		return strings.Compare(filepath.Ext(a)+a, filepath.Ext(b)+b)
	})
	hash := sha256.New()
	for _, name := range append(sources, "build.sh") {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		hash.Write(text)
	}
	built, err := filepath.Glob("ptx/*.ptx.gz")
	require.NoError(t, err)
	assert.NotEmpty(t, built)
	for _, file := range built {
		text, err := kernels.PTX(strings.TrimSuffix(filepath.Base(file), ".ptx.gz"))
		require.NoError(t, err)
		first, _, _ := strings.Cut(string(text), "\n")
		assert.Contains(t, first, fmt.Sprintf("%x", hash.Sum(nil)), "%s: run kernels/build.sh", file)
	}
	_, err = kernels.PTX("complex_sum")
	assert.EqualError(t, err, `no kernels named "complex_sum" are built in`)
}
