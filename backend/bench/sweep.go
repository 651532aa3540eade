// Package bench is what only kernels on GPUs are asked: how launches compare by
// size (Sweep), what the wires carry (Probe), and whether random calls are right,
// one after the other and after faults (Stress).
package bench

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"

	"tutti/backend"
	"tutti/backend/cuda"
	"tutti/model"
	"tutti/model/schedule"
	"tutti/model/units"
)

// Sweep measures a call with every launch of the hot kernels that is worth trying
// at its size and writes CSV: without a header, which is [SweepHeader]. A launch
// that does not suit the call is left out with a note.
func Sweep(ctx context.Context, b *cuda.Backend, t schedule.Task, m backend.Method, to, notes io.Writer) error {
	out := csv.NewWriter(to)
	for _, l := range Launches(t) {
		x, err := b.PrepareLaunch(t, l)
		if err != nil && !errors.Is(err, backend.ErrUnsupported) {
			return err
		}
		if err != nil {
			fmt.Fprintf(notes, "left out: %v of %v: %v\n", l, t.Bytes(), err)
			continue
		}
		result, err := backend.Measure(ctx, x, t, m)
		if err := errors.Join(err, x.Close()); err != nil {
			return fmt.Errorf("%v of %v: %w", l, t.Bytes(), err)
		}
		bus := float64(t.Bytes().Over(result.Time)/units.GBps) * t.Collective.BusFactor(t.Ranks)
		_ = out.Write([]string{ // an error is kept for Flush
			t.Collective.String(), l.Algorithm.String(), strconv.Itoa(t.Ranks), t.Datatype.String(), t.Redop.String(), strconv.FormatInt(int64(t.Bytes()), 10),
			strconv.Itoa(l.Blocks), strconv.Itoa(l.Threads), strconv.Itoa(l.Rounds),
			fmt.Sprintf("%.3f", result.Time.Microseconds()), fmt.Sprintf("%.2f", bus), strconv.FormatInt(result.Wrong, 10),
		})
		out.Flush()
	}
	return out.Error()
}

// SweepHeader names the columns of [Sweep].
const SweepHeader = "collective,series,gpus,datatype,redop,bytes,blocks,threads,rounds,median_us,busbw_GBps,wrong"

// Launches returns the launches that are worth trying for a call.
func Launches(t schedule.Task) []cuda.Launch {
	if t.Collective != model.AllReduce {
		return collectiveLaunches(t)
	}
	bytes := t.Bytes()
	var list []cuda.Launch
	add := func(a cuda.Algorithm, blocks, threads, rounds []int) {
		for _, b := range blocks {
			for _, t := range threads {
				for _, r := range rounds {
					list = append(list, cuda.Launch{Algorithm: a, Blocks: b, Threads: t, Rounds: r})
				}
			}
		}
	}
	one := []int{1}
	blocksFor := func(perBlock units.Bytes) []int { // about as many as give each warp one line
		n := int((bytes + perBlock - 1) / perBlock)
		var blocks []int
		for _, b := range []int{n / 2, n, 2 * n} {
			if b >= 1 && b <= 128 {
				blocks = append(blocks, b)
			}
		}
		if n > 128 {
			blocks = append(blocks, 16, 64, 128)
		}
		return blocks
	}
	if bytes <= 512*units.KiB {
		for _, threads := range []int{32, 64, 256, 512} { // a warp carries 256 and 480 bytes
			add(cuda.OneShotLL, blocksFor(units.Bytes(threads*8)), []int{threads}, one)
			add(cuda.OneShotLL128, blocksFor(units.Bytes(threads*15)), []int{threads}, one)
		}
	}
	if t.Ranks == 2 && bytes > 512*units.KiB && bytes <= 8*units.MiB {
		add(cuda.OneShotLL128, []int{64, 128}, []int{512}, one)
	}
	if bytes >= 2*units.KiB && bytes <= 2*units.MiB {
		add(cuda.TwoShotLL, blocksFor(16*units.KiB), []int{512}, one)
	}
	if bytes >= 4*units.KiB && bytes <= 32*units.MiB {
		add(cuda.TwoShotLL128, blocksFor(30*units.KiB), []int{512}, one)
	}
	if bytes >= 512*units.KiB && bytes <= units.GiB {
		rounds := one
		if bytes >= 4*units.MiB && bytes <= 64*units.MiB {
			rounds = []int{1, 2}
		}
		blocks := []int{64, 132}
		if bytes <= 2*units.MiB {
			blocks = []int{16, 32, 64, 132}
		}
		add(cuda.TwoShotPush, blocks, []int{512, 768, 1024}, rounds)
	}
	if bytes >= 16*units.MiB {
		add(cuda.HybridPush, []int{132}, []int{512}, one)
		add(cuda.Hybrid, []int{132}, []int{512}, []int{1, 2, 3, 4})
	}
	return list
}
