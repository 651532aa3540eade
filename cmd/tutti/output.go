package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tutti/experiments/figure"
	"tutti/experiments/rows"
)

// noPlot stands for no figure.
const noPlot = "none"

// outputFlags say in which form results are told.
type outputFlags struct {
	csv, json, quiet bool
	plot, x          string
}

func (f *outputFlags) register(c *cobra.Command, plot string) {
	flags := c.Flags()
	flags.BoolVar(&f.csv, "csv", false, "write CSV instead of the table, and no figure unless --plot is given")
	flags.BoolVar(&f.json, "json", false, "write JSON instead of the table, and no figure unless --plot is given")
	flags.StringVar(&f.plot, "plot", plot, "figure to write: a name ending in .png, .svg or .pdf, or "+noPlot)
	flags.StringVar(&f.x, "x", "", "what the figure goes by: size, with bus bandwidth, or ranks, with time (default size where there are several)")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "no progress and no notes")
	complete(c, "x", figure.Axes)
}

// notes is where notes go.
func (f *outputFlags) notes(c *cobra.Command) io.Writer {
	if f.quiet {
		return io.Discard
	}
	return c.ErrOrStderr()
}

// check finds what is wrong with the flags, and makes sure that the figure, if
// there is to be one, can be written.
func (f *outputFlags) check(c *cobra.Command) error {
	if err := exclusive(c, "csv", "json"); err != nil {
		return usage(err)
	}
	if (f.csv || f.json) && !c.Flags().Changed("plot") {
		f.plot = noPlot
	}
	if f.x != "" && !slices.Contains(figure.Axes, f.x) {
		return usage(fmt.Errorf("--x %s: want %s", f.x, strings.Join(figure.Axes, " or ")))
	}
	if f.plot == noPlot {
		return nil
	}
	return checkFigure("plot", f.plot)
}

// checkFigure makes sure that the figure that a flag names can be written.
func checkFigure(flag, path string) error {
	elsewhere := fmt.Sprintf("--%s PATH writes elsewhere", flag)
	err := figure.Check(path)
	switch {
	case errors.Is(err, figure.ErrFormat) && flag == "plot":
		return usage(fmt.Errorf("--plot: %w, or --plot %s", err, noPlot))
	case errors.Is(err, figure.ErrFormat):
		return usage(fmt.Errorf("--%s: %w", flag, err))
	case err != nil && flag == "plot":
		return fmt.Errorf("%w (%s, --plot %s nothing)", err, elsewhere, noPlot)
	case err != nil:
		return fmt.Errorf("%w (%s)", err, elsewhere)
	}
	return nil
}

// write writes the results, whole or not at all, in the form that was asked for,
// and the figure if they are all there.
func (f *outputFlags) write(c *cobra.Command, results []rows.Row, whole bool) error {
	if len(results) == 0 {
		return nil
	}
	write := rows.WriteTable
	if f.csv {
		write = rows.WriteCSV
	} else if f.json {
		write = rows.WriteJSON
	}
	draw := func() error { return figure.WriteBy(f.plot, results, f.axis(results)) }
	if !whole {
		f.plot = noPlot
	}
	return f.tell(c, func(w io.Writer) error { return write(w, results) }, draw)
}

// axis returns what the figure goes by.
func (f *outputFlags) axis(results []rows.Row) string { return cmp.Or(f.x, figure.Axis(results)) }

// tell draws the figure, if there is to be one, and writes a text to stdout.
func (f *outputFlags) tell(c *cobra.Command, write func(io.Writer) error, draw func() error) error {
	if f.plot != noPlot {
		if err := draw(); err != nil {
			return err
		}
	}
	if err := output(c.OutOrStdout(), write); err != nil {
		return err
	}
	if f.plot != noPlot {
		fmt.Fprintf(f.notes(c), "figure: %s\n", f.plot)
	}
	return nil
}

// output writes a text, whole or not at all.
func output(to io.Writer, write func(io.Writer) error) error {
	var text bytes.Buffer
	if err := write(&text); err != nil {
		return err
	}
	if _, err := text.WriteTo(to); err != nil {
		return fmt.Errorf("writing the results: %w", err)
	}
	return nil
}
