package bench

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"

	"tutti/backend/cuda/driver"
	"tutti/model"
)

// period is the number of elements after which test data repeats: a prime, so
// that no chunk that goes astray lands on equal data.
const period = 65521

// codec turns values into elements of a datatype and back.
type codec struct {
	size   int
	encode func(to []byte, v float64)
	decode func(from []byte) float64
	// epsilon is the distance from 1 to the next number; 0 for whole numbers.
	epsilon float64
}

var le = binary.LittleEndian

var codecs = map[model.Datatype]codec{
	model.Float32: {4, func(b []byte, v float64) { le.PutUint32(b, math.Float32bits(float32(v))) },
		func(b []byte) float64 { return float64(math.Float32frombits(le.Uint32(b))) }, 0x1p-23},
	model.Float64: {8, func(b []byte, v float64) { le.PutUint64(b, math.Float64bits(v)) },
		func(b []byte) float64 { return math.Float64frombits(le.Uint64(b)) }, 0x1p-52},
	model.BFloat16: {2, func(b []byte, v float64) { le.PutUint16(b, uint16(math.Float32bits(float32(v))>>16)) },
		func(b []byte) float64 { return float64(math.Float32frombits(uint32(le.Uint16(b)) << 16)) }, 0x1p-7},
	model.Float16: {2, encodeHalf, decodeHalf, 0x1p-10},
	model.Int32: {4, func(b []byte, v float64) { le.PutUint32(b, uint32(int32(v))) },
		func(b []byte) float64 { return float64(int32(le.Uint32(b))) }, 0},
	model.Int64: {8, func(b []byte, v float64) { le.PutUint64(b, uint64(int64(v))) },
		func(b []byte) float64 { return float64(int64(le.Uint64(b))) }, 0},
}

// encodeHalf writes the nearest smaller half; test data lie in its normal range.
func encodeHalf(b []byte, v float64) {
	bits := math.Float32bits(float32(v))
	exponent := int(bits>>23&0xff) - 127 + 15
	if exponent <= 0 {
		le.PutUint16(b, uint16(bits>>16&0x8000))
		return
	}
	le.PutUint16(b, uint16(bits>>16&0x8000)|uint16(exponent)<<10|uint16(bits>>13&0x3ff))
}

func decodeHalf(b []byte) float64 {
	h := le.Uint16(b)
	sign, exponent, fraction := 1-2*float64(h>>15), int(h>>10&31), float64(h&0x3ff)
	switch exponent {
	case 0:
		return sign * math.Ldexp(fraction, -24)
	case 31:
		if fraction != 0 {
			return math.NaN()
		}
		return math.Inf(int(sign))
	}
	return sign * math.Ldexp(1024+fraction, exponent-25)
}

// data is what the ranks reduce, and what must come of it.
type data struct {
	codec    codec
	patterns [][]byte  // each rank's input over one period
	want     []float64 // the result over one period
	within   []float64 // how far a result may be off
}

// newData draws random elements for each rank and reduces them in float64.
func newData(d model.Datatype, op model.Redop, ranks int, seed uint64) (*data, error) {
	c, known := codecs[d]
	if !known {
		return nil, fmt.Errorf("no test data of type %v", d)
	}
	t := &data{codec: c, want: make([]float64, period), within: make([]float64, period)}
	random := rand.New(rand.NewPCG(seed, 7))
	for r := range ranks {
		pattern := make([]byte, period*c.size)
		for i := range period {
			at := pattern[i*c.size:][:c.size]
			v := random.Float64()*2 - 1
			if op == model.Prod {
				v += math.Copysign(0.5, v)
			}
			if c.epsilon == 0 {
				v = math.Round(v * 100)
			}
			c.encode(at, v)
			v = c.decode(at)
			switch {
			case r == 0:
				t.want[i] = v
			case op == model.Prod:
				t.want[i] *= v
			case op == model.Min:
				t.want[i] = min(t.want[i], v)
			case op == model.Max:
				t.want[i] = max(t.want[i], v)
			default:
				t.want[i] += v
			}
			// Each reduction may round once; bounds are those of a sum of magnitudes.
			t.within[i] += math.Abs(v) * c.epsilon * float64(ranks)
			if op == model.Prod {
				t.within[i] = math.Abs(t.want[i]) * c.epsilon * float64(ranks)
			}
		}
		t.patterns = append(t.patterns, pattern)
	}
	if op == model.Avg {
		for i := range t.want {
			t.want[i] /= float64(ranks)
			if c.epsilon == 0 {
				t.want[i] = math.Trunc(t.want[i])
			}
		}
	}
	return t, nil
}

// fill writes a rank's input, over and over, into memory of a GPU.
func (t *data) fill(s *driver.Stream, rank int, to driver.Pointer, bytes int64) error {
	pattern := t.patterns[rank]
	have := min(int64(len(pattern)), bytes)
	if err := s.GPU.Put(to, pattern[:have]); err != nil {
		return err
	}
	for have < bytes {
		n := min(have, bytes-have)
		if err := s.Copy(to+driver.Pointer(have), to, n); err != nil {
			return err
		}
		have += n
	}
	return s.Sync()
}

// check counts the elements of a rank's output that are wrong.
func (t *data) check(g *driver.GPU, from driver.Pointer, count int64, staging []byte) (wrong int64, err error) {
	part := int64(len(staging) / t.codec.size)
	for first := int64(0); first < count; first += part {
		n := min(part, count-first)
		text := staging[:n*int64(t.codec.size)]
		if err := g.Get(text, from+driver.Pointer(first*int64(t.codec.size))); err != nil {
			return 0, err
		}
		wrong += t.compare(text, first)
	}
	return wrong, nil
}

// compare counts wrong elements in a text that begins at the first-th.
func (t *data) compare(text []byte, first int64) int64 {
	count := len(text) / t.codec.size
	workers := min(runtime.GOMAXPROCS(0), 1+count/period)
	wrong := make([]int64, workers)
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() {
			for i := count * w / workers; i < count*(w+1)/workers; i++ {
				at := (first + int64(i)) % period
				off := math.Abs(t.codec.decode(text[i*t.codec.size:]) - t.want[at])
				if !(off <= t.within[at]) { // also of NaN
					wrong[w]++
				}
			}
		})
	}
	group.Wait()
	var sum int64
	for _, n := range wrong {
		sum += n
	}
	return sum
}
