// Package hotkernels is AllReduce by tutti's GPU kernels on 4 and 2 H200s, with
// NCCL by default and with symmetric windows beside it in the same process. Its
// README says how it was measured; the CSV files are as the tool wrote them.
package hotkernels

import (
	"embed"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"

	"tutti/model"
	"tutti/model/units"
)

//go:embed h200x4.csv h200x2.csv
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
