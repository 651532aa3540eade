package backend

import (
	"errors"
	"math"

	"tutti/backend/number"
	"tutti/model"
	"tutti/model/schedule"
	"tutti/model/units"
)

// Data is what the ranks of a call have in their inputs: numbers that look
// random, the same on every machine, that a reference can look up in any order.
//
//	floats   between -1 and 1; for a product near 1 or -1, so that it stays
//	         within a factor of e of 1 however many ranks there are
//	integers all values; for an average so small that the sum does not overflow,
//	         as far as the type has room for that
//
// They come from a table whose length is a prime, so that chunks that were
// swapped differ, and each rank begins at another place in it.
type Data struct {
	task  schedule.Task
	table []byte    // twice, so that it can be read across its end
	reals []float64 // its values, of a floating-point type
}

// period is the length of the table, in elements: the largest prime below 2^16.
const period = 65521

// NewData returns the data of a call; equal seeds give equal data.
func NewData(t schedule.Task, seed uint64) *Data {
	d := &Data{task: t, table: number.Memory(2 * period * int64(t.Datatype.Size()))}
	switch t.Datatype {
	case model.Float16:
		d.halves(number.Float16, seed)
	case model.BFloat16:
		d.halves(number.BFloat16, seed)
	case model.Float32:
		d.reals = fillFloats(number.View[float32](d.table), t, seed)
	case model.Float64:
		d.reals = fillFloats(number.View[float64](d.table), t, seed)
	case model.Int8:
		fillIntegers(number.View[int8](d.table), t, seed)
	case model.Uint8:
		fillIntegers(number.View[uint8](d.table), t, seed)
	case model.Int32:
		fillIntegers(number.View[int32](d.table), t, seed)
	case model.Uint32:
		fillIntegers(number.View[uint32](d.table), t, seed)
	case model.Int64:
		fillIntegers(number.View[int64](d.table), t, seed)
	case model.Uint64:
		fillIntegers(number.View[uint64](d.table), t, seed)
	}
	return d
}

func (d *Data) halves(half number.Half, seed uint64) {
	rounded := make([]float32, 2*period)
	fillFloats(rounded, d.task, seed)
	half.Encode(number.View[uint16](d.table), rounded)
	half.Decode(rounded, number.View[uint16](d.table))
	d.reals = make([]float64, len(rounded))
	for i, f := range rounded {
		d.reals[i] = float64(f)
	}
}

// fillFloats writes the table and returns its values.
func fillFloats[T float32 | float64](table []T, t schedule.Task, seed uint64) []float64 {
	values := make([]float64, len(table))
	for i := range table {
		random := int64(hash(seed + uint64(i%period)))
		f := float64(random>>11) / (1 << 52) // -1 to 1
		if t.Redop == model.Prod {
			f = math.Copysign(1+f/float64(t.Ranks), float64(random<<60))
		}
		table[i] = T(f)
		values[i] = float64(table[i])
	}
	return values
}

func fillIntegers[T integer](table []T, t schedule.Task, seed uint64) {
	limit := uint64(math.MaxInt64) >> (64 - 8*t.Datatype.Size()) // of the signed type
	for i := range table {
		random := hash(seed + uint64(i%period))
		if t.Redop == model.Avg {
			small := random >> 1 % max(2, limit/uint64(t.Ranks))
			if signed[T]() && random%2 == 1 {
				small = -small
			}
			random = small
		}
		table[i] = T(random)
	}
}

type integer interface {
	int8 | uint8 | int32 | uint32 | int64 | uint64
}

func signed[T integer]() bool { return T(0)-1 < 0 }

// hash is SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom
// number generators", 2014).
func hash(x uint64) uint64 {
	x = (x + 1) * 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// at returns where in the table a rank's element is.
func (d *Data) at(rank int, element int64) int64 {
	return (element + int64(rank)*40503) % period
}

// blockBytes is how much data is written, read and checked at a time. It stays
// in a core's cache, and is less than the table.
const blockBytes = 32 << 10

// Fill writes the inputs of all ranks, on all cores, and marks the outputs with
// bytes of ones: NaN, -1 or the largest number.
func (d *Data) Fill(e Execution) error {
	marks := make([]byte, blockBytes)
	for i := range marks {
		marks[i] = 0xff
	}
	size := int64(d.task.Datatype.Size())
	return parallel(d.task.Ranks, func(_, rank int) error {
		if in := d.task.Input(rank); in.Blocks == 1 {
			if r, ok := e.(Repeater); ok {
				from := d.at(rank, in.First) * size
				return errors.Join(r.Repeat(rank, Output, marks), r.Repeat(rank, Input, d.table[from:from+period*size]))
			}
		}
		err := blocks(d.task.Output(rank), size, func(at, _, count int64) error {
			return e.Write(rank, Output, units.Bytes(at*size), marks[:count*size])
		})
		if err != nil {
			return err
		}
		return blocks(d.task.Input(rank), size, func(at, element, count int64) error {
			from := d.at(rank, element) * size
			return e.Write(rank, Input, units.Bytes(at*size), d.table[from:from+count*size])
		})
	})
}

// blocks cuts a buffer into blocks of elements of the given size.
func blocks(b schedule.Buffer, size int64, f func(at, element, count int64) error) error {
	most := blockBytes / size
	for block := range b.Blocks {
		for within := int64(0); within < b.Block; within += most {
			err := f(block*b.Block+within, b.First+block*b.Stride+within, min(b.Block-within, most))
			if err != nil {
				return err
			}
		}
	}
	return nil
}
