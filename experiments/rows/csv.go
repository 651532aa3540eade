package rows

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"tutti/model"
	"tutti/model/units"
)

// header names the columns, in order.
var header = []string{
	"source", "machine", "collective", "algorithm", "protocol", "nodes", "ranks", "channels",
	"datatype", "redop", "bytes", "time_us", "algbw_GBps", "busbw_GBps",
}

// checked names the columns that follow for results on real data.
var checked = []string{"inplace", "wrong"}

// launched names the column that follows for tutti's own kernels.
var launched = []string{"kernel"}

// explained names the columns that follow for simulations.
var explained = []string{"fabric", "bound_us", "bottleneck", "bottleneck_share", "workers_simulated", "workers"}

// whyFields writes these.
func (r Row) whyFields() []string {
	if r.Why == nil {
		return make([]string, len(explained))
	}
	return []string{
		r.Why.Fabric, strconv.FormatFloat(r.Why.Bound.Microseconds(), 'f', -1, 64), r.Why.Bottleneck, fmt.Sprintf("%.4f", r.Why.Share),
		strconv.Itoa(r.Why.Workers), strconv.Itoa(r.Why.Of),
	}
}

// spreading names the columns that follow for simulations with several seeds.
var spreading = []string{"seeds", "time_min_us", "time_max_us"}

// spreadFields writes these.
func (r Row) spreadFields() []string {
	s := r.spread()
	if s == nil {
		return make([]string, len(spreading))
	}
	us := func(t units.Time) string { return strconv.FormatFloat(t.Microseconds(), 'f', -1, 64) }
	return []string{strconv.Itoa(s.Seeds), us(s.Least), us(s.Greatest)}
}

// numbered names the columns that follow for parts of a study.
var numbered = []string{"study", "case", "cases"}

// caseFields writes these.
func (r Row) caseFields() []string {
	return []string{r.Case.Study, strconv.Itoa(r.Case.Number), strconv.Itoa(r.Case.Of)}
}

// onData tells whether a row is of a run on real data.
func (r Row) onData() bool { return r.InPlace || r.Wrong != nil }

// Header returns the names of the columns, in order.
func Header() []string { return slices.Clone(header) }

// Fields writes a row as CSV has it, without the columns that further.
func (r Row) Fields() []string {
	return []string{
		r.Source, r.Machine, r.Collective.String(), r.Algorithm.String(), r.Protocol.String(),
		strconv.Itoa(r.Nodes), strconv.Itoa(r.Ranks), strconv.Itoa(r.Channels),
		r.Datatype.String(), r.Redop.String(), strconv.FormatInt(int64(r.Bytes), 10),
		strconv.FormatFloat(r.Time.Microseconds(), 'f', -1, 64),
		fmt.Sprintf("%.4f", float64(r.AlgBW()/units.GBps)), fmt.Sprintf("%.4f", float64(r.BusBW()/units.GBps)),
	}
}

// checkedFields writes the further columns.
func (r Row) checkedFields() []string {
	fields := []string{"0", ""}
	if r.InPlace {
		fields[0] = "1"
	}
	if r.Wrong != nil {
		fields[1] = strconv.FormatInt(*r.Wrong, 10)
	}
	return fields
}

// WriteCSV writes the header and the rows.
func WriteCSV(w io.Writer, rows []Row) error {
	out := csv.NewWriter(w)
	columns, further := header, slices.ContainsFunc(rows, Row.onData)
	if further {
		columns = slices.Concat(header, checked)
	}
	kernel := slices.ContainsFunc(rows, func(r Row) bool { return r.Kernel != "" })
	if kernel {
		columns = slices.Concat(columns, launched)
	}
	why := slices.ContainsFunc(rows, func(r Row) bool { return r.Why != nil })
	if why {
		columns = slices.Concat(columns, explained)
	}
	spread := spreads(rows)
	if spread {
		columns = slices.Concat(columns, spreading)
	}
	part := slices.ContainsFunc(rows, func(r Row) bool { return r.Case.Of > 0 })
	if part {
		columns = slices.Concat(columns, numbered)
	}
	_ = out.Write(columns) // an error is kept for Flush
	for _, r := range rows {
		fields := r.Fields()
		if further {
			fields = append(fields, r.checkedFields()...)
		}
		if kernel {
			fields = append(fields, r.Kernel)
		}
		if why {
			fields = append(fields, r.whyFields()...)
		}
		if spread {
			fields = append(fields, r.spreadFields()...)
		}
		if part {
			fields = append(fields, r.caseFields()...)
		}
		_ = out.Write(fields)
	}
	out.Flush()
	return out.Error()
}

// ReadCSV reads what WriteCSV writes, with or without further columns. Lines
// that begin with # are comments. Bandwidths are not read but follow from bytes
// and time. An error names the file, given as name, and the line: a header of
// another schema, an unknown word, a number out of its range, a row cut short.
func ReadCSV(r io.Reader, name string) ([]Row, error) {
	in := csv.NewReader(r)
	in.Comment = '#'
	first, err := in.Read()
	if errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: no rows: want the header %s", name, strings.Join(header, ","))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(first) < len(header) || !slices.Equal(first[:len(header)], header) {
		return nil, fmt.Errorf("%s: columns %s: want %s", name, strings.Join(first, ","), strings.Join(header, ","))
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
		row, err := parse(fields, first)
		if err != nil {
			line, _ := in.FieldPos(0)
			return nil, fmt.Errorf("%s:%d: %w", name, line, err)
		}
		rows = append(rows, row)
	}
}

func parse(fields, columns []string) (Row, error) {
	var p parser
	r := Row{Source: fields[0], Machine: fields[1]}
	r.Collective = read(&p, model.ParseCollective, fields[2])
	r.Algorithm = read(&p, model.ParseAlgorithm, fields[3])
	r.Protocol = read(&p, model.ParseProtocol, fields[4])
	r.Nodes = p.int("nodes", fields[5], 1, math.MaxInt32)
	r.Ranks = p.int("ranks", fields[6], 1, math.MaxInt32)
	r.Channels = p.int("channels", fields[7], 1, math.MaxInt32)
	r.Datatype = read(&p, model.ParseDatatype, fields[8])
	r.Redop = read(&p, model.ParseRedop, fields[9])
	r.Bytes = units.Bytes(p.int("bytes", fields[10], 0, 1<<62))
	r.Time = units.FromMicroseconds(p.float("time_us", fields[11], above))
	var why Why
	var spread Spread
	for i := len(header); i < len(columns); i++ {
		name, text := columns[i], fields[i]
		if text == "" {
			continue
		}
		switch name {
		case "inplace":
			r.InPlace = p.int(name, text, 0, 1) == 1
		case "wrong":
			wrong := int64(p.int(name, text, 0, math.MaxInt64))
			r.Wrong = &wrong
		case "kernel":
			r.Kernel = text
		case "fabric":
			why.Fabric = text
		case "bound_us":
			why.Bound = units.FromMicroseconds(p.float(name, text, from))
		case "bottleneck":
			why.Bottleneck = text
		case "bottleneck_share":
			why.Share = p.float(name, text, from)
		case "workers_simulated":
			why.Workers = p.int(name, text, 0, math.MaxInt)
		case "workers":
			why.Of = p.int(name, text, 0, math.MaxInt)
		case "seeds":
			spread.Seeds, why.Spread = p.int(name, text, 0, math.MaxInt32), &spread
		case "time_min_us":
			spread.Least, why.Spread = units.FromMicroseconds(p.float(name, text, above)), &spread
		case "time_max_us":
			spread.Greatest, why.Spread = units.FromMicroseconds(p.float(name, text, above)), &spread
		case "study":
			r.Case.Study = text
		case "case":
			r.Case.Number = p.int(name, text, 0, math.MaxInt32)
		case "cases":
			r.Case.Of = p.int(name, text, 0, math.MaxInt32)
		}
	}
	if why != (Why{}) {
		r.Why = &why
	}
	return r, cmp.Or(p.err, r.Case.check())
}

// check fails for a number that no study has.
func (c Case) check() error {
	if c == (Case{}) || (c.Study != "" && c.Number > 0 && c.Number <= c.Of) {
		return nil
	}
	return fmt.Errorf("case %d of %d of study %q: want a study, and one of its cases", c.Number, c.Of, c.Study)
}

// parser keeps the first error.
type parser struct{ err error }

func (p *parser) keep(err error) {
	if p.err == nil {
		p.err = err
	}
}

func (p *parser) int(what, s string, lo, hi int) int {
	n, err := strconv.Atoi(s)
	if err != nil || n < lo || n > hi {
		p.keep(fmt.Errorf("%s is %q: want a whole number from %d", what, s, lo))
	}
	return n
}

// limit says whether a number may be 0.
type limit string

const (
	from  limit = "from 0"
	above limit = "above 0"
)

func (p *parser) float(what, s string, low limit) float64 {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || !(v >= 0 && v < 1e12) || (low == above && v == 0) {
		p.keep(fmt.Errorf("%s is %q: want a number %s", what, s, low))
		return 0
	}
	return v
}

func read[T any](p *parser, parse func(string) (T, error), s string) T {
	v, err := parse(s)
	if err != nil {
		p.keep(err)
	}
	return v
}
