package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tutti/experiments/figure"
	"tutti/experiments/rows"
	"tutti/experiments/sweep"
	"tutti/model"
	"tutti/model/profile"
	"tutti/model/units"
	"tutti/topo"
	"tutti/topo/fabric"
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
	fabrics                  []string
	profile                  string
	noSymmetry               bool
	shard                    string
	memory                   string
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
	f.register(c)
	return c
}

func (f *simFlags) register(c *cobra.Command) {
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
	flags.StringSliceVar(&f.fabrics, "fabric", []string{defaultFabric}, "how the machines are joined: built-in fabrics (tutti topo fabric) or FILE.yaml, one or several")
	flags.StringVar(&f.profile, "profile", "", "constants: built-in profiles or files (default as the machine's GPUs)")
	flags.BoolVar(&f.noSymmetry, "no-symmetry", false, "simulate every worker, even where many do the same")
	flags.StringVar(&f.shard, "shard", "", "run the i-th of n parts of the cases, as in 0/8; auto takes i and n from SLURM_ARRAY_TASK_ID and _COUNT or JOB_COMPLETION_INDEX and COMPLETIONS (default auto where these are set)")
	flags.StringVar(&f.memory, "memory", "", "refuse cases that need more than this (default what the machine has free)")
	complete(c, "fabric", fabric.Names())
	flags.BoolVar(&f.csv, "csv", false, "write CSV instead of the table, and no figure unless --plot is given")
	flags.BoolVar(&f.json, "json", false, "write JSON instead of the table, and no figure unless --plot is given")
	flags.StringVar(&f.plot, "plot", defaultPlot, "figure to write: a name ending in .png, .svg or .pdf, or "+noPlot)
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "no progress and no notes")
	complete(c, "algo", append([]string{"all", "auto"}, names(model.Algorithms())...))
	complete(c, "proto", append([]string{"all", "auto"}, names(model.Protocols())...))
	complete(c, "machine", topo.Machines())
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
	jobs, notes, err := f.jobs(study)
	if err != nil {
		return usage(err)
	}
	part, err := f.part()
	if err != nil {
		return usage(err)
	}
	if jobs = part.of(jobs); len(jobs) == 0 {
		return usage(fmt.Errorf("shard %d of %d has no cases: want at most as many shards as cases", part.index, part.count))
	}
	if err := f.fits(jobs); err != nil {
		return err
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
	ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt)
	defer stop()
	results, err := sweep.Run(ctx, jobs, func(j sweep.Job) {
		t := j.Task()
		bar.step(fmt.Sprintf("%v over %v on %d GPUs, %v", t.Algorithm, t.Protocol, t.Ranks, t.Bytes()))
	})
	bar.end()
	if errors.Is(err, context.Canceled) && len(results) > 0 {
		fmt.Fprintf(stderr, "interrupted: %d of %d cases are finished\n", len(results), len(jobs))
		if err := f.print(c.OutOrStdout(), results); err != nil {
			return err
		}
		return errInterrupted
	} else if errors.Is(err, context.Canceled) {
		return errInterrupted
	}
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

// jobs lists the cases of the study on each of the fabrics.
func (f *simFlags) jobs(study sweep.Study) (jobs []sweep.Job, notes []string, err error) {
	for _, name := range f.fabrics {
		if name != defaultFabric {
			spec, err := fabric.Open(name)
			if err != nil {
				return nil, nil, fmt.Errorf("--fabric: %w", err)
			}
			study.Join = func(nodes int) (*topo.Cluster, error) {
				text, err := topo.XML(f.machine)
				if err != nil {
					return nil, err
				}
				return spec.Cluster(text, f.machine, nodes, f.gpus)
			}
		} else {
			study.Join = nil
		}
		more, why, err := study.Jobs()
		if err != nil {
			return nil, nil, err
		}
		jobs, notes = append(jobs, more...), append(notes, why...)
	}
	return jobs, notes, nil
}

// fits fails if a case needs more memory than there is.
func (f *simFlags) fits(jobs []sweep.Job) error {
	limit := freeMemory()
	if f.memory != "" {
		var err error
		if limit, err = units.ParseBytes(f.memory); err != nil {
			return usage(fmt.Errorf("--memory: %w", err))
		}
	}
	if limit == 0 {
		return nil
	}
	for _, j := range jobs {
		if !j.Large() {
			continue
		}
		if need := j.Need(); need > limit {
			t := j.Task()
			advice := "want fewer nodes or --channels, or a machine with more memory (--memory SIZE sets the limit)"
			if f.noSymmetry {
				advice = "want it without --no-symmetry, or " + advice[len("want "):]
			}
			return fmt.Errorf("%v over %v on %d GPUs needs about %.1f GiB, and %.1f GiB are free: %s",
				t.Algorithm, t.Protocol, t.Ranks, float64(need)/float64(units.GiB), float64(limit)/float64(units.GiB), advice)
		}
	}
	return nil
}

// figure returns the file that the figure goes to, or none, having made sure
// that it can be written.
func (f *simFlags) figure(c *cobra.Command) (string, error) {
	if (f.csv || f.json) && !c.Flags().Changed("plot") || f.plot == noPlot {
		return noPlot, nil
	}
	return f.plot, checkFigure(f.plot)
}

// checkFigure makes sure that a figure can be written.
func checkFigure(path string) error {
	err := figure.Check(path)
	switch {
	case errors.Is(err, figure.ErrFormat):
		return usage(fmt.Errorf("--plot: %w, or --plot %s", err, noPlot))
	case err != nil:
		return fmt.Errorf("%w (--plot PATH writes elsewhere, --plot %s nothing)", err, noPlot)
	}
	return nil
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
	s := sweep.Study{Nodes: f.nodes, GPUs: f.gpus, Channels: f.channels, NoSymmetry: f.noSymmetry}
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
	if f.profile != "" {
		if s.Profile, err = profile.Open(f.profile); err != nil {
			return s, usage(fmt.Errorf("--profile: %w", err))
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
