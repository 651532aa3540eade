package figure

import (
	"fmt"
	"math"
	"strconv"

	"gonum.org/v1/plot"

	"tutti/model/units"
)

// byteTicks marks the whole powers of two, naming as many as are legible.
type byteTicks struct{}

// Ticks implements [plot.Ticker].
func (byteTicks) Ticks(lo, hi float64) []plot.Tick {
	first, last := max(0, int(math.Ceil(math.Log2(lo)))), int(math.Floor(math.Log2(hi)))
	every := max(1, (last-first+4)/5)
	var ticks []plot.Tick
	for e := first; e <= last; e++ {
		t := plot.Tick{Value: math.Ldexp(1, e)}
		if (e-first)%every == 0 {
			t.Label = units.Bytes(1 << e).String()
		}
		ticks = append(ticks, t)
	}
	return ticks
}

// roundTicks marks multiples of a round number, four to ten of them.
type roundTicks struct{}

// Ticks implements [plot.Ticker].
func (roundTicks) Ticks(lo, hi float64) []plot.Tick {
	step := math.Pow(10, math.Floor(math.Log10((hi-lo)/4)))
	for _, times := range []float64{5, 2} {
		if (hi-lo)/(times*step) >= 4 {
			step *= times
			break
		}
	}
	var ticks []plot.Tick
	for i := math.Ceil(lo / step); i*step <= hi; i++ {
		ticks = append(ticks, plot.Tick{Value: i * step, Label: fmt.Sprintf("%.4g", i*step)})
	}
	return ticks
}

// countTicks marks the powers of two.
type countTicks struct{}

// Ticks implements [plot.Ticker].
func (countTicks) Ticks(lo, hi float64) []plot.Tick {
	var ticks []plot.Tick
	every := max(1, int(math.Log2(hi/lo)+4)/8)
	for n, i := math.Exp2(math.Ceil(math.Log2(lo))), 0; n <= hi; n, i = 2*n, i+1 {
		t := plot.Tick{Value: n}
		if i%every == 0 {
			t.Label = strconv.Itoa(int(n))
		}
		ticks = append(ticks, t)
	}
	return ticks
}

// decadeTicks marks 1, 2 and 5 of each power of ten, or the powers alone where
// there are many.
type decadeTicks struct{}

// Ticks implements [plot.Ticker].
func (decadeTicks) Ticks(lo, hi float64) []plot.Tick {
	var ticks []plot.Tick
	for e := math.Floor(math.Log10(lo)); math.Pow(10, e) <= hi; e++ {
		for _, times := range []float64{1, 2, 5} {
			v := times * math.Pow(10, e)
			if v < lo || v > hi {
				continue
			}
			t := plot.Tick{Value: v}
			if times == 1 || hi/lo < 1000 {
				t.Label = strconv.FormatFloat(v, 'g', -1, 64)
				if v >= 1e4 {
					t.Label = strconv.FormatFloat(v, 'f', 0, 64)
				}
			}
			ticks = append(ticks, t)
		}
	}
	return ticks
}

// powerTicks marks powers of ten.
type powerTicks struct{}

// Ticks implements [plot.Ticker].
func (powerTicks) Ticks(lo, hi float64) []plot.Tick {
	var ticks []plot.Tick
	for e := int(math.Ceil(math.Log10(lo) - 1e-9)); math.Pow10(e) <= hi; e++ {
		ticks = append(ticks, plot.Tick{Value: math.Pow10(e), Label: fmt.Sprintf("%g", math.Pow10(e))})
	}
	return ticks
}
