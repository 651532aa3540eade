package rows

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"tutti/model/units"
)

// Schema is the version of the JSON form, written with it.
const Schema = "tutti.rows/1"

// JSON is a row's JSON form, which names its values as the CSV's header does.
type JSON struct {
	Source     string   `json:"source"`
	Machine    string   `json:"machine"`
	Collective string   `json:"collective"`
	Algorithm  string   `json:"algorithm"`
	Protocol   string   `json:"protocol"`
	Nodes      int      `json:"nodes"`
	Ranks      int      `json:"ranks"`
	Channels   int      `json:"channels"`
	Datatype   string   `json:"datatype"`
	Redop      string   `json:"redop"`
	Bytes      int64    `json:"bytes"`
	Time       float64  `json:"time_us"`
	AlgBW      float64  `json:"algbw_GBps"`
	BusBW      float64  `json:"busbw_GBps"`
	InPlace    bool     `json:"inplace,omitempty"`
	Wrong      *int64   `json:"wrong,omitempty"`
	Kernel     string   `json:"kernel,omitempty"`
	Why        *jsonWhy `json:"why,omitempty"`
	Study      string   `json:"study,omitempty"`
	Case       int      `json:"case,omitempty"`
	Cases      int      `json:"cases,omitempty"`
}

// jsonFile is the object that holds the rows.
type jsonFile struct {
	Schema string `json:"schema"`
	Rows   []JSON `json:"rows"`
}

// WriteJSON writes the rows as one object: {"schema": …, "rows": […]}.
func WriteJSON(w io.Writer, rows []Row) error {
	list := make([]JSON, len(rows))
	for i, r := range rows {
		list[i] = r.JSON()
	}
	out := json.NewEncoder(w)
	out.SetIndent("", " ")
	out.SetEscapeHTML(false) // links have > in their names
	return out.Encode(jsonFile{Schema, list})
}

// JSON returns the row's JSON form.
func (r Row) JSON() JSON {
	return JSON{
		r.Source, r.Machine, r.Collective.String(), r.Algorithm.String(), r.Protocol.String(),
		r.Nodes, r.Ranks, r.Channels, r.Datatype.String(), r.Redop.String(), int64(r.Bytes),
		r.Time.Microseconds(), float64(r.AlgBW() / units.GBps), float64(r.BusBW() / units.GBps), r.InPlace, r.Wrong, r.Kernel, r.Why.json(),
		r.Case.Study, r.Case.Number, r.Case.Of,
	}
}

// ReadJSON reads what [WriteJSON] writes. An error names the file, given as
// name, and the row, counted from 1.
func ReadJSON(r io.Reader, name string) ([]Row, error) {
	var file jsonFile
	in := json.NewDecoder(r)
	if err := in.Decode(&file); err != nil {
		return nil, fmt.Errorf("%s: not result rows: %w", name, err)
	}
	if file.Schema != Schema {
		return nil, fmt.Errorf("%s: schema %q: want %s", name, file.Schema, Schema)
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: something follows the rows: want one object", name)
	}
	rows := make([]Row, len(file.Rows))
	for i, j := range file.Rows {
		row, err := j.row()
		if err != nil {
			return nil, fmt.Errorf("%s: row %d: %w", name, i+1, err)
		}
		rows[i] = row
	}
	return rows, nil
}

// row reads the values as CSV's fields are read.
func (j JSON) row() (Row, error) {
	number := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	columns, fields := header, []string{
		j.Source, j.Machine, j.Collective, j.Algorithm, j.Protocol, strconv.Itoa(j.Nodes), strconv.Itoa(j.Ranks), strconv.Itoa(j.Channels),
		j.Datatype, j.Redop, strconv.FormatInt(j.Bytes, 10), number(j.Time), "", "",
	}
	if w := j.Why; w != nil {
		columns = slices.Concat(columns, explained)
		fields = append(fields, w.Fabric, number(w.Bound), w.Bottleneck, number(w.Share), strconv.Itoa(w.Workers), strconv.Itoa(w.Of))
		if w.Greatest > 0 {
			columns, fields = slices.Concat(columns, spreading), append(fields, strconv.Itoa(w.Seeds), number(w.Least), number(w.Greatest))
		}
	}
	r, err := parse(fields, columns)
	r.InPlace, r.Wrong, r.Kernel, r.Case = j.InPlace, j.Wrong, j.Kernel, Case{j.Study, j.Case, j.Cases}
	return r, cmp.Or(err, r.Case.check())
}

// jsonWhy names what the further columns of simulations do.
type jsonWhy struct {
	Fabric     string  `json:"fabric,omitempty"`
	Bound      float64 `json:"bound_us"`
	Bottleneck string  `json:"bottleneck"`
	Share      float64 `json:"bottleneck_share"`
	Workers    int     `json:"workers_simulated"`
	Of         int     `json:"workers"`
	Seeds      int     `json:"seeds,omitempty"`
	Least      float64 `json:"time_min_us,omitempty"`
	Greatest   float64 `json:"time_max_us,omitempty"`
}

func (w *Why) json() *jsonWhy {
	if w == nil {
		return nil
	}
	j := &jsonWhy{Fabric: w.Fabric, Bound: w.Bound.Microseconds(), Bottleneck: w.Bottleneck, Share: w.Share, Workers: w.Workers, Of: w.Of}
	if w.Spread != nil {
		j.Seeds, j.Least, j.Greatest = w.Spread.Seeds, w.Spread.Least.Microseconds(), w.Spread.Greatest.Microseconds()
	}
	return j
}
