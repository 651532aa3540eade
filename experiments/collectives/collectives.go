// Package collectives is AllGather, ReduceScatter, Broadcast, Reduce, AllToAll and
// SendRecv by tutti's GPU kernels on 4 and 2 H200s, with NCCL by default and with
// symmetric windows beside it in the same process. Its README says how it was
// measured; the CSV files are as the tool wrote them.
package collectives

import (
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

//go:embed h200x4.csv h200x2.csv
var files embed.FS

// All lists the collectives, in nccl-tests' order.
func All() []model.Collective {
	return []model.Collective{model.AllGather, model.ReduceScatter, model.Broadcast, model.Reduce, model.AllToAll, model.SendRecv}
}

// Result is one size of a collective: median times of a call, out of place.
type Result struct {
	Bytes units.Bytes
	// Kernel and Blocks are those that tutti chose.
	Kernel string
	Blocks int
	// Windows is NCCL with symmetric ones.
	Tutti, NCCL, Windows units.Time
}

// Read returns the results of a collective on a number of GPUs, by size.
func Read(gpus int, c model.Collective) (results []Result, err error) {
	name := fmt.Sprintf("h200x%d.csv", gpus)
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	list, err := rows.ReadCSV(f, name)
	if err != nil {
		return nil, err
	}
	for _, row := range list {
		if row.Wrong == nil || *row.Wrong != 0 {
			return nil, fmt.Errorf("%s: %v of %v: wrong elements, or nobody looked", name, row.Collective, row.Bytes)
		}
		if row.Collective != c || row.InPlace {
			continue
		}
		i := slices.IndexFunc(results, func(r Result) bool { return r.Bytes == row.Bytes })
		if i < 0 {
			i, results = len(results), append(results, Result{Bytes: row.Bytes})
		}
		switch r := &results[i]; row.Source {
		case "cuda":
			r.Kernel, r.Blocks, r.Tutti = row.Kernel, row.Channels, row.Time
		case "nccl":
			r.NCCL = row.Time
		case "nccl-symmetric":
			r.Windows = row.Time
		}
	}
	return results, nil
}

// Table writes the results as the README has them.
func Table(w io.Writer, results []Result) error {
	_, err := fmt.Fprint(w, ""+
		"| size | kernel | blocks | tutti, µs | NCCL, µs | NCCL with windows, µs | tutti to NCCL | to the best |\n"+
		"|---:|---|---:|---:|---:|---:|---:|---:|\n")
	for _, r := range results {
		if err == nil {
			_, err = fmt.Fprintf(w, "| %v | %s | %d | %.2f | %.2f | %.2f | %.2f | %.2f |\n",
				r.Bytes, r.Kernel, r.Blocks, r.Tutti.Microseconds(), r.NCCL.Microseconds(), r.Windows.Microseconds(),
				float64(r.Tutti)/float64(r.NCCL), float64(r.Tutti)/float64(min(r.NCCL, r.Windows)))
		}
	}
	return err
}

// Groups returns the results as a figure has them, with the limit: a flag, and then
// the bytes that must go over a link at the highest rate that was probed.
func Groups(gpus int) (groups []figure.Group, err error) {
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
				line.Rows = append(line.Rows, rows.Row{Collective: c, Nodes: 1, Ranks: gpus, Bytes: r.Bytes, Time: l.time(r)})
			}
			g.Lines = append(g.Lines, line)
		}
		groups = append(groups, g)
	}
	return groups, nil
}
