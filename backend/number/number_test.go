package number_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"tutti/backend/number"
)

// format is a format of 16 bits as IEEE 754 defines it.
type format struct {
	name     string
	mantissa int
	bias     int
	decode   func(uint16) float32
	encode   func(float32) uint16
}

var formats = []format{
	{"float16", 10, 15, number.Float16ToFloat32, number.Float32ToFloat16},
	{"bfloat16", 7, 127, number.BFloat16ToFloat32, number.Float32ToBFloat16},
}

// value is what the bits of a finite number mean.
func (f format) value(h uint16) float64 {
	exponent, fraction := int(h&0x7fff)>>f.mantissa, float64(int(h)&(1<<f.mantissa-1))
	v := math.Ldexp(fraction, 1-f.bias-f.mantissa)
	if exponent > 0 {
		v = math.Ldexp(fraction+float64(int(1)<<f.mantissa), exponent-f.bias-f.mantissa)
	}
	return math.Copysign(v, 1-2*float64(h>>15))
}

func (f format) finite(h uint16) bool {
	top := uint16(0x7fff) &^ (1<<f.mantissa - 1)
	return h&top != top
}

// Every number has the value that its bits mean, and goes there and back.
func TestDecodeIsExact(t *testing.T) {
	for _, f := range formats {
		for i := range 1 << 16 {
			h := uint16(i)
			got := f.decode(h)
			switch {
			case f.finite(h):
				require.Equal(t, f.value(h), float64(got), "%s %#x", f.name, h)
				require.Equal(t, h, f.encode(got), f.name)
			case h&(1<<f.mantissa-1) == 0:
				require.True(t, math.IsInf(float64(got), 1-2*int(h>>15)))
				require.Equal(t, h, f.encode(got), f.name)
			default:
				require.True(t, got != got)
				require.True(t, f.decode(f.encode(got)) != f.decode(f.encode(got)), f.name)
			}
		}
	}
}

// A float32 becomes the nearest number, ties the even one.
func TestEncodeRoundsToNearest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.SampledFrom(formats).Draw(t, "format")
		low := uint16(rapid.IntRange(0, 0x7bfe).Draw(t, "number"))
		if !f.finite(low + 1) {
			return
		}
		a, b := f.value(low), f.value(low+1)
		middle := float32((a + b) / 2) // exact
		even := low + low%2
		assert.Equal(t, even, f.encode(middle))
		assert.Equal(t, low, f.encode(math.Nextafter32(middle, 0)))
		assert.Equal(t, low+1, f.encode(math.Nextafter32(middle, math.MaxFloat32)))
		assert.Equal(t, even|0x8000, f.encode(-middle))
	})
	assert.Equal(t, uint16(0x7bff), number.Float32ToFloat16(65519))
	assert.Equal(t, uint16(0x7c00), number.Float32ToFloat16(65520))
	assert.Equal(t, uint16(0x7f80), number.Float32ToBFloat16(math.MaxFloat32))
}

func TestView(t *testing.T) {
	memory := number.Memory(20)
	number.View[int32](memory)[1] = -2
	assert.Equal(t, []byte{0xfe, 0xff, 0xff, 0xff}, memory[4:8])
	assert.Len(t, number.View[float64](memory), 2)
	assert.Panics(t, func() { number.View[float64](memory[4:]) })
	assert.Empty(t, number.View[float32](nil))
}
