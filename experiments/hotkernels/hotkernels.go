// Package hotkernels is AllReduce by tutti's GPU kernels on 4 and 2 H200s, with
// NCCL by default and with symmetric windows beside it in the same process, and
// PyTorch's symmetric memory. Its README says how it was measured; the CSV files are
// as the tools wrote them.
package hotkernels

import (
	"cmp"
	"embed"
	"encoding/csv"
	"fmt"
	"io"
	"io/fs"
	"math"
	"slices"
	"strconv"

	"tutti/experiments/figure"
	"tutti/experiments/rows"
	"tutti/model"
	"tutti/model/units"
)

//go:embed h200x?.csv sweep-h200x?.csv torch-h200x?.csv interpreter-h200x?.csv nccl-ring-tree-h200x?.csv probe-h200x4.csv
var files embed.FS

// Result is one size on one number of GPUs: median times of a call, out of place.
type Result struct {
	Bytes units.Bytes
	// Kernel and Blocks are those that tutti chose.
	Kernel string
	Blocks int
	// Tutti, NCCL and Windows, which is NCCL with symmetric ones, were measured in one
	// process. Torch is the quicker of PyTorch's one shot and two, which works in
	// place; 0 where it was not measured.
	Tutti, NCCL, Windows, Torch units.Time
}

// Ratio returns tutti's time over that of the quickest other.
func (r Result) Ratio() float64 {
	best := min(r.NCCL, r.Windows)
	if r.Torch > 0 {
		best = min(best, r.Torch)
	}
	return float64(r.Tutti) / float64(best)
}

// Limit returns what no AllReduce on 4 H200s can beat, of what was probed there: the
// least time of a flag between two GPUs, and the highest rate at which a GPU sent to
// one of the others or to all, which bounds bus bandwidth.
func Limit() (flag units.Time, rate units.Rate, err error) {
	f, err := files.Open("probe-h200x4.csv")
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	list, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return 0, 0, err
	}
	engine, us, gbps := slices.Index(list[0], "engine"), slices.Index(list[0], "time_us"), slices.Index(list[0], "GBps")
	least := math.Inf(1)
	for _, row := range list[1:] {
		time, err := strconv.ParseFloat(row[us], 64)
		if err != nil {
			return 0, 0, err
		}
		carried, err := strconv.ParseFloat(row[gbps], 64)
		if err != nil {
			return 0, 0, err
		}
		if row[engine] == "flag" {
			least = min(least, time)
		}
		rate = max(rate, units.Rate(carried)*units.GBps)
	}
	return units.FromMicroseconds(least), rate, nil
}

// Lines returns the results as a figure has them, with the limit.
func Lines(gpus int, d model.Datatype) ([]figure.Series, error) {
	results, err := Read(gpus, d)
	if err != nil {
		return nil, err
	}
	flag, rate, err := Limit()
	if err != nil {
		return nil, err
	}
	pace := rate.Pace()
	var lines []figure.Series
	for _, l := range []struct {
		name string
		time func(Result) units.Time
	}{
		{"tutti", func(r Result) units.Time { return r.Tutti }},
		{"NCCL", func(r Result) units.Time { return r.NCCL }},
		{"NCCL with symmetric windows", func(r Result) units.Time { return r.Windows }},
		{"PyTorch's symmetric memory", func(r Result) units.Time { return r.Torch }},
		{"limit: a flag, and the links' rate", func(r Result) units.Time {
			return flag + pace.Of(units.Bytes(float64(r.Bytes)*model.AllReduce.BusFactor(gpus)))
		}},
	} {
		line := figure.Series{Name: l.name}
		for _, r := range results {
			if t := l.time(r); t > 0 {
				line.Rows = append(line.Rows, rows.Row{Collective: model.AllReduce, Datatype: d, Nodes: 1, Ranks: gpus, Bytes: r.Bytes, Time: t})
			}
		}
		lines = append(lines, line)
	}
	lines[len(lines)-1].Limit = true
	return lines, nil
}

// Read returns the results on a number of GPUs of a datatype, by size.
func Read(gpus int, d model.Datatype) ([]Result, error) {
	var results []Result
	for _, name := range []string{"h200x%d.csv", "torch-h200x%d.csv"} {
		list, err := Measured(files, fmt.Sprintf(name, gpus))
		if err != nil {
			return nil, err
		}
		for _, row := range list {
			if row.Datatype == d && (!row.InPlace || row.Source == "torch") {
				results = add(results, row)
			}
		}
	}
	return results, nil
}

// Measured reads rows of an experiment's file. It fails where elements were wrong.
func Measured(files fs.FS, name string) ([]rows.Row, error) {
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	list, err := rows.ReadCSV(f, name)
	if err := cmp.Or(err, f.Close()); err != nil {
		return nil, err
	}
	for _, r := range list {
		if r.Wrong != nil && *r.Wrong != 0 {
			return nil, fmt.Errorf("%s: %v of %v: %d elements are wrong", name, r.Collective, r.Bytes, *r.Wrong)
		}
	}
	return list, nil
}

// add puts a row into the result of its size. PyTorch's of other sizes are left out.
func add(results []Result, row rows.Row) []Result {
	i := slices.IndexFunc(results, func(r Result) bool { return r.Bytes == row.Bytes })
	if i < 0 && row.Source != "torch" {
		i, results = len(results), append(results, Result{Bytes: row.Bytes})
	}
	if i < 0 {
		return results
	}
	switch r := &results[i]; row.Source {
	case "cuda":
		r.Kernel, r.Blocks, r.Tutti = row.Kernel, row.Channels, row.Time
	case "nccl":
		r.NCCL = row.Time
	case "nccl-symmetric":
		r.Windows = row.Time
	case "torch":
		if r.Torch == 0 || row.Time < r.Torch {
			r.Torch = row.Time
		}
	}
	return results
}

// Table writes the results as the README has them.
func Table(w io.Writer, results []Result) error {
	_, err := fmt.Fprint(w, ""+
		"| size | kernel | blocks | tutti, µs | NCCL, µs | NCCL with windows, µs | PyTorch, µs | tutti to the best other |\n"+
		"|---:|---|---:|---:|---:|---:|---:|---:|\n")
	for _, r := range results {
		torch := "-"
		if r.Torch > 0 {
			torch = fmt.Sprintf("%.2f", r.Torch.Microseconds())
		}
		if err == nil {
			_, err = fmt.Fprintf(w, "| %v | %s | %d | %.2f | %.2f | %.2f | %s | %.2f |\n",
				r.Bytes, r.Kernel, r.Blocks, r.Tutti.Microseconds(), r.NCCL.Microseconds(), r.Windows.Microseconds(), torch, r.Ratio())
		}
	}
	return err
}
