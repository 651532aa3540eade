package host

import (
	"tutti/backend/number"
	"tutti/model"
	"tutti/model/schedule"
)

// fold combines sources of equal length, at least one, into to, which may be the
// first of them. It divides the result if the operation is an average and
// finish is set.
type fold func(to []byte, sources [][]byte, finish bool)

// newFold returns the fold of a task's datatype and operation.
func newFold(t schedule.Task) fold {
	switch t.Datatype {
	case model.Int8:
		return foldOf(combineOf[int8](t.Redop), divideSigned[int8](t))
	case model.Uint8:
		return foldOf(combineOf[uint8](t.Redop), divideUnsigned[uint8](t))
	case model.Int32:
		return foldOf(combineOf[int32](t.Redop), divideSigned[int32](t))
	case model.Uint32:
		return foldOf(combineOf[uint32](t.Redop), divideUnsigned[uint32](t))
	case model.Int64:
		return foldOf(combineOf[int64](t.Redop), divideSigned[int64](t))
	case model.Uint64:
		return foldOf(combineOf[uint64](t.Redop), divideUnsigned[uint64](t))
	case model.Float32:
		return foldOf(combineOf[float32](t.Redop), divideFloat[float32](t))
	case model.Float64:
		return foldOf(combineOf[float64](t.Redop), divideFloat[float64](t))
	case model.Float16:
		return foldHalf(number.Float16, combineOf[float32](t.Redop), divideFloat[float32](t))
	default:
		return foldHalf(number.BFloat16, combineOf[float32](t.Redop), divideFloat[float32](t))
	}
}

// block is the number of elements that are combined at a time, so that what
// several sources add to stays in the first-level cache.
const block = 1024

func foldOf[T number.Native](combine func(to, a, b []T), divide func([]T)) fold {
	return func(to []byte, sources [][]byte, finish bool) {
		if len(sources) == 1 {
			copy(to, sources[0])
			if finish {
				divide(number.View[T](to))
			}
			return
		}
		all := number.View[T](to)
		for from := 0; from < len(all); from += block {
			until := min(from+block, len(all))
			sum := all[from:until]
			combine(sum, number.View[T](sources[0])[from:until], number.View[T](sources[1])[from:until])
			for _, s := range sources[2:] {
				combine(sum, sum, number.View[T](s)[from:until])
			}
			if finish {
				divide(sum)
			}
		}
	}
}

func foldHalf(half number.Half, combine func(to, a, b []float32), divide func([]float32)) fold {
	return func(to []byte, sources [][]byte, finish bool) {
		if len(sources) == 1 && !finish {
			copy(to, sources[0])
			return
		}
		all := number.View[uint16](to)
		var sums, nexts [block]float32
		for from := 0; from < len(all); from += block {
			until := min(from+block, len(all))
			sum, next := sums[:until-from], nexts[:until-from]
			half.Decode(sum, number.View[uint16](sources[0])[from:until])
			for _, s := range sources[1:] {
				half.Decode(next, number.View[uint16](s)[from:until])
				combine(sum, sum, next)
			}
			if finish {
				divide(sum)
			}
			half.Encode(all[from:until], sum)
		}
	}
}

// combineOf returns the operation on slices of equal length. Each is a loop of
// its own without bounds checks or calls; sums and averages are unrolled.
func combineOf[T number.Native](op model.Redop) func(to, a, b []T) {
	switch op {
	case model.Prod:
		return func(to, a, b []T) {
			a, b = a[:len(to)], b[:len(to)]
			for i := range to {
				to[i] = a[i] * b[i]
			}
		}
	case model.Min:
		return func(to, a, b []T) {
			a, b = a[:len(to)], b[:len(to)]
			for i := range to {
				to[i] = min(a[i], b[i])
			}
		}
	case model.Max:
		return func(to, a, b []T) {
			a, b = a[:len(to)], b[:len(to)]
			for i := range to {
				to[i] = max(a[i], b[i])
			}
		}
	default:
		return add[T]
	}
}

func add[T number.Native](to, a, b []T) {
	a, b = a[:len(to)], b[:len(to)]
	for len(to) >= 8 {
		x, y, z := (*[8]T)(to), (*[8]T)(a), (*[8]T)(b)
		x[0], x[1], x[2], x[3] = y[0]+z[0], y[1]+z[1], y[2]+z[2], y[3]+z[3]
		x[4], x[5], x[6], x[7] = y[4]+z[4], y[5]+z[5], y[6]+z[6], y[7]+z[7]
		to, a, b = to[8:], a[8:], b[8:]
	}
	a, b = a[:len(to)], b[:len(to)]
	for i := range to {
		to[i] = a[i] + b[i]
	}
}

func divideFloat[T float32 | float64](t schedule.Task) func([]T) {
	n := T(t.Ranks)
	return func(sum []T) {
		for i := range sum {
			sum[i] /= n
		}
	}
}

// Integers are divided towards 0, as by NCCL's FuncSumPostDiv.
func divideSigned[T int8 | int32 | int64](t schedule.Task) func([]T) {
	n := int64(t.Ranks)
	return func(sum []T) {
		for i, x := range sum {
			sum[i] = T(int64(x) / n)
		}
	}
}

func divideUnsigned[T uint8 | uint32 | uint64](t schedule.Task) func([]T) {
	n := uint64(t.Ranks)
	return func(sum []T) {
		for i, x := range sum {
			sum[i] = T(uint64(x) / n)
		}
	}
}
