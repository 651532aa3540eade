package dynlib_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tutti/backend/dynlib"
)

// The C library stands in for any other: its functions are called for real.
func TestOpen(t *testing.T) {
	if runtime.GOOS != "linux" {
		assert.ErrorContains(t, dynlib.Open(&struct{}{}, "libc.so.6"), "Linux")
		return
	}
	var c struct {
		Strlen func(string) uint64 `c:"strlen"`
		Getenv func(string) string `c:"getenv"`
		None   func()              `c:"no_such_symbol,optional"`
	}
	require.NoError(t, dynlib.Open(&c, "libnothere.so.9", "libc.so.6"))
	assert.EqualValues(t, 5, c.Strlen("tutti"))
	assert.Nil(t, c.None)
	t.Setenv("TUTTI_TEST", "seen") // what is set in Go reaches libraries
	assert.Equal(t, "seen", c.Getenv("TUTTI_TEST"))

	var lacking struct {
		A func() `c:"no_such_symbol"`
		B func() `c:"nor_this"`
	}
	assert.EqualError(t, dynlib.Open(&lacking, "libc.so.6"), "libc.so.6 lacks no_such_symbol, nor_this: want a newer version")
	assert.ErrorContains(t, dynlib.Open(&c, "libnothere.so.9"), "cannot open libnothere.so.9")
}
