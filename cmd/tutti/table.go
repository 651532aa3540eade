package main

import (
	"encoding/csv"
	"encoding/json"
	"io"
	"strconv"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"
)

// table is text in rows and columns. Columns of numbers are aligned to the right,
// others to the left.
type table struct {
	header []string
	rows   [][]string
}

// none stands in a column of numbers where there is none.
const none = "-"

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// write writes the table for people, or as CSV.
func (t *table) write(w io.Writer, asCSV bool) error {
	if asCSV {
		out := csv.NewWriter(w)
		if err := out.WriteAll(append([][]string{t.header}, t.rows...)); err != nil {
			return err
		}
		return out.Error()
	}
	align := make([]tw.Align, len(t.header))
	for i := range align {
		align[i] = tw.AlignRight
		for _, row := range t.rows {
			if _, err := strconv.ParseFloat(row[i], 64); err != nil && row[i] != none {
				align[i] = tw.AlignLeft
			}
		}
	}
	borders := tw.Border{Left: tw.Off, Right: tw.Off, Top: tw.Off, Bottom: tw.Off}
	out := tablewriter.NewTable(w,
		tablewriter.WithRenderer(renderer.NewBlueprint(tw.Rendition{
			Borders: borders, Settings: tw.Settings{Lines: tw.LinesNone, Separators: tw.SeparatorsNone},
		})),
		tablewriter.WithHeaderAutoFormat(tw.Off),
		tablewriter.WithHeaderAlignmentConfig(tw.CellAlignment{PerColumn: align}),
		tablewriter.WithRowAlignmentConfig(tw.CellAlignment{PerColumn: align}),
	)
	out.Header(t.header)
	if err := out.Bulk(t.rows); err != nil {
		return err
	}
	return out.Render()
}

// writeJSON writes a value as indented JSON.
func writeJSON(w io.Writer, value any) error {
	out := json.NewEncoder(w)
	out.SetIndent("", " ")
	out.SetEscapeHTML(false) // links have > in their names
	return out.Encode(value)
}
