package figure

import (
	"fmt"
	"math"

	"gonum.org/v1/plot"

	"tutti/experiments/rows"
	"tutti/model/units"
)

// What a figure can go by.
const (
	Size  = "size"
	Ranks = "ranks"
)

// Axes are the names of what a figure can go by.
var Axes = []string{Size, Ranks}

// axis says what is drawn against what.
type axis struct {
	x, y           func(rows.Row) float64
	xLabel, yLabel string
	xTicks, yTicks plot.Ticker
	logY           bool
	// clusters says that rows are grouped by cluster, not by size; group is what
	// all rows of a group have in common, and name says it.
	clusters bool
	group    func(rows.Row) rows.Row
	name     func(rows.Row) string
}

// Axis returns what suits the rows: size where there are several sizes, or a
// single cluster.
func Axis(list []rows.Row) string {
	sizes := kinds(list, func(r rows.Row) rows.Row { return rows.Row{Bytes: r.Bytes} })
	clusters := kinds(list, func(r rows.Row) rows.Row { return rows.Row{Ranks: r.Ranks} })
	if sizes == 1 && clusters > 1 {
		return Ranks
	}
	return Size
}

func axisOf(name string) axis {
	if name == Ranks {
		return axis{
			x: func(r rows.Row) float64 { return float64(r.Ranks) }, xLabel: "GPUs", xTicks: countTicks{},
			y: func(r rows.Row) float64 { return r.Time.Microseconds() }, yLabel: "time (us)", yTicks: decadeTicks{}, logY: true,
			group: func(r rows.Row) rows.Row { return rows.Row{Bytes: r.Bytes} },
			name:  func(r rows.Row) string { return r.Bytes.String() },
		}
	}
	return axis{
		x: func(r rows.Row) float64 { return float64(r.Bytes) }, xLabel: "size", xTicks: byteTicks{},
		y: func(r rows.Row) float64 { return float64(r.BusBW() / units.GBps) }, yLabel: "bus bandwidth (GB/s)", yTicks: roundTicks{},
		clusters: true,
		group:    func(r rows.Row) rows.Row { return rows.Row{Ranks: r.Ranks} },
		name:     func(r rows.Row) string { return fmt.Sprintf("%d GPUs", r.Ranks) },
	}
}

// scale returns where the vertical axis begins and ends.
func (a axis) scale(low, high float64) (bottom, top float64) {
	switch {
	case a.logY:
		bottom = math.Pow(10, math.Floor(math.Log10(low)))
		for _, times := range []float64{5, 2} {
			if times*bottom <= low {
				return times * bottom, high * 2 // room for the legend
			}
		}
		return bottom, high * 2
	case high == 0: // a single rank has no bus
		return 0, 1
	default:
		return 0, high * 1.06
	}
}
