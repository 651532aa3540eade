// Package readmetest holds the tables of an experiment's README.md to its files.
package readmetest

import (
	"io"
	"os"
	"strings"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// mark stands before the tables, which go on to the end.
const mark = "<!-- tables -->\n"

// T is a test in the experiment's folder.
type T interface {
	require.TestingT
	Helper()
}

// Check fails the test unless README.md ends with the tables that write writes
// after the mark. With update it writes them there anew.
func Check(t T, update bool, write func(io.Writer)) {
	t.Helper()
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	before, _, found := strings.Cut(string(text), mark)
	require.True(t, found, "README.md has no line %q", mark)
	var out strings.Builder
	out.WriteString(before + mark)
	write(&out)
	if update {
		require.NoError(t, os.WriteFile("README.md", []byte(out.String()), 0o644))
	}
	assert.Equal(t, out.String(), string(text), "go test -update writes it anew")
}
