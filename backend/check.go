package backend

import (
	"math"
	"runtime"
	"sync/atomic"

	"tutti/backend/number"
	"tutti/model"
	"tutti/model/units"
)

// Check compares every rank's output with a reference and returns how many
// elements are out of bounds, of all ranks.
//
// The reference is computed in float64 from [Data], in the order of ranks, and
// knows nothing of schedules. Integers, minima, maxima and what is only moved
// must be equal. Sums, products and averages of n ranks may be off by what
// rounding in any order can come to, to first order in u, the unit roundoff of
// the type (Higham, "Accuracy and stability of numerical algorithms", 2nd
// edition, 4.2):
//
//	sum      (n-1) u |x1|+…+|xn|
//	prod     (n-1) u |x1···xn|
//	avg      (n+1) u (|x1|+…+|xn|)/n, and the smallest number of the type: the
//	         division, before or after the sum, rounds once or twice more
//
// Check allows 1 % and one roundoff more, for the higher orders. u is 2^-24 for
// float, 2^-11 for half, 2^-8 for bfloat16; for double it is taken as 2^-52, twice
// what it is, as the reference rounds too.
func (d *Data) Check(e Execution) (wrong int64, err error) {
	switch d.task.Datatype {
	case model.Int8:
		return check(d, e, integerReference[int8])
	case model.Uint8:
		return check(d, e, integerReference[uint8])
	case model.Int32:
		return check(d, e, integerReference[int32])
	case model.Uint32:
		return check(d, e, integerReference[uint32])
	case model.Int64:
		return check(d, e, integerReference[int64])
	case model.Uint64:
		return check(d, e, integerReference[uint64])
	case model.Float32:
		return check(d, e, floatReference(func(f float32) float64 { return float64(f) }))
	case model.Float64:
		return check(d, e, floatReference(func(f float64) float64 { return f }))
	case model.Float16:
		return check(d, e, floatReference(func(h uint16) float64 { return float64(number.Float16ToFloat32(h)) }))
	default:
		return check(d, e, floatReference(func(h uint16) float64 { return float64(number.BFloat16ToFloat32(h)) }))
	}
}

// A reference computes what the given ranks' elements come to. The judge that
// it returns holds until the next call.
type reference[T any] func(element, count int64, sources []int) judge[T]

// A judge counts the elements of an output that are out of bounds.
type judge[T any] func(output []T) (wrong int64)

// spanBytes is how much of an output is read at a time: enough that a copy from a GPU
// costs more than its beginning.
const spanBytes = 8 * blockBytes

// check goes through the elements, span by span and there block by block.
func check[T number.Native | uint16](d *Data, e Execution, newReference func(*Data) reference[T]) (int64, error) {
	t := d.task
	size := int64(t.Datatype.Size())
	perSpan, perBlock := spanBytes/size, blockBytes/size
	spans := (t.Count + perSpan - 1) / perSpan
	if spans == 0 {
		return 0, nil
	}
	type hand struct {
		reference reference[T]
		outputs   [][]byte // of each rank that has the span
		sources   []int
	}
	hands := make([]*hand, runtime.GOMAXPROCS(0))
	var wrong atomic.Int64
	// Ranks have all of Count elements from a multiple of Count on, or none.
	err := parallel(int(t.Elements()/t.Count*spans), func(core, i int) error {
		if hands[core] == nil {
			hands[core] = &hand{reference: newReference(d)}
		}
		h := hands[core]
		within := int64(i) % spans * perSpan
		first, count := int64(i)/spans*t.Count+within, min(t.Count-within, perSpan)
		h.sources = h.sources[:0]
		read := 0
		for rank := range t.Ranks {
			if t.Input(rank).Holds(first, count) {
				h.sources = append(h.sources, rank)
			}
			at, rest := t.Output(rank).At(first)
			if rest == 0 {
				continue
			}
			if read == len(h.outputs) {
				h.outputs = append(h.outputs, number.Memory(spanBytes))
			}
			if err := e.Read(rank, Output, units.Bytes(at*size), h.outputs[read][:count*size]); err != nil {
				return err
			}
			read++
		}
		for done := int64(0); done < count; done += perBlock {
			n := min(perBlock, count-done)
			judge := h.reference(first+done, n, h.sources)
			for _, output := range h.outputs[:read] {
				wrong.Add(judge(number.View[T](output)[done : done+n]))
			}
		}
		return nil
	})
	return wrong.Load(), err
}

// integerReference computes in the type itself, which is exact: sums and
// products are modulo its range.
func integerReference[T integer](d *Data) reference[T] {
	table := number.View[T](d.table)
	scratch := make([]T, blockBytes)
	return func(element, count int64, sources []int) judge[T] {
		want := scratch[:count]
		for i, rank := range sources {
			at := d.at(rank, element)
			x := table[at : at+count]
			if i == 0 {
				copy(want, x)
				continue
			}
			for k := range want {
				switch d.task.Redop {
				case model.Prod:
					want[k] *= x[k]
				case model.Min:
					want[k] = min(want[k], x[k])
				case model.Max:
					want[k] = max(want[k], x[k])
				default:
					want[k] += x[k]
				}
			}
		}
		if n := len(sources); n > 1 && d.task.Redop == model.Avg {
			for k, x := range want {
				if signed[T]() {
					want[k] = T(int64(x) / int64(n)) // towards 0, as NCCL's FuncSumPostDiv
				} else {
					want[k] = T(uint64(x) / uint64(n))
				}
			}
		}
		return func(output []T) (wrong int64) {
			for k, x := range output {
				if x != want[k] {
					wrong++
				}
			}
			return wrong
		}
	}
}

// floatReference computes in float64, and a bound for each element.
func floatReference[T float32 | float64 | uint16](value func(T) float64) func(*Data) reference[T] {
	return func(d *Data) reference[T] {
		values, bounds := make([]float64, blockBytes), make([]float64, blockBytes)
		unit, least := roundoff(d.task.Datatype)
		return func(element, count int64, sources []int) judge[T] {
			want, bound := values[:count], bounds[:count]
			for i, rank := range sources {
				at := d.at(rank, element)
				accumulate(d.task.Redop, want, bound, d.reals[at:at+count], i == 0)
			}
			n := float64(len(sources))
			factor, offset := 1.01*unit*n, 0.0
			switch {
			case n == 1 || d.task.Redop == model.Min || d.task.Redop == model.Max:
				factor = 0
			case d.task.Redop == model.Avg:
				factor, offset = 1.01*unit*(n+2)/n, least
				for k := range want {
					want[k] /= n
				}
			}
			for k, b := range bound {
				bound[k] = float64(factor*b) + offset
			}
			return func(output []T) (wrong int64) {
				for k, x := range output {
					if !(math.Abs(value(x)-want[k]) <= bound[k]) { // also for NaN
						wrong++
					}
				}
				return wrong
			}
		}
	}
}

// accumulate combines the values x with want, and adds up in bound what the
// error is proportional to.
func accumulate(op model.Redop, want, bound, x []float64, first bool) {
	want, bound = want[:len(x)], bound[:len(x)]
	switch {
	case first:
		copy(want, x)
		for k, v := range x {
			bound[k] = math.Abs(v)
		}
	case op == model.Prod:
		for k, v := range x {
			want[k] *= v
			bound[k] = math.Abs(want[k])
		}
	case op == model.Min:
		for k, v := range x {
			want[k] = min(want[k], v)
		}
	case op == model.Max:
		for k, v := range x {
			want[k] = max(want[k], v)
		}
	default:
		for k, v := range x {
			want[k] += v
			bound[k] += math.Abs(v)
		}
	}
}

// roundoff returns the u of [Data.Check] for a floating-point type, and the
// type's smallest positive number.
func roundoff(d model.Datatype) (unit, least float64) {
	switch d {
	case model.Float64:
		return 1.0 / (1 << 52), math.SmallestNonzeroFloat64
	case model.Float32:
		return 1.0 / (1 << 24), math.SmallestNonzeroFloat32
	case model.Float16:
		return 1.0 / (1 << 11), 1.0 / (1 << 24)
	default: // bfloat16
		return 1.0 / (1 << 8), 0x1p-133
	}
}
