package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tutti/experiments/calibrate"
	"tutti/experiments/compare"
	"tutti/experiments/figure"
	"tutti/experiments/rows"
)

// compareFlags are the flags of tutti compare, as they were given.
type compareFlags struct {
	rowFlags
	profile, plot    string
	by               []string
	csv, json, quiet bool
}

func newCompare() *cobra.Command {
	var f compareFlags
	c := &cobra.Command{
		Use:   "compare ROWS...",
		Short: "Lay what the model and the simulator predict over measured rows",
		Long: `Lay predictions over measured rows: tutti's CSV or the logs of nccl-tests. The
table has the error of every row and, at its end, the median, the 90th percentile
and the worst. The figure has measured points, predicted lines and what the links
would allow, with the errors below. Calls are predicted back to back, as such
programs issue them.

A log of nccl-tests does not say which algorithm and protocol NCCL took: they are as
NCCL chooses for each size on that machine, unless --algo and --proto say.

Of rows of tutti run, those by tutti's own kernels are told of by the model alone, and
those that nothing tells of (host, NCCL's windows) are left out. Where a library chose
the way by size, its rows are one series.`,
		Example: `  tutti run --backend cuda,nccl --csv > rows.csv && tutti compare rows.csv --plot rows.png
  tutti compare experiments/firstlight/measured.csv --plot compare.png
  tutti compare --machine dgx-h100 all_reduce.log`,
		Args: arguments(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error { return f.run(c, args) },
	}
	f.rowFlags.register(c)
	flags := c.Flags()
	flags.StringVar(&f.profile, "profile", "", profileUsage)
	flags.StringSliceVar(&f.by, "by", compare.Sources, "what predicts: "+strings.Join(compare.Sources, ", "))
	flags.StringVar(&f.plot, "plot", noPlot, "figure to write: a name ending in .png, .svg or .pdf")
	flags.BoolVar(&f.csv, "csv", false, "write CSV instead of the table")
	flags.BoolVar(&f.json, "json", false, "write JSON instead of the table")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "no progress and no notes")
	return c
}

func (f *compareFlags) run(c *cobra.Command, files []string) error {
	if err := exclusive(c, "csv", "json"); err != nil {
		return usage(err)
	}
	for _, by := range f.by {
		if !slices.Contains(compare.Sources, by) {
			return usage(fmt.Errorf("--by %s: want some of %s", by, strings.Join(compare.Sources, ", ")))
		}
	}
	if f.plot != noPlot {
		if err := checkFigure("plot", f.plot); err != nil {
			return err
		}
	}
	stderr := c.ErrOrStderr()
	if f.quiet {
		stderr = io.Discard
	}
	worlds := &calibrate.Worlds{Open: openMeasured}
	list, err := f.read(files, worlds, stderr)
	if err != nil {
		return err
	}
	p, err := profileOf(list, f.profile, worlds)
	if err != nil {
		return err
	}
	bar := newProgress(stderr, len(list))
	result, err := compare.Run(list, f.by, p, worlds, func(r rows.Row) {
		bar.step(fmt.Sprintf("%v over %v on %d GPUs, %v", r.Algorithm, r.Protocol, r.Ranks, r.Bytes))
	})
	bar.end()
	if err != nil {
		return err
	}
	if f.plot != noPlot {
		if err := figure.WriteComparison(f.plot, result); err != nil {
			return err
		}
	}
	write := result.WriteTable
	if f.csv {
		write = result.WriteCSV
	} else if f.json {
		write = result.WriteJSON
	}
	if err := output(c.OutOrStdout(), write); err != nil {
		return err
	}
	if f.plot != noPlot {
		fmt.Fprintf(stderr, "figure: %s\n", f.plot)
	}
	return nil
}
