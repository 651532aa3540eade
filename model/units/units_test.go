package units_test

import (
	"fmt"
	"math/big"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"tutti/model/units"
)

func ExampleParseBytes() {
	for _, s := range []string{"8", "64K", "1.5M", "8GiB", "12 parsecs"} {
		b, err := units.ParseBytes(s)
		fmt.Println(b, err)
	}
	// Output:
	// 8 B <nil>
	// 64 KiB <nil>
	// 1536 KiB <nil>
	// 8 GiB <nil>
	// 0 B "12 parsecs" is not a size: want a number of bytes, or one with K, M, G or T (powers of 1024), such as 64M
}

func TestParseBytesRefuses(t *testing.T) {
	for _, s := range []string{"", "K", "iB", "-1", "0.5", "1e400", "NaN", "inf", "0x10", "1KB", "1M5", "9T9", "5000000000G"} {
		_, err := units.ParseBytes(s)
		assert.Error(t, err, "%q", s)
	}
}

func FuzzParseBytes(f *testing.F) {
	for _, s := range []string{"8", "64K", "1.5MiB", "-3g", "k", "ib"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		b, err := units.ParseBytes(s)
		if err != nil {
			return
		}
		again, err := units.ParseBytes(b.String())
		require.NoError(t, err)
		require.Equal(t, b, again)
	})
}

// A pace agrees with exact arithmetic to one picosecond, and to the 2^-33 that
// its own last digit is worth.
func TestPaceIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := units.Rate(rapid.Float64Range(1e6, 1e13).Draw(t, "rate"))
		n := rapid.Int64Range(0, 1<<43).Draw(t, "bytes")
		exact := new(big.Float).Quo(big.NewFloat(float64(n)*1e12), big.NewFloat(float64(rate)))
		want, _ := exact.Float64()
		got := float64(rate.Pace().Of(units.Bytes(n)))
		require.InDelta(t, want, got, 1+float64(n)/(1<<32)+want*1e-15)
	})
	assert.Equal(t, 20*units.Picosecond, (50 * units.GBps).Pace().Of(1))
	assert.Equal(t, units.Time(0), units.Pace(0).Of(1<<40))
	assert.Positive(t, int64(units.Rate(1e3).Pace().Of(1<<62)), "saturates rather than wraps")
}
