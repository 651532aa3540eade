package rows

import (
	"fmt"
	"io"
	"strconv"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"

	"tutti/model/units"
)

// WriteTable writes the rows as an aligned table with the columns of
// nccl-tests, and before them the number of ranks.
func WriteTable(w io.Writer, rows []Row) error {
	none := tw.Border{Left: tw.Off, Right: tw.Off, Top: tw.Off, Bottom: tw.Off}
	t := tablewriter.NewTable(w,
		tablewriter.WithRenderer(renderer.NewBlueprint(tw.Rendition{
			Borders: none, Settings: tw.Settings{Lines: tw.LinesNone, Separators: tw.SeparatorsNone},
		})),
		tablewriter.WithHeaderAutoFormat(tw.Off),
		tablewriter.WithHeaderAlignment(tw.AlignRight),
		tablewriter.WithRowAlignment(tw.AlignRight),
	)
	t.Header("ranks", "size(B)", "count", "type", "redop", "algo", "proto", "channels", "time(us)", "algbw(GB/s)", "busbw(GB/s)")
	for _, r := range rows {
		err := t.Append(strconv.Itoa(r.Ranks), strconv.FormatInt(int64(r.Bytes), 10), strconv.FormatInt(r.Count(), 10),
			r.Datatype.String(), r.Redop.String(), r.Algorithm.String(), r.Protocol.String(), strconv.Itoa(r.Channels),
			fmt.Sprintf("%.2f", r.Time.Microseconds()), fmt.Sprintf("%.2f", float64(r.AlgBW()/units.GBps)), fmt.Sprintf("%.2f", float64(r.BusBW()/units.GBps)))
		if err != nil {
			return err
		}
	}
	return t.Render()
}
