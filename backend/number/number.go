// Package number has the element types that Go lacks, float16 and bfloat16, and
// views of memory as slices of elements.
package number

import (
	"math"
	"unsafe"
)

// Native are the element types that Go has.
type Native interface {
	int8 | uint8 | int32 | uint32 | int64 | uint64 | float32 | float64
}

// View returns memory as elements of a type, the same bytes. It panics unless
// the memory begins at a multiple of the type's size; bytes that do not make a
// whole element are left out. This is the one place where tutti looks at memory
// by another type than it has.
func View[T Native | uint16](memory []byte) []T {
	var element T
	size := unsafe.Sizeof(element)
	start := unsafe.Pointer(unsafe.SliceData(memory))
	if uintptr(start)%size != 0 {
		panic("number: memory is not aligned to its elements")
	}
	return unsafe.Slice((*T)(start), uintptr(len(memory))/size)
}

// Memory returns zeroed memory, aligned to every element type.
func Memory(bytes int64) []byte {
	words := make([]uint64, (bytes+7)/8)
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), bytes)
}

// Half is a floating-point format of 16 bits: exact to float32, and back to the
// nearest, ties to even. Source: IEEE 754-2019, 3.6 and 4.3.1.
type Half struct {
	// Decode writes the values of from to to; Encode the other way round. The
	// slices are of equal length.
	Decode func(to []float32, from []uint16)
	Encode func(to []uint16, from []float32)
}

// The formats of 16 bits.
var (
	Float16 = Half{
		func(to []float32, from []uint16) {
			for i, h := range from[:len(to)] {
				to[i] = Float16ToFloat32(h)
			}
		},
		func(to []uint16, from []float32) {
			for i, f := range from[:len(to)] {
				to[i] = Float32ToFloat16(f)
			}
		},
	}
	BFloat16 = Half{
		func(to []float32, from []uint16) {
			for i, h := range from[:len(to)] {
				to[i] = BFloat16ToFloat32(h)
			}
		},
		func(to []uint16, from []float32) {
			for i, f := range from[:len(to)] {
				to[i] = Float32ToBFloat16(f)
			}
		},
	}
)

// Of float32: bits of the mantissa, and those that float16 lacks.
const (
	mantissa = 23
	dropped  = mantissa - 10
)

// Float16ToFloat32 returns the value of a float16.
func Float16ToFloat32(h uint16) float32 {
	sign, magnitude := uint32(h&0x8000)<<16, uint32(h&0x7fff)<<dropped
	if h&0x7c00 == 0x7c00 { // infinity, NaN
		return math.Float32frombits(sign | 0xff<<mantissa | magnitude)
	}
	// The exponents' biases are 15 and 127. The product normalises what is
	// subnormal in float16, and is exact.
	f := math.Float32frombits(magnitude) * (1 << (127 - 15))
	return math.Float32frombits(sign | math.Float32bits(f))
}

// Float32ToFloat16 returns the nearest float16, infinity from 65520 on.
func Float32ToFloat16(f float32) uint16 {
	all := math.Float32bits(f)
	sign, magnitude := uint16(all>>16&0x8000), all&^(1<<31)
	switch {
	case magnitude > 0xff<<mantissa: // NaN
		return sign | 0x7e00
	case magnitude >= 0x477ff000: // 65520
		return sign | 0x7c00
	case magnitude < 0x38800000: // 2^-14: subnormal, in units of 2^-24
		// Adding 1/2 makes float32 round to such units.
		return sign | uint16(math.Float32bits(math.Float32frombits(magnitude)+.5)-math.Float32bits(.5))
	default:
		magnitude += 1<<(dropped-1) - 1 + magnitude>>dropped&1
		return sign | uint16(magnitude>>dropped-(127-15)<<10)
	}
}

// BFloat16ToFloat32 returns the value of a bfloat16.
func BFloat16ToFloat32(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// Float32ToBFloat16 returns the nearest bfloat16.
func Float32ToBFloat16(f float32) uint16 {
	all := math.Float32bits(f)
	if f != f {
		return uint16(all>>16) | 0x40
	}
	return uint16((all + 0x7fff + all>>16&1) >> 16)
}
