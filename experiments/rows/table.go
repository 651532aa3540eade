package rows

import (
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"

	"tutti/model/units"
)

// WriteTable writes the rows as an aligned table with the columns of
// nccl-tests, and before them the number of ranks. Simulations have behind them
// which part of the bound they reach, and what holds them up.
func WriteTable(w io.Writer, rows []Row) error {
	alignment := slices.Repeat([]tw.Align{tw.AlignRight}, 12)
	alignment = append(alignment, tw.AlignLeft)
	none := tw.Border{Left: tw.Off, Right: tw.Off, Top: tw.Off, Bottom: tw.Off}
	t := tablewriter.NewTable(w,
		tablewriter.WithRenderer(renderer.NewBlueprint(tw.Rendition{
			Borders: none, Settings: tw.Settings{Lines: tw.LinesNone, Separators: tw.SeparatorsNone},
		})),
		tablewriter.WithHeaderAutoFormat(tw.Off),
		tablewriter.WithHeaderAlignmentConfig(tw.CellAlignment{Global: tw.AlignRight, PerColumn: alignment}),
		tablewriter.WithRowAlignmentConfig(tw.CellAlignment{Global: tw.AlignRight, PerColumn: alignment}),
	)
	columns := []string{"ranks", "size(B)", "count", "type", "redop", "algo", "proto", "channels", "time(us)", "algbw(GB/s)", "busbw(GB/s)"}
	why := slices.ContainsFunc(rows, func(r Row) bool { return r.Why != nil })
	if why {
		columns = append(columns, "of bound", "held up by")
	}
	spread := spreads(rows)
	if spread {
		columns = append(columns, "seeds", "min(us)", "max(us)")
	}
	t.Header(columns)
	for _, r := range rows {
		cells := []string{strconv.Itoa(r.Ranks), strconv.FormatInt(int64(r.Bytes), 10), strconv.FormatInt(r.Count(), 10),
			r.Datatype.String(), r.Redop.String(), r.Algorithm.String(), r.Protocol.String(), strconv.Itoa(r.Channels),
			fmt.Sprintf("%.2f", r.Time.Microseconds()), fmt.Sprintf("%.2f", float64(r.AlgBW()/units.GBps)), fmt.Sprintf("%.2f", float64(r.BusBW()/units.GBps))}
		if why {
			cells = append(cells, r.Why.cells(r.Time)...)
		}
		if spread {
			cells = append(cells, r.spread().cells()...)
		}
		if err := t.Append(cells); err != nil {
			return err
		}
	}
	return t.Render()
}

// cells are what a table has of it.
func (w *Why) cells(time units.Time) []string {
	if w == nil {
		return []string{"", ""}
	}
	return []string{fmt.Sprintf("%.0f %%", 100*float64(w.Bound)/float64(time)), fmt.Sprintf("%s, %.0f %%", w.Bottleneck, 100*w.Share)}
}

// cells are what a table has of it.
func (s *Spread) cells() []string {
	if s == nil {
		return []string{"", "", ""}
	}
	return []string{strconv.Itoa(s.Seeds), fmt.Sprintf("%.2f", s.Least.Microseconds()), fmt.Sprintf("%.2f", s.Greatest.Microseconds())}
}
