package rows

import (
	"encoding/json"
	"io"

	"tutti/model/units"
)

// Schema is the version of the JSON form, written with it.
const Schema = "tutti.rows/1"

// jsonRow names a row's values as the CSV's header does.
type jsonRow struct {
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
	Why        *jsonWhy `json:"why,omitempty"`
}

// WriteJSON writes the rows as one object: {"schema": …, "rows": […]}.
func WriteJSON(w io.Writer, rows []Row) error {
	list := make([]jsonRow, len(rows))
	for i, r := range rows {
		list[i] = jsonRow{
			r.Source, r.Machine, r.Collective.String(), r.Algorithm.String(), r.Protocol.String(),
			r.Nodes, r.Ranks, r.Channels, r.Datatype.String(), r.Redop.String(), int64(r.Bytes),
			r.Time.Microseconds(), float64(r.AlgBW() / units.GBps), float64(r.BusBW() / units.GBps), r.InPlace, r.Wrong, r.Why.json(),
		}
	}
	out := json.NewEncoder(w)
	out.SetIndent("", " ")
	return out.Encode(struct {
		Schema string    `json:"schema"`
		Rows   []jsonRow `json:"rows"`
	}{Schema, list})
}

// jsonWhy names what the further columns of simulations do.
type jsonWhy struct {
	Fabric     string  `json:"fabric,omitempty"`
	Bound      float64 `json:"bound_us"`
	Bottleneck string  `json:"bottleneck"`
	Share      float64 `json:"bottleneck_share"`
	Workers    int     `json:"workers_simulated"`
	Of         int     `json:"workers"`
}

func (w *Why) json() *jsonWhy {
	if w == nil {
		return nil
	}
	return &jsonWhy{w.Fabric, w.Bound.Microseconds(), w.Bottleneck, w.Share, w.Workers, w.Of}
}
