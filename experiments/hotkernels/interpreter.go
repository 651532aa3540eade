package hotkernels

import (
	"fmt"
	"io"

	"tutti/experiments/rows"
	"tutti/model"
	"tutti/model/units"
)

// Interpreted returns the time of the schedule interpreter over NCCL's, by algorithm,
// protocol and size: NCCL was held to the same algorithm and protocol.
func Interpreted(gpus int) (map[rows.Row]float64, error) {
	times := [2]map[rows.Row]units.Time{{}, {}}
	for i, name := range []string{"interpreter-h200x%d.csv", "nccl-ring-tree-h200x%d.csv"} {
		list, err := Measured(files, fmt.Sprintf(name, gpus))
		if err != nil {
			return nil, err
		}
		for _, r := range list {
			if !r.InPlace {
				times[i][rows.Row{Algorithm: r.Algorithm, Protocol: r.Protocol, Bytes: r.Bytes}] = r.Time
			}
		}
	}
	ratios := map[rows.Row]float64{}
	for call, time := range times[0] {
		ratios[call] = float64(time) / float64(times[1][call])
	}
	return ratios, nil
}

// InterpreterTable writes these as the README has them.
func InterpreterTable(w io.Writer, ratios map[rows.Row]float64) error {
	_, err := fmt.Fprint(w, "| algorithm | protocol | 1 MiB | 4 MiB | 16 MiB | 64 MiB | 256 MiB |\n|---|---|---:|---:|---:|---:|---:|\n")
	for _, a := range []model.Algorithm{model.Ring, model.Tree} {
		for _, p := range model.Protocols() {
			line := fmt.Sprintf("| %v | %v |", a, p)
			for bytes := units.MiB; bytes <= 256*units.MiB; bytes *= 4 {
				line += fmt.Sprintf(" %.2f |", ratios[rows.Row{Algorithm: a, Protocol: p, Bytes: bytes}])
			}
			if err == nil {
				_, err = fmt.Fprintln(w, line)
			}
		}
	}
	return err
}
