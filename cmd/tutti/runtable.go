package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"runtime"
	"strings"

	"tutti/backend"
	"tutti/backend/host"
	"tutti/experiments/rows"
	"tutti/model/schedule"
	"tutti/model/units"
)

// runTable prints results as nccl-tests 2.19.6 does, line by line as they come:
// size, count, type, operation and root, then time, bandwidths and wrong
// elements out of place and in place. At the end of the line stands what NCCL
// does not tell: algorithm, protocol and channels.
type runTable struct {
	*runFlags
	to      io.Writer
	err     error // of the first write that failed
	begun   bool
	several bool // backends, side by side
}

func (w *runTable) printf(format string, args ...any) {
	if w.err == nil {
		if _, err := fmt.Fprintf(w.to, format, args...); err != nil {
			w.err = fmt.Errorf("writing the results: %w", err)
		}
	}
}

func (w *runTable) header(backends []backend.Backend, machine string, t schedule.Task) {
	w.begun, w.several = true, len(backends) > 1
	names := make([]string, len(backends))
	for i, b := range backends {
		names[i] = b.Name()
	}
	w.printf("# tutti %s: %v on %s, %d ranks in %d nodes\n", strings.Join(names, ", "), t.Collective, machine, t.Ranks, t.Nodes)
	w.printf("# warmup iters: %d iters: %d validation: %d\n#\n", w.warmup, w.iterations, w.check)
	w.printf("# %10s  %12s  %8s  %6s  %6s  %30s  %30s\n", "", "", "", "", "", "out-of-place          ", "in-place            ")
	w.printf("# %10s  %12s  %8s  %6s  %6s", "size", "count", "type", "redop", "root")
	for range 2 {
		w.printf("  %7s  %6s  %6s  %6s", "time", "algbw", "busbw", "#wrong")
	}
	w.printf("  %12s  %6s  %3s", "algo", "proto", "nch")
	if w.several {
		w.printf("  %-14s  %6s", "backend", "ratio")
	}
	w.printf("\n")
	w.printf("# %10s  %12s  %8s  %6s  %6s", "(B)", "(elements)", "", "", "")
	for range 2 {
		w.printf("  %7s  %6s  %6s  %6s", "(us)", "(GB/s)", "(GB/s)", "")
	}
	w.printf("\n")
}

// row prints a call: forms are its results out of place and in place, nil where there
// is no such form, and first is the time of the first backend, or 0.
func (w *runTable) row(backend string, t schedule.Task, forms [2]*rows.Row, first units.Time) {
	redop, root := "none", -1
	if t.Collective.Reduces() {
		redop = t.Redop.String()
	}
	if t.Collective.Rooted() {
		root = t.Root
	}
	w.printf("%12d  %12d  %8v  %6s  %6d", int64(t.Bytes()), t.Count, t.Datatype, redop, root)
	for _, r := range forms {
		if r == nil {
			w.printf("  %7s  %6s  %6s  %6s", "N/A", "N/A", "N/A", "N/A")
			continue
		}
		wrong := "N/A"
		if r.Wrong != nil {
			wrong = fmt.Sprintf("%g", float64(*r.Wrong))
		}
		w.printf("  %s  %s  %s  %6s", fit(r.Time.Microseconds(), 7), fit(float64(r.AlgBW()/units.GBps), 6), fit(float64(r.BusBW()/units.GBps), 6), wrong)
	}
	if _, _, told := ncclTold(); strings.HasPrefix(backend, onNCCL) && !told { // it does not tell
		w.printf("  %12s  %6s  %3s", "-", "-", "-")
	} else {
		w.printf("  %12v  %6v  %3d", t.Algorithm, t.Protocol, t.Channels)
	}
	if w.several {
		ratio := "-"
		if first > 0 {
			ratio = fmt.Sprintf("%.2f", float64(cmp.Or(forms[0], forms[1]).Time)/float64(first))
		}
		w.printf("  %-14s  %6s", backend, ratio)
	}
	w.printf("\n")
}

// fit writes a number with as many decimals, up to two, as the width has room
// for.
func fit(value float64, width int) string {
	digits := 1
	if value >= 1 {
		digits = 1 + int(math.Floor(math.Log10(value)))
	}
	switch {
	case digits+3 <= width:
		return fmt.Sprintf("%*.2f", width, value)
	case digits+2 <= width:
		return fmt.Sprintf("%*.1f", width, value)
	case digits <= width:
		return fmt.Sprintf("%*.0f", width, value)
	default:
		return fmt.Sprintf("%*.1e", width, value)
	}
}

func (w *runTable) footer(results []rows.Row) {
	if w.check == 1 {
		wrong, verdict := countWrong(results), "OK"
		if wrong > 0 {
			verdict = "FAILED"
		}
		w.printf("# Out of bounds values : %d %s\n", wrong, verdict)
	}
	var sum float64
	for _, r := range results {
		sum += float64(r.BusBW() / units.GBps)
	}
	w.printf("# Avg bus bandwidth    : %g\n#\n", sum/float64(max(1, len(results))))
}

// memory prints the rate at which a call of the given size used memory.
func (w *runTable) memory(size units.Bytes, rate units.Rate) {
	plain := host.CopyAndAdd(min(max(size, 64*units.MiB), units.GiB))
	w.printf("# Memory rate          : %v at %v; a plain copy-and-add has %v on %d cores\n#\n", rate, size, plain, runtime.GOMAXPROCS(0))
}

// countWrong adds up the elements that differ from the reference.
func countWrong(results []rows.Row) (wrong int64) {
	for _, r := range results {
		if r.Wrong != nil {
			wrong += *r.Wrong
		}
	}
	return wrong
}
