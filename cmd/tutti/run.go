package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tutti/experiments/rows"
	"tutti/model"
	"tutti/model/units"
	"tutti/topo/search"
)

// runFlags are the flags of tutti run, as they were given.
type runFlags struct {
	clusterFlags
	sizes                     sizeFlags
	backends                  []string
	collective                string
	algorithms, protocols     []string
	datatypes, ops            []string
	root                      string
	channels                  int
	iterations, warmup, check int
	timeout                   int
	seed                      uint64
	file                      string
	memory, csv, json, quiet  bool
	devices                   []int
	probe, sweep              bool
	stress, patience          time.Duration
}

func newRun() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run",
		Short: "Run a collective on real data, check it, and print time and bandwidth by size",
		Long: `Run a collective on real data, out of place and in place, compare every element of
every rank with a reference, and print nccl-tests' table, with the algorithm,
protocol and channels at the end of each line. The exit code is 1 if an element is
wrong.

The host backend runs the schedules that NCCL would run on the machine that is
named, with a goroutine for each core and the memory of this computer; its times
are this computer's, not the machine's. It is the default where no GPUs are found.

The cuda backend runs on the GPUs of this host: every collective by kernels of its
own in one shot or two, or on a ring (nch counts their blocks), other schedules by an
interpreter.
The nccl backend calls NCCL on the same GPUs, and nccl-symmetric does with symmetric
windows; NCCL does not tell which algorithm it takes, so --csv and --json name what
NCCL_ALGO and NCCL_PROTO say or, without these, what tuning guesses. Their times are
medians of replayed CUDA graphs with -n calls each, on the slowest rank. With several
backends each line ends with its time over that of the first.`,
		Example: `  tutti run
  tutti run --algo ring,tree,nvls -b 8 -e 64M -f 4 -d all -o all
  tutti run --coll allgather --nodes 2 --gpus 4 --algo pat --sizes 1M,1G -n 5
  tutti run --schedule schedule.json
  tutti run --backend cuda,nccl,nccl-symmetric -b 8 -e 4G
  tutti run --probe --sizes 1M,64M
  tutti run --stress 1m -b 8 -e 64M`,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c) },
	}
	f.clusterFlags.register(c)
	f.sizes.registerWith(c, "1K", "32M")
	flags := c.Flags()
	flags.StringSliceVar(&f.backends, "backend", []string{"auto"}, "host, cuda (the GPUs of this host), nccl, nccl-symmetric; several side by side; or auto: cuda where there are GPUs, else host")
	flags.StringVar(&f.collective, "coll", model.AllReduce.String(), "the collective")
	flags.StringSliceVar(&f.algorithms, "algo", []string{"auto"}, "algorithms; all that do the collective; or auto, as tuning decides for each size")
	flags.StringSliceVar(&f.protocols, "proto", []string{"auto"}, "ll, ll128, simple; all; or auto, as tuning decides for each size")
	flags.IntVar(&f.channels, "channels", 0, "number of channels (default as NCCL chooses)")
	flags.StringSliceVarP(&f.datatypes, "datatype", "d", []string{model.Float32.String()}, "types of the elements: float, half, bfloat16, int32, …; or all")
	flags.StringSliceVarP(&f.ops, "op", "o", []string{model.Sum.String()}, "operations: sum, prod, min, max, avg; or all")
	flags.StringVarP(&f.root, "root", "r", "0", "rank that broadcast starts from and reduce ends at; or all")
	flags.IntVarP(&f.iterations, "iters", "n", 20, "calls that are timed")
	flags.IntVarP(&f.warmup, "warmup_iters", "w", 1, "calls before these")
	flags.IntVarP(&f.check, "check", "c", 1, "1 to compare results with a reference, 0 not to")
	flags.IntVarP(&f.timeout, "timeout", "T", 0, "seconds after which a size is given up; 0 for never")
	flags.Uint64Var(&f.seed, "seed", 0, "chooses the data")
	flags.IntSliceVar(&f.devices, "devices", nil, "GPUs by index, a rank each; one GPU may stand for several ranks (default all)")
	flags.StringVar(&f.file, "schedule", "", "run the schedule of this FILE.json, as tutti schedule export writes it")
	flags.BoolVar(&f.probe, "probe", false, "instead measure what the wires between the GPUs carry, by size sent to each peer; writes CSV")
	flags.BoolVar(&f.sweep, "sweep", false, "instead measure the collective with every kernel, blocks and threads that are worth trying; writes CSV")
	flags.DurationVar(&f.stress, "stress", 0, "instead run random calls on the GPUs for this time, as in 1m, and check every result")
	flags.DurationVar(&f.patience, "kernel-timeout", 5*time.Second, "how long a kernel on a GPU waits for a peer before it gives up")
	flags.BoolVar(&f.memory, "memory", false, "also print the rate at which the largest size used memory, beside that of a plain copy-and-add")
	flags.BoolVar(&f.csv, "csv", false, "write CSV instead of the table")
	flags.BoolVar(&f.json, "json", false, "write JSON instead of the table")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "no progress and no notes")
	complete(c, "backend", append([]string{"auto"}, backendNames...))
	complete(c, "algo", append([]string{"all", "auto"}, names(model.Algorithms())...))
	complete(c, "proto", append([]string{"all", "auto"}, names(model.Protocols())...))
	return c
}

func (f *runFlags) run(c *cobra.Command) error {
	if err := f.checkFlags(c); err != nil {
		return usage(err)
	}
	stderr := c.ErrOrStderr()
	if f.quiet {
		stderr = io.Discard
	}
	given := c.Flags().Changed
	if f.examines() {
		if given("backend") && !slices.Equal(f.backends, []string{onCUDA}) {
			return usage(fmt.Errorf("--backend %s: --probe, --sweep and --stress are of %s alone", strings.Join(f.backends, ","), onCUDA))
		}
		f.backends = []string{onCUDA}
	}
	names, err := f.chosen(stderr)
	if err == nil {
		err = f.available(names)
	}
	if err != nil {
		return err
	}
	if !slices.Contains(names, onHost) && !given("machine") && !given("fabric") {
		f.machine = liveMachine
	}
	machine, trials, notes, err := f.trials(c, names)
	if err != nil {
		return err
	}
	for _, note := range notes {
		fmt.Fprintf(stderr, "left out: %s\n", note)
	}
	ctx, stop := untilInterrupted(c)
	defer stop()
	if f.examines() {
		return f.examine(ctx, trials, c.OutOrStdout(), stderr)
	}
	var largest units.Bytes
	for _, t := range trials {
		largest = max(largest, t.size)
	}
	executors, err := f.open(names, largest)
	if err != nil {
		return err
	}
	table := &runTable{to: c.OutOrStdout(), runFlags: f}
	if f.csv || f.json {
		table.to = io.Discard
	}
	results, err := f.measure(ctx, executors, machine, trials, table, newProgress(stderr, len(trials)), stderr)
	if err == nil {
		err = table.err
	}
	if len(results) > 0 { // also those from before an error
		err = cmp.Or(err, f.print(c.OutOrStdout(), results))
	}
	if wrong := countWrong(results); err == nil && wrong > 0 {
		err = fmt.Errorf("%d elements are wrong (see #wrong)", wrong)
	}
	return err
}

// examinations are the flags that ask for something else than measured calls.
var examinations = []string{"probe", "sweep", "stress"}

// examines tells whether one of them is given.
func (f *runFlags) examines() bool { return f.probe || f.sweep || f.stress > 0 }

// checkFlags fails for numbers out of their range, and for flags that exclude each other.
func (f *runFlags) checkFlags(c *cobra.Command) error {
	if err := exclusive(c, "csv", "json"); err != nil {
		return err
	}
	for i, flag := range examinations {
		for _, other := range append([]string{"schedule", "json", "memory"}, examinations[:i]...) {
			if err := exclusive(c, flag, other); err != nil {
				return err
			}
		}
	}
	for _, flag := range []string{"machine", "nodes", "gpus", "fabric", "coll", "algo", "proto", "channels", "datatype", "op", "root", "minbytes", "maxbytes", "stepfactor", "stepbytes", "sizes"} {
		if err := exclusive(c, "schedule", flag); err != nil {
			return err
		}
	}
	switch {
	case f.iterations < 1:
		return fmt.Errorf("-n %d: want at least 1", f.iterations)
	case f.warmup < 0:
		return fmt.Errorf("-w %d: want 0 or more", f.warmup)
	case f.check != 0 && f.check != 1:
		return fmt.Errorf("-c %d: want 0 or 1", f.check)
	case f.timeout < 0:
		return fmt.Errorf("-T %d: want a number of seconds, or 0 for no limit", f.timeout)
	case f.stress < 0 || f.stress == 0 && c.Flags().Changed("stress"):
		return fmt.Errorf("--stress %v: want more than 0", f.stress)
	case f.patience <= 0:
		return fmt.Errorf("--kernel-timeout %v: want more than 0", f.patience)
	case f.channels < 0 || f.channels > search.MaxChannels:
		return fmt.Errorf("--channels %d: want 1 to %d, or 0 for NCCL's choice", f.channels, search.MaxChannels)
	}
	return nil
}

// print writes the rows, if in another form than the table's.
func (f *runFlags) print(to io.Writer, results []rows.Row) error {
	write := rows.WriteCSV
	switch {
	case f.json:
		write = rows.WriteJSON
	case !f.csv:
		return nil
	}
	return output(to, func(w io.Writer) error { return write(w, results) })
}
