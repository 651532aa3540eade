package kernels_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tutti/kernels"
	"tutti/model"
)

// The PTX is of the sources that stand here: otherwise run build.sh.
func TestPTXIsOfTheSources(t *testing.T) {
	sources, err := filepath.Glob("*.cu")
	require.NoError(t, err)
	headers, err := filepath.Glob("*.cuh")
	require.NoError(t, err)
	hash := sha256.New()
	for _, name := range append(append(sources, headers...), "build.sh") {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		hash.Write(text)
	}
	built := []string{"common", "nvls_float", "nvls_half", "nvls_bfloat16"}
	for _, d := range model.Datatypes() {
		for _, op := range model.Redops() {
			signless := d == model.Uint8 || d == model.Uint32 || d == model.Uint64
			if !signless || op != model.Sum && op != model.Prod {
				built = append(built, d.String()+"_"+op.String())
			}
		}
	}
	for _, name := range built {
		text, err := kernels.PTX(name)
		require.NoError(t, err)
		first, _, _ := strings.Cut(string(text), "\n")
		require.Contains(t, first, fmt.Sprintf("%x", hash.Sum(nil)), "%s: run kernels/build.sh", name)
		require.Equal(t, 1, strings.Count(string(text), ".version"), name)
	}
	_, err = kernels.PTX("complex_sum")
	assert.EqualError(t, err, `no kernels named "complex_sum" are built in`)
	_, err = kernels.PTX("float_xor")
	assert.EqualError(t, err, `no kernels named "float_xor" are built in`)
}

// A kernel alone is what it is among all, with what all share.
func TestPTXOfAKernel(t *testing.T) {
	all, err := kernels.PTX("float_sum")
	require.NoError(t, err)
	one, err := kernels.PTX("float_sum", "twoshot_push")
	require.NoError(t, err)
	assert.Equal(t, 1, strings.Count(string(one), ".entry "))
	assert.Less(t, len(one), len(all)/4)
	_, body, _ := strings.Cut(string(one), ".visible .entry twoshot_push(")
	body, _, _ = strings.Cut(body, "\n}\n")
	assert.Contains(t, string(all), ".visible .entry twoshot_push("+body+"\n}\n")
	assert.Contains(t, string(one), ".shared")
	_, err = kernels.PTX("float_sum", "twoshot_push", "threeshot")
	assert.ErrorContains(t, err, "1 of the kernels [twoshot_push threeshot] are built in")
}
