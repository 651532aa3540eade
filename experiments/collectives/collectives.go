// Package collectives is AllGather, ReduceScatter, Broadcast, Reduce, AllToAll and
// SendRecv by tutti's GPU kernels on 4 and 2 H200s, with NCCL by default and with
// symmetric windows beside it. Its README says how it was measured; the CSV files are
// as the tool wrote them.
package collectives

import (
	"cmp"
	"embed"
	"fmt"
	"io"
	"slices"

	"tutti/experiments/figure"
	"tutti/experiments/hotkernels"
	"tutti/experiments/rows"
	"tutti/model"
	"tutti/model/units"
)

//go:embed *.csv
var files embed.FS

// All lists the collectives, in nccl-tests' order.
func All() []model.Collective {
	return []model.Collective{model.AllGather, model.ReduceScatter, model.Broadcast, model.Reduce, model.AllToAll, model.SendRecv}
}

// Result is one size of a collective: median times of a call, out of place.
type Result struct {
	Bytes units.Bytes
	// Kernel and Blocks are those that tutti was launched with.
	Kernel string
	Blocks int
	// Windows is NCCL with symmetric ones. Both are 0 where they were not measured.
	Tutti, NCCL, Windows units.Time
}

// Read returns the results of a collective on a number of GPUs, by size: tutti's of a run
// with NCCL in the same process or, where there is none, the quickest launch of a sweep.
func Read(gpus int, c model.Collective) (results []Result, err error) {
	list, err := read(gpus)
	if err != nil {
		return nil, err
	}
	for _, row := range list {
		if row.Collective != c {
			continue
		}
		i := slices.IndexFunc(results, func(r Result) bool { return r.Bytes == row.Bytes })
		if i < 0 {
			i, results = len(results), append(results, Result{Bytes: row.Bytes})
		}
		switch r := &results[i]; row.Source {
		case "cuda":
			if row.Wrong == nil {
				return nil, fmt.Errorf("%v of %v: nobody looked whether elements are wrong", c, row.Bytes)
			}
			r.Kernel, r.Blocks, r.Tutti = row.Kernel, row.Channels, row.Time
		case "nccl":
			r.NCCL = row.Time
		case "nccl-symmetric":
			r.Windows = row.Time
		}
	}
	launches, err := sweep(gpus)
	if err != nil {
		return nil, err
	}
	for i := range results {
		r := &results[i]
		if r.Tutti > 0 {
			continue
		}
		for _, l := range launches {
			if l.Collective == c && l.Bytes == r.Bytes && (r.Tutti == 0 || l.Time < r.Tutti) {
				r.Kernel, r.Blocks, r.Tutti = l.Kernel, l.Blocks, l.Time
			}
		}
	}
	slices.SortFunc(results, func(a, b Result) int { return cmp.Compare(a.Bytes, b.Bytes) })
	return results, nil
}

// read returns the rows on a number of GPUs, out of place.
func read(gpus int) ([]rows.Row, error) {
	list, err := hotkernels.Measured(files, fmt.Sprintf("h200x%d.csv", gpus))
	return slices.DeleteFunc(list, func(r rows.Row) bool { return r.InPlace }), err
}

func sweep(gpus int) ([]hotkernels.Launch, error) {
	name := fmt.Sprintf("sweep-h200x%d.csv", gpus)
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return hotkernels.ReadSweep(f, name)
}

// Launches returns those that tutti chose beside NCCL, and those of the sweeps.
func Launches() (launches []hotkernels.Launch, err error) {
	for _, gpus := range []int{2, 4} {
		list, err := read(gpus)
		if err != nil {
			return nil, err
		}
		for _, r := range list {
			if r.Source == "cuda" {
				launches = append(launches, hotkernels.Launch{Collective: r.Collective, GPUs: r.Ranks, Kernel: r.Kernel, Bytes: r.Bytes, Blocks: r.Channels, Time: r.Time})
			}
		}
		swept, err := sweep(gpus)
		if err != nil {
			return nil, err
		}
		launches = append(launches, swept...)
	}
	return launches, nil
}

// Table writes the results as the README has them.
func Table(w io.Writer, results []Result) error {
	_, err := fmt.Fprint(w, ""+
		"| size | kernel | blocks | tutti, µs | NCCL, µs | NCCL with windows, µs | tutti to NCCL |\n"+
		"|---:|---|---:|---:|---:|---:|---:|\n")
	for _, r := range results {
		nccl, windows, ratio := "-", "-", "-"
		if r.NCCL > 0 {
			nccl, ratio = fmt.Sprintf("%.2f", r.NCCL.Microseconds()), fmt.Sprintf("%.2f", float64(r.Tutti)/float64(r.NCCL))
		}
		if r.Windows > 0 {
			windows = fmt.Sprintf("%.2f", r.Windows.Microseconds())
		}
		if err == nil {
			_, err = fmt.Fprintf(w, "| %v | %s | %d | %.2f | %s | %s | %s |\n", r.Bytes, r.Kernel, r.Blocks, r.Tutti.Microseconds(), nccl, windows, ratio)
		}
	}
	return err
}

// Groups returns the results on 4 GPUs as a figure has them, with the limit: a flag, and then
// the bytes that must go over a link at the highest rate that was probed.
func Groups() (groups []figure.Group, err error) {
	const gpus = 4
	flag, rate, err := hotkernels.Limit()
	if err != nil {
		return nil, err
	}
	pace := rate.Pace()
	for _, c := range All() {
		results, err := Read(gpus, c)
		if err != nil {
			return nil, err
		}
		g := figure.Group{Title: c.String()}
		for _, l := range []struct {
			name string
			time func(Result) units.Time
		}{
			{"tutti", func(r Result) units.Time { return r.Tutti }},
			{"NCCL", func(r Result) units.Time { return r.NCCL }},
			{"NCCL with windows", func(r Result) units.Time { return r.Windows }},
			{"limit", func(r Result) units.Time {
				return flag + pace.Of(units.Bytes(float64(r.Bytes)*c.BusFactor(gpus)))
			}},
		} {
			line := figure.Series{Name: l.name, Limit: l.name == "limit"}
			for _, r := range results {
				if t := l.time(r); t > 0 {
					line.Rows = append(line.Rows, rows.Row{Collective: c, Nodes: 1, Ranks: gpus, Bytes: r.Bytes, Time: t})
				}
			}
			g.Lines = append(g.Lines, line)
		}
		groups = append(groups, g)
	}
	return groups, nil
}
