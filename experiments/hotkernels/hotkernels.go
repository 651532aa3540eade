// Package hotkernels is AllReduce by tutti's GPU kernels on 4 and 2 H200s, with
// NCCL by default and with symmetric windows beside it in the same process. Its
// README says how it was measured; the CSV files are as the tool wrote them.
package hotkernels

import (
	"embed"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"tutti/experiments/figure"
	"tutti/experiments/rows"
	"tutti/model"
	"tutti/model/units"
)

//go:embed h200x4.csv h200x2.csv probe-h200x4.csv
var files embed.FS

// Result is one size on one number of GPUs: median times of a call.
type Result struct {
	Bytes units.Bytes
	// Kernel and Blocks are those that tutti chose.
	Kernel               string
	Blocks               int
	Tutti, NCCL, Windows float64 // microseconds; Windows is NCCL with symmetric ones
}

// Ratio returns tutti's time over that of the quicker NCCL.
func (r Result) Ratio() float64 { return r.Tutti / min(r.NCCL, r.Windows) }

// Limit returns what no AllReduce on 4 H200s can beat, of what was probed there: the
// least time of a flag between two GPUs, in microseconds, and the highest rate at
// which a GPU sent to one of the others or to all, which bounds bus bandwidth.
func Limit() (flag float64, rate units.Rate, err error) {
	f, err := files.Open("probe-h200x4.csv")
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	list, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return 0, 0, err
	}
	flag = math.Inf(1)
	for _, row := range list[1:] {
		v, err := strconv.ParseFloat(row[len(row)-1], 64)
		if err != nil {
			return 0, 0, err
		}
		if row[0] == "flag_us" {
			flag = min(flag, v)
		} else {
			rate = max(rate, units.Rate(v)*units.GBps)
		}
	}
	return flag, rate, nil
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
	limit := func(r Result) float64 {
		return flag + float64(r.Bytes)*model.AllReduce.BusFactor(gpus)/float64(rate)*1e6
	}
	var lines []figure.Series
	for _, l := range []struct {
		name string
		time func(Result) float64
	}{
		{"tutti", func(r Result) float64 { return r.Tutti }},
		{"NCCL", func(r Result) float64 { return r.NCCL }},
		{"NCCL with symmetric windows", func(r Result) float64 { return r.Windows }},
		{"limit: a flag, and the links' rate", limit},
	} {
		line := figure.Series{Name: l.name}
		for _, r := range results {
			line.Rows = append(line.Rows, rows.Row{
				Collective: model.AllReduce, Datatype: d, Nodes: 1, Ranks: gpus, Bytes: r.Bytes, Time: units.FromMicroseconds(l.time(r)),
			})
		}
		lines = append(lines, line)
	}
	lines[len(lines)-1].Limit = true
	return lines, nil
}

// Read returns the results on a number of GPUs of a datatype, by size.
func Read(gpus int, d model.Datatype) ([]Result, error) {
	f, err := files.Open(fmt.Sprintf("h200x%d.csv", gpus))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in := csv.NewReader(f)
	header, err := in.Read()
	if err != nil {
		return nil, err
	}
	column := func(row []string, name string) string { return row[slices.Index(header, name)] }
	var results []Result
	for {
		row, err := in.Read()
		if err == io.EOF {
			return results, nil
		}
		if err != nil {
			return nil, err
		}
		if column(row, "datatype") != d.String() {
			continue
		}
		bytes, err := strconv.ParseInt(column(row, "bytes"), 10, 64)
		if err != nil {
			return nil, err
		}
		us, err := strconv.ParseFloat(column(row, "median_us"), 64)
		if err != nil {
			return nil, err
		}
		if wrong := column(row, "wrong"); wrong != "0" {
			return nil, fmt.Errorf("%d bytes: %s elements are wrong", bytes, wrong)
		}
		if len(results) == 0 || results[len(results)-1].Bytes != units.Bytes(bytes) {
			results = append(results, Result{Bytes: units.Bytes(bytes)})
		}
		r := &results[len(results)-1]
		switch series := column(row, "series"); series {
		case "nccl-default":
			r.NCCL = us
		case "nccl-symmetric":
			r.Windows = us
		default:
			r.Kernel, r.Tutti = series, us
			if r.Blocks, err = strconv.Atoi(column(row, "blocks")); err != nil {
				return nil, err
			}
		}
	}
}

// Table writes the results as the README has them.
func Table(w io.Writer, results []Result) error {
	_, err := fmt.Fprint(w, "| size | kernel | blocks | tutti, µs | NCCL, µs | NCCL with windows, µs | tutti to the best NCCL |\n|---:|---|---:|---:|---:|---:|---:|\n")
	for _, r := range results {
		if err == nil {
			_, err = fmt.Fprintf(w, "| %v | %s | %d | %.2f | %.2f | %.2f | %.2f |\n", r.Bytes, r.Kernel, r.Blocks, r.Tutti, r.NCCL, r.Windows, r.Ratio())
		}
	}
	return err
}
