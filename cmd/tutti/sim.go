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
	"tutti/experiments/sweep"
	"tutti/model"
	"tutti/model/units"
)

// simFlags are the flags of tutti sim, as they were given.
type simFlags struct {
	studyFlags
	workFlags
	outputFlags
	togetherFlags
	linkFlags
	shard string
}

const (
	defaultMachine = "dgx-h100"
	defaultPlot    = "tutti-sim.png"
	noPlot         = "none"
)

// defaultNodes are the cluster sizes when no cluster is named.
var defaultNodes = []int{1, 2, 4, 8, 16}

func newSim() *cobra.Command {
	var f simFlags
	c := &cobra.Command{
		Use:   "sim",
		Short: "Simulate a collective on clusters and print time and bandwidth by size",
		Long: `Simulate a collective, chunk by chunk, on one or more clusters of machines.
Prints a table with nccl-tests' columns and draws bus bandwidth against size or,
for one size, time against ranks.

Without flags: AllReduce on 8 to 128 GPUs of DGX H100, joined by rail-optimised
InfiniBand, by ring, double binary tree and NVLS (NVLS tree across nodes), from 1
KiB to 8 GiB.

Ctrl-C ends at once and prints what is finished. A large study can run as the
array of a cluster's scheduler, in parts (--shard), whose rows tutti merge brings
together.`,
		Example: `  tutti sim
  tutti sim --nodes 4 --algo ring --proto ll,ll128,simple -b 8 -e 256M
  tutti sim --machine my-topology.xml --gpus 4 --sizes 64M,1G --csv
  tutti sim --nodes 16,64 --fabric rail-optimised,fat-tree-2to1 --coll alltoall
  tutti sim --nodes 1,2,4,8,16,32 --algo auto --sizes 1G --plot scaling.svg
  tutti sim --nodes 4 --algo ring --sizes 256M --with coll=alltoall,bytes=64M,start=100us
  tutti sim --machine dgx-h100:6,slow.xml:2 --algo ring,tree --sizes 1G
  tutti sim --nodes 8,16,32 --shard 3/8 --csv > part3.csv`,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c) },
	}
	f.studyFlags.register(c)
	f.workFlags.register(c)
	f.outputFlags.register(c, defaultPlot)
	f.togetherFlags.register(c)
	f.linkFlags.register(c)
	flags := c.Flags()
	flags.Lookup("nodes").Usage += " (default 1,2,4,8,16; as the fabric says, or 1, if a machine or a fabric is named)"
	flags.Lookup("algo").Usage += " (default ring, tree, nvls, nvlstree and p2p, as far as they do the collective)"
	flags.StringVar(&f.shard, "shard", "", "run one part of the cases, as in 3/8; auto/8 takes which one from SLURM_ARRAY_TASK_ID or JOB_COMPLETION_INDEX (default: in a Slurm array its part, else all)")
	return c
}

// usual lists the algorithms of NCCL's that do a collective, with which tutti
// sim begins.
func usual(c model.Collective) (list []model.Algorithm) {
	for _, a := range []model.Algorithm{model.Ring, model.Tree, model.NVLS, model.NVLSTree, model.P2P} {
		if slices.Contains(a.Collectives(), c) {
			list = append(list, a)
		}
	}
	return list
}

func (f *simFlags) run(c *cobra.Command) error {
	if err := f.settle(c); err != nil {
		return usage(err)
	}
	if err := f.check(c); err != nil {
		return err
	}
	part, where, err := readShard(f.shard)
	if err != nil {
		return usage(err)
	}
	study, err := f.study(c, defaultNodes, usual)
	if err != nil {
		return err
	}
	if study.Beside, err = f.beside(c, study.Datatype); err != nil {
		return err
	}
	if err := f.ask(c, &study); err != nil {
		return err
	}
	all, notes, err := study.Jobs()
	if err != nil {
		return usage(err)
	}
	jobs, places := all, []int(nil)
	if part.Count > 1 {
		if places = part.Of(all); len(places) == 0 {
			return usage(fmt.Errorf("shard %d of %d has no cases: there are %d", part.Index, part.Count, len(all)))
		}
		jobs = nil
		for _, i := range places {
			jobs = append(jobs, all[i])
		}
	}
	stderr := f.notes(c)
	if where != "" {
		fmt.Fprintf(stderr, "shard %d of %d (%s): %d of %d cases\n", part.Index, part.Count, where, len(jobs), len(all))
	}
	if named := c.Flags().Changed("algo") && !slices.Contains(f.algorithms, "all"); named {
		for _, note := range notes {
			fmt.Fprintf(stderr, "left out: %s\n", note)
		}
	}
	if err := f.one(jobs); err != nil {
		return err
	}
	done, failed := f.simulate(c, jobs, stderr)
	if places != nil {
		sweep.Number(done, places, all)
	}
	return errors.Join(f.show(c, done, failed == nil), failed)
}

// settle leaves the figure out where something is asked for that has none, or one
// of its own.
func (f *simFlags) settle(c *cobra.Command) error {
	own := ""
	switch {
	case f.links != "":
		own = "links"
	case len(f.with) > 0:
		own = "with"
	}
	if own != "" && c.Flags().Changed("plot") && f.plot != noPlot {
		return exclusive(c, own, "plot")
	}
	if own != "" || f.heatMap != "" && !c.Flags().Changed("plot") {
		f.plot = noPlot
	}
	return nil
}

// show writes what is done in the form that was asked for.
func (f *simFlags) show(c *cobra.Command, done []sweep.Done, whole bool) error {
	if len(done) == 0 {
		return nil
	}
	if err := f.drawMap(c, done, f.notes(c)); err != nil {
		return err
	}
	switch {
	case f.links != "":
		return f.tell(c, func(w io.Writer) error { return f.writeLinks(w, done, &f.outputFlags) }, nil)
	case len(f.with) > 0:
		return f.tell(c, func(w io.Writer) error { return writeShared(w, done, &f.outputFlags) }, nil)
	}
	return f.write(c, sweep.Rows(done), whole)
}

// workFlags say how much of the computer to use.
type workFlags struct {
	memory string
}

func (f *workFlags) register(c *cobra.Command) {
	c.Flags().StringVar(&f.memory, "memory", "", "how much memory the simulation may take, as in 64G; or any (default what is free)")
}

// simulate runs the jobs, with progress on stderr. When the user or the scheduler
// ends it, it returns what is done.
func (f *workFlags) simulate(c *cobra.Command, jobs []sweep.Job, stderr io.Writer) ([]sweep.Done, error) {
	limit, err := f.limit()
	if err != nil {
		return nil, err
	}
	ctx, stop := untilInterrupted(c)
	defer stop()
	bar := newProgress(stderr, sweep.Seeds(jobs))
	done, err := sweep.Run(ctx, jobs, limit, func(j sweep.Job) { bar.step(j.String()) })
	bar.end()
	switch tooLarge := (*sweep.MemoryError)(nil); {
	case errors.As(err, &tooLarge):
		return nil, advised(tooLarge, c)
	case ctx.Err() != nil:
		return done, fmt.Errorf("%w: %s", errInterrupted, howFar(done, jobs))
	}
	return done, err
}

// howFar says how much is finished.
func howFar(done []sweep.Done, jobs []sweep.Job) string {
	cases, begun := 0, 0
	for _, d := range done {
		if spread := d.Row.Why.Spread; spread != nil && spread.Seeds < jobs[d.Job].Seeds() {
			begun++
		} else {
			cases++
		}
	}
	text := fmt.Sprintf("%d of %d cases are finished", cases, len(jobs))
	if begun > 0 {
		text += fmt.Sprintf(", and %d with some of their seeds", begun)
	}
	return text
}

// limit returns how much memory may be used, 0 for any. Its errors are of usage.
func (f *workFlags) limit() (limit units.Bytes, err error) {
	switch f.memory {
	case "":
		return freeMemory(), nil
	case "any":
		return 0, nil
	}
	if limit, err = units.ParseBytes(f.memory); err == nil && limit == 0 {
		err = errors.New("0 bytes: want some, or any")
	}
	if err != nil {
		return 0, usage(fmt.Errorf("--memory: %w", err))
	}
	return limit, nil
}

// advised adds what to do to an error that tells of too little memory.
func advised(err *sweep.MemoryError, c *cobra.Command) error {
	advice := fmt.Sprintf("want fewer --nodes or --channels, a larger computer, or --memory %d if there is more", err.Need)
	if flag := c.Flags().Lookup("no-symmetry"); flag != nil && flag.Changed {
		advice += "; and no --no-symmetry"
	}
	return fmt.Errorf("%w: %s", err, advice)
}

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
	var text bytes.Buffer
	if err := write(&text); err != nil {
		return err
	}
	if _, err := text.WriteTo(c.OutOrStdout()); err != nil {
		return fmt.Errorf("writing the results: %w", err)
	}
	if f.plot != noPlot {
		fmt.Fprintf(f.notes(c), "figure: %s\n", f.plot)
	}
	return nil
}
