package main

import (
	"bufio"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"tutti/experiments/rows"
	"tutti/experiments/sweep"
)

func newMerge() *cobra.Command {
	var f outputFlags
	c := &cobra.Command{
		Use:   "merge FILE…",
		Short: "Bring the rows of several files together, as of the parts of a study",
		Long: `Bring the rows of several CSV or JSON files together: into one table, CSV, JSON or
figure, in the order of the study if they are its parts (tutti sim --shard). Rows
that stand there twice are dropped. Cases that are missing are told at the end,
and the exit code is 1. Rows that contradict each other, or are of different
studies, are an error.`,
		Example: `  tutti merge part*.csv --plot study.png
  tutti merge --csv part*.csv > study.csv`,
		Args: arguments(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, files []string) error { return merge(c, &f, files) },
	}
	f.register(c, noPlot)
	return c
}

func merge(c *cobra.Command, f *outputFlags, names []string) error {
	if err := f.check(c); err != nil {
		return err
	}
	var files []sweep.File
	for _, name := range names {
		list, err := readRows(name)
		if err != nil {
			return err
		}
		files = append(files, sweep.File{Name: name, Rows: list})
	}
	merged, err := sweep.Merge(files)
	if err != nil {
		return err
	}
	whole := len(merged.Missing) == 0
	if whole { // a study of its own, no part of one
		for i := range merged.Rows {
			merged.Rows[i].Case = rows.Case{}
		}
	}
	if merged.Duplicates > 0 {
		fmt.Fprintf(f.notes(c), "%d rows stand there more than once, all alike\n", merged.Duplicates)
	}
	if err := f.write(c, merged.Rows, true); err != nil {
		return err
	}
	if !whole {
		return fmt.Errorf("%d of %d cases are missing: %s", len(merged.Missing), merged.Of, ranges(merged.Missing))
	}
	return nil
}

// readRows reads a file of rows, CSV or JSON.
func readRows(name string) ([]rows.Row, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text := bufio.NewReader(file)
	if first, err := text.Peek(1); err == nil && first[0] == '{' {
		return rows.ReadJSON(text, name)
	}
	return rows.ReadCSV(text, name)
}
