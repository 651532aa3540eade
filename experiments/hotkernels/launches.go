package hotkernels

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"tutti/model"
	"tutti/model/units"
)

// Launch is what a kernel of tutti's took at the median.
type Launch struct {
	Collective model.Collective
	GPUs       int
	Kernel     string
	Bytes      units.Bytes
	Blocks     int
	Time       units.Time
}

// ReadSweep reads what tutti run --sweep wrote, from a reader of the given name. Rows
// without a collective are of AllReduce.
func ReadSweep(r io.Reader, name string) (launches []Launch, err error) {
	list, err := csv.NewReader(r).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for line, row := range list[1:] {
		value := func(name string) string {
			if i := slices.Index(list[0], name); i >= 0 {
				return row[i]
			}
			return ""
		}
		var c model.Collective
		var err0 error
		if of := value("collective"); of != "" {
			c, err0 = model.ParseCollective(of)
		}
		gpus, err1 := strconv.Atoi(value("gpus"))
		bytes, err2 := strconv.ParseInt(value("bytes"), 10, 64)
		blocks, err3 := strconv.Atoi(value("blocks"))
		us, err4 := strconv.ParseFloat(value("median_us"), 64)
		if err := errors.Join(err0, err1, err2, err3, err4); err != nil {
			return nil, fmt.Errorf("%s: row %d: %w", name, line+1, err)
		}
		launches = append(launches, Launch{c, gpus, value("series"), units.Bytes(bytes), blocks, units.FromMicroseconds(us)})
	}
	return launches, nil
}

// Launches returns AllReduces of float: those that tutti chose, and those of the
// sweeps.
func Launches() (launches []Launch, err error) {
	for _, gpus := range []int{2, 4} {
		name := fmt.Sprintf("sweep-h200x%d.csv", gpus)
		f, err := files.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		swept, err := ReadSweep(f, name)
		if err != nil {
			return nil, err
		}
		chosen, err := Read(gpus, model.Float32)
		if err != nil {
			return nil, err
		}
		launches = append(launches, swept...)
		for _, r := range chosen {
			launches = append(launches, Launch{model.AllReduce, gpus, r.Kernel, r.Bytes, r.Blocks, r.Tutti})
		}
	}
	return launches, nil
}
