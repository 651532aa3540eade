package rows

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"tutti/model"
	"tutti/model/units"
)

// seriesHeader are the columns of a table by series.
var seriesHeader = strings.Split("collective,series,gpus,bytes,time_us_median,time_us_min,time_us_max,algbw_GBps,busbw_GBps", ",")

// ReadSeries reads a table by series, as experiments on one node write it, where
// a series is named ALGORITHM-PROTOCOL, as in Ring-LL128. Rows of other series
// are left out, as no schedule is known to be theirs. The machine is that of
// like.
func ReadSeries(r io.Reader, name string, like Row) ([]Row, error) {
	in := csv.NewReader(r)
	in.Comment = '#'
	first, err := in.Read()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if !slices.Equal(first, seriesHeader) {
		return nil, fmt.Errorf("%s: columns %s: want %s", name, strings.Join(first, ","), strings.Join(seriesHeader, ","))
	}
	var rows []Row
	for {
		fields, err := in.Read()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		algorithm, protocol, _ := strings.Cut(fields[1], "-")
		var p parser
		row := Row{Source: name, Machine: like.Machine, Nodes: 1, Channels: max(1, like.Channels), Datatype: model.Float32, Redop: model.Sum}
		row.Algorithm = read(&p, model.ParseAlgorithm, algorithm)
		row.Protocol = read(&p, model.ParseProtocol, protocol)
		if p.err != nil {
			continue
		}
		row.Collective = read(&p, model.ParseCollective, fields[0])
		row.Ranks = p.int("gpus", fields[2], 1, 1<<20)
		row.Bytes = units.Bytes(p.int("bytes", fields[3], 1, 1<<62))
		if us := p.number("time_us_median", fields[4]); us > 0 {
			row.Time = units.FromMicroseconds(us)
		} else {
			p.keep(fmt.Errorf("time_us_median is %q: want a number above 0", fields[4]))
		}
		if p.err != nil {
			line, _ := in.FieldPos(0)
			return nil, fmt.Errorf("%s:%d: %w", name, line, p.err)
		}
		rows = append(rows, row)
	}
}
