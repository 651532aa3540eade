package main

import (
	"bytes"
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
	"tutti/topo"
	"tutti/topo/search"
)

// simFlags are the flags of tutti sim, as they were given.
type simFlags struct {
	machine                  string
	nodes                    []int
	gpus, channels           int
	collective, datatype, op string
	algorithms, protocols    []string
	sizes                    sizeFlags
	csv, json, quiet         bool
	plot                     string
}

const (
	defaultMachine = "dgx-h100"
	defaultPlot    = "tutti-sim.png"
	noPlot         = "none"
)

// defaultNodes are the cluster sizes when neither machine nor nodes are named.
var defaultNodes = []int{1, 2, 4, 8, 16}

func newSim() *cobra.Command {
	var f simFlags
	c := &cobra.Command{
		Use:   "sim",
		Short: "Simulate a collective on clusters and print time and bandwidth by size",
		Long: `Simulate a collective, chunk by chunk, on one or more clusters of equal machines
joined by rail-optimised InfiniBand. Prints a table with nccl-tests' columns and
draws bus bandwidth against size.

Without flags: AllReduce on 8 to 128 GPUs of DGX H100 by ring, double binary tree
and NVLS (NVLS tree across nodes), from 1 KiB to 8 GiB.`,
		Example: `  tutti sim
  tutti sim --nodes 4 --algo ring --proto ll,ll128,simple -b 8 -e 256M
  tutti sim --machine my-topology.xml --gpus 4 --sizes 64M,1G --csv
  tutti sim --nodes 1,2,4,8 --algo auto -f 4 --plot scaling.svg`,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c) },
	}
	flags := c.Flags()
	flags.StringVar(&f.machine, "machine", defaultMachine, "a built-in machine ("+strings.Join(topo.Machines(), ", ")+") an NCCL topology FILE.xml, or live: this host")
	flags.IntSliceVar(&f.nodes, "nodes", nil, "how many such machines, as in 1,2,4 (default 1,2,4,8,16, or 1 if --machine is given)")
	flags.IntVarP(&f.gpus, "gpus", "g", 0, "use the first N GPUs of each machine (default all)")
	flags.StringVar(&f.collective, "coll", model.AllReduce.String(), "the collective; allreduce so far")
	flags.StringSliceVar(&f.algorithms, "algo", []string{"ring", "tree", "nvls", "nvlstree"}, "algorithms; all that the cluster can run; or auto, as tuning decides")
	flags.StringSliceVar(&f.protocols, "proto", []string{"auto"}, "ll, ll128, simple; all; or auto, as tuning decides for each size")
	f.sizes.register(c)
	flags.StringVarP(&f.datatype, "datatype", "d", model.Float32.String(), "type of the elements: float, half, bfloat16, int32, …")
	flags.StringVarP(&f.op, "op", "o", model.Sum.String(), "operation: sum, prod, min, max, avg")
	flags.IntVar(&f.channels, "channels", 0, "number of channels (default as NCCL chooses)")
	flags.BoolVar(&f.csv, "csv", false, "write CSV instead of the table, and no figure unless --plot is given")
	flags.BoolVar(&f.json, "json", false, "write JSON instead of the table, and no figure unless --plot is given")
	flags.StringVar(&f.plot, "plot", defaultPlot, "figure to write: a name ending in .png, .svg or .pdf, or "+noPlot)
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "no progress and no notes")
	complete(c, "algo", append([]string{"all", "auto"}, names(model.Algorithms())...))
	complete(c, "proto", append([]string{"all", "auto"}, names(model.Protocols())...))
	complete(c, "machine", topo.Machines())
	return c
}

// complete offers the shell the words that a flag takes.
func complete(c *cobra.Command, flag string, words []string) {
	if err := c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveDefault)); err != nil {
		panic(err) // no such flag
	}
}

func names[T fmt.Stringer](values []T) []string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = v.String()
	}
	return words
}

func (f *simFlags) run(c *cobra.Command) error {
	study, err := f.study(c)
	if err != nil {
		return err
	}
	plot, err := f.figure(c)
	if err != nil {
		return err
	}
	jobs, notes, err := study.Jobs()
	if err != nil {
		return usage(err)
	}
	stderr := c.ErrOrStderr()
	if f.quiet {
		stderr = io.Discard
	}
	if named := c.Flags().Changed("algo") && !slices.Contains(f.algorithms, "all"); named {
		for _, note := range notes {
			fmt.Fprintf(stderr, "left out: %s\n", note)
		}
	}
	bar := newProgress(stderr, len(jobs))
	results, err := sweep.Run(jobs, func(j sweep.Job) {
		t := j.Task()
		bar.step(fmt.Sprintf("%v over %v on %d GPUs, %v", t.Algorithm, t.Protocol, t.Ranks, t.Bytes()))
	})
	bar.end()
	if err != nil {
		return err
	}
	if plot != noPlot {
		if err := figure.Write(plot, results); err != nil {
			return err
		}
	}
	if err := f.print(c.OutOrStdout(), results); err != nil {
		return err
	}
	if plot != noPlot {
		fmt.Fprintf(stderr, "figure: %s\n", plot)
	}
	return nil
}

// figure returns the file that the figure goes to, or none, having made sure
// that it can be written.
func (f *simFlags) figure(c *cobra.Command) (string, error) {
	if (f.csv || f.json) && !c.Flags().Changed("plot") || f.plot == noPlot {
		return noPlot, nil
	}
	err := figure.Check(f.plot)
	switch {
	case errors.Is(err, figure.ErrFormat):
		err = usage(fmt.Errorf("--plot: %w, or --plot %s", err, noPlot))
	case err != nil:
		err = fmt.Errorf("%w (--plot PATH writes elsewhere, --plot %s nothing)", err, noPlot)
	}
	return f.plot, err
}

// print writes the results, whole or not at all, in the form that was asked for.
func (f *simFlags) print(to io.Writer, results []rows.Row) error {
	write := rows.WriteTable
	if f.csv {
		write = rows.WriteCSV
	} else if f.json {
		write = rows.WriteJSON
	}
	var text bytes.Buffer
	if err := write(&text, results); err != nil {
		return err
	}
	if _, err := text.WriteTo(to); err != nil {
		return fmt.Errorf("writing the results: %w", err)
	}
	return nil
}

// study reads the flags. Its errors are of usage, but for a file that cannot be
// read.
func (f *simFlags) study(c *cobra.Command) (sweep.Study, error) {
	s := sweep.Study{Nodes: f.nodes, GPUs: f.gpus, Channels: f.channels}
	err := exclusive(c, "csv", "json")
	if err != nil {
		return s, usage(err)
	}
	if s.Machine, err = openMachine(f.machine); err != nil {
		if errors.As(err, new(topo.UnknownMachineError)) {
			err = usage(fmt.Errorf("--machine: %w", err))
		}
		return s, err
	}
	if len(s.Nodes) == 0 {
		s.Nodes = []int{1}
		if !c.Flags().Changed("machine") {
			s.Nodes = defaultNodes
		}
	}
	if s.Channels < 0 || s.Channels > search.MaxChannels {
		return s, usage(fmt.Errorf("--channels %d: want 1 to %d, or 0 for NCCL's choice", s.Channels, search.MaxChannels))
	}
	if s.Collective, err = model.ParseCollective(f.collective); err != nil {
		return s, usage(fmt.Errorf("--coll: %w", err))
	}
	if s.Datatype, err = model.ParseDatatype(f.datatype); err != nil {
		return s, usage(fmt.Errorf("-d: %w", err))
	}
	if s.Redop, err = model.ParseRedop(f.op); err != nil {
		return s, usage(fmt.Errorf("-o: %w", err))
	}
	if s.Algorithms, err = choices(f.algorithms, model.Algorithms(), model.ParseAlgorithm); err != nil {
		return s, usage(fmt.Errorf("--algo: %w", err))
	}
	if s.Protocols, err = choices(f.protocols, model.Protocols(), model.ParseProtocol); err != nil {
		return s, usage(fmt.Errorf("--proto: %w", err))
	}
	s.Sizes, err = f.sizes.sizes(c, s.Datatype)
	return s, usage(err)
}

// choices reads a list of names: all for every value, auto for none, which
// leaves the choice to tuning.
func choices[T comparable](words []string, all []T, parse func(string) (T, error)) (list []T, err error) {
	for _, word := range words {
		switch {
		case word == "all":
			return all, nil
		case word == "auto" && len(words) == 1:
			return nil, nil
		}
		v, err := parse(word)
		if err != nil {
			return nil, fmt.Errorf("%w, all or auto", err)
		}
		if !slices.Contains(list, v) {
			list = append(list, v)
		}
	}
	return list, nil
}
