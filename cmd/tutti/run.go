package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tutti/backend"
	"tutti/backend/cuda"
	"tutti/experiments/rows"
	"tutti/experiments/sweep"
	"tutti/model"
	"tutti/model/schedule"
	"tutti/model/schedule/file"
	"tutti/model/units"
	"tutti/topo"
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
NCCL_ALGO and NCCL_PROTO say or, without these, what tuning guesses. Their times are medians of replayed CUDA graphs with -n calls each,
on the slowest rank. With several backends each line ends with its time over that
of the first.`,
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

// trial is a call to measure.
type trial struct {
	size  units.Bytes
	ranks int
	maker *sweep.Maker
	// forms are those that the call has: false for out of place, true for in
	// place.
	forms []bool
	build func(backend string, inPlace bool) (schedule.Schedule, error)
}

func (f *runFlags) run(c *cobra.Command) error {
	if err := f.checkNumbers(c); err != nil {
		return usage(err)
	}
	stderr := c.ErrOrStderr()
	if f.quiet {
		stderr = io.Discard
	}
	examined := f.probe || f.sweep || f.stress > 0
	if examined {
		f.backends = []string{onCUDA}
	}
	names, err := f.chosen(stderr)
	if err != nil {
		return err
	}
	given := c.Flags().Changed
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
	ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt)
	defer stop()
	if examined {
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

// checkNumbers fails for numbers out of their range.
func (f *runFlags) checkNumbers(c *cobra.Command) error {
	if err := exclusive(c, "csv", "json"); err != nil {
		return err
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
	case f.patience <= 0:
		return fmt.Errorf("--kernel-timeout %v: want more than 0", f.patience)
	case f.channels < 0 || f.channels > search.MaxChannels:
		return fmt.Errorf("--channels %d: want 1 to %d, or 0 for NCCL's choice", f.channels, search.MaxChannels)
	}
	return nil
}

// trials lists what to measure, in the order of nccl-tests: by datatype,
// operation and root, and there by algorithm, protocol and size. What the cluster
// cannot run is left out with a note.
func (f *runFlags) trials(c *cobra.Command, backends []string) (machine string, trials []trial, notes []string, err error) {
	if f.file != "" {
		s, err := file.Read(f.file)
		if err == nil {
			err = verify(s)
		}
		if err != nil {
			return "", nil, nil, fmt.Errorf("--schedule: %w", err)
		}
		t := s.Task()
		return filepath.Base(f.file), []trial{{
			size: t.Bytes(), ranks: t.Ranks, forms: []bool{t.InPlace},
			build: func(string, bool) (schedule.Schedule, error) { return s, nil },
		}}, nil, nil
	}
	tasks, err := f.tasks()
	if err != nil {
		return "", nil, nil, usage(err)
	}
	cluster, err := f.cluster()
	if err != nil {
		return "", nil, nil, err
	}
	roots, err := f.roots(tasks[0].Collective, cluster)
	if err != nil {
		return "", nil, nil, usage(err)
	}
	var named []model.Algorithm
	for _, t := range tasks {
		named = append(named, t.Algorithm)
	}
	maker := sweep.NewMaker(cluster, named...)
	for _, t := range tasks {
		sizes, err := f.sizes.sizes(c, t.Datatype)
		if err != nil {
			return "", nil, nil, usage(err)
		}
		forms := []bool{false}
		if t.CanOverlap() {
			forms = []bool{false, true}
		}
		for _, root := range roots {
			for _, size := range sizes {
				build := func(backend string, inPlace bool) (schedule.Schedule, error) {
					call := suit(backend, t, size, cluster.Ranks())
					call.Root, call.InPlace = root, inPlace
					return maker.Schedule(call, size)
				}
				if _, err := build(backends[0], false); err == nil {
					trials = append(trials, trial{size, cluster.Ranks(), maker, forms, build})
				} else if note := err.Error(); !slices.Contains(notes, note) {
					notes = append(notes, note)
				}
			}
		}
	}
	if len(trials) == 0 {
		return "", nil, nil, usage(fmt.Errorf("nothing to run on %s: %s", cluster.Title(), strings.Join(notes, "; ")))
	}
	if slices.Contains(f.algorithms, "all") {
		notes = nil // all that can run were asked for
	}
	return cluster.Machine.Name, trials, notes, nil
}

// tasks lists the combinations of datatype, operation, algorithm and protocol.
func (f *runFlags) tasks() (tasks []schedule.Task, err error) {
	collective, err := model.ParseCollective(f.collective)
	if err != nil {
		return nil, fmt.Errorf("--coll: %w", err)
	}
	datatypes, err := someOrAll(f.datatypes, model.ParseDatatype, model.Datatypes())
	if err != nil {
		return nil, fmt.Errorf("-d: %w", err)
	}
	ops, err := someOrAll(f.ops, model.ParseRedop, model.Redops())
	if err != nil {
		return nil, fmt.Errorf("-o: %w", err)
	}
	if !collective.Reduces() {
		ops = ops[:1]
	}
	algorithms, err := choices(f.algorithms, model.Algorithms(), model.ParseAlgorithm)
	if err != nil {
		return nil, fmt.Errorf("--algo: %w", err)
	}
	protocols, err := choices(f.protocols, model.Protocols(), model.ParseProtocol)
	if err != nil {
		return nil, fmt.Errorf("--proto: %w", err)
	}
	if algorithms == nil {
		algorithms = []model.Algorithm{sweep.Auto}
	}
	if protocols == nil {
		protocols = []model.Protocol{sweep.Auto}
	}
	for _, d := range datatypes {
		for _, o := range ops {
			for _, a := range algorithms {
				for _, p := range protocols {
					tasks = append(tasks, schedule.Task{Collective: collective, Datatype: d, Redop: o, Algorithm: a, Protocol: p, Channels: f.channels})
				}
			}
		}
	}
	return tasks, nil
}

// someOrAll reads names, or all.
func someOrAll[T comparable](words []string, parse func(string) (T, error), all []T) (list []T, err error) {
	if slices.Equal(words, []string{"all"}) {
		return all, nil
	}
	if len(words) == 0 {
		words = []string{""}
	}
	for _, word := range words {
		v, err := parse(word)
		if err != nil {
			return nil, fmt.Errorf("%w, or all", err)
		}
		if !slices.Contains(list, v) {
			list = append(list, v)
		}
	}
	return list, nil
}

// roots lists the ranks that are to be the root.
func (f *runFlags) roots(c model.Collective, cluster *topo.Cluster) (roots []int, err error) {
	if f.root == "all" {
		if !c.Rooted() {
			return []int{0}, nil
		}
		for rank := range cluster.Ranks() {
			roots = append(roots, rank)
		}
		return roots, nil
	}
	root, err := strconv.Atoi(f.root)
	if err != nil || root < 0 || root >= cluster.Ranks() {
		return nil, fmt.Errorf("-r %s: want a rank, 0 to %d, or all", f.root, cluster.Ranks()-1)
	}
	return []int{root}, nil
}

// measure goes through the trials and fills in the table. What a backend does not
// support is left out with a note, unless nothing else was asked for. With an error
// come the results from before it.
func (f *runFlags) measure(ctx context.Context, executors []backend.Backend, machine string, trials []trial, table *runTable, bar *progress, notes io.Writer) (results []rows.Row, err error) {
	defer bar.end()
	var largest units.Bytes
	var rate units.Rate // at that size
	var left []error
	for _, trial := range trials {
		var first units.Time // of the first backend
		for _, executor := range executors {
			var forms [2]*rows.Row // out of place, in place
			var t schedule.Task
			for _, inPlace := range trial.forms {
				s, err := trial.build(executor.Name(), inPlace)
				if err != nil {
					return nil, err
				}
				t = s.Task()
				what := fmt.Sprintf("%v %v over %v on %d ranks, %v", t.Collective, t.Algorithm, t.Protocol, t.Ranks, t.Bytes())
				if executor == executors[0] && inPlace == trial.forms[0] {
					bar.step(what)
				}
				row, used, err := f.once(ctx, executor, s)
				if errors.Is(err, backend.ErrUnsupported) {
					left = append(left, fmt.Errorf("%s: %s: %w", executor.Name(), what, err))
					break
				}
				if err != nil {
					return results, fmt.Errorf("%s: %w", what, err)
				}
				row.Machine = machine
				if trial.size >= largest {
					largest, rate = trial.size, used
				}
				results = append(results, row)
				t.Channels = row.Channels
				if inPlace {
					forms[1] = &row
				} else {
					forms[0] = &row
				}
			}
			bar.end()
			measured := cmp.Or(forms[0], forms[1])
			if measured == nil {
				continue
			}
			if executor == executors[0] {
				first = measured.Time
			}
			if !table.begun {
				table.header(executors, machine, t)
			}
			table.row(executor.Name(), t, forms, first)
		}
	}
	if len(results) == 0 {
		return nil, usage(errors.Join(left...))
	}
	for _, err := range left {
		fmt.Fprintf(notes, "left out: %v\n", err)
	}
	table.footer(results)
	if f.memory {
		table.memory(largest, rate)
	}
	return results, nil
}

// method returns how calls are measured.
func (f *runFlags) method() backend.Method {
	return backend.Method{Warmup: f.warmup, Iterations: f.iterations, Check: f.check == 1, Seed: f.seed}
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
	var text bytes.Buffer
	if err := write(&text, results); err != nil {
		return err
	}
	if _, err := text.WriteTo(to); err != nil {
		return fmt.Errorf("writing the results: %w", err)
	}
	return nil
}

// once measures a schedule; used is the rate at which it read and wrote memory,
// where the backend knows it.
func (f *runFlags) once(ctx context.Context, executor backend.Backend, s schedule.Schedule) (row rows.Row, used units.Rate, err error) {
	if f.timeout > 0 {
		var stop context.CancelFunc
		limit := time.Duration(f.timeout) * time.Second
		ctx, stop = context.WithTimeoutCause(ctx, limit, fmt.Errorf("not done within %v (-T)", limit))
		defer stop()
	}
	e, err := executor.Prepare(s)
	if err != nil {
		return row, 0, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	t := s.Task()
	m, err := backend.Measure(ctx, e, t, f.method())
	if err != nil {
		return row, 0, err
	}
	row = rows.Row{
		Source: executor.Name(), Collective: t.Collective, Algorithm: t.Algorithm, Protocol: t.Protocol, Nodes: t.Nodes, Ranks: t.Ranks,
		Channels: t.Channels, Datatype: t.Datatype, Redop: t.Redop, Bytes: t.Bytes(), Time: m.Time, InPlace: t.InPlace,
	}
	if f.check == 1 {
		row.Wrong = &m.Wrong
	}
	if w := cuda.WorkOf(e); w != nil && w.Blocks > 0 {
		row.Channels, row.Kernel = w.Blocks, w.Kernel // each block is a channel
	}
	if meter, ok := e.(interface{ Moved() units.Bytes }); ok {
		used = meter.Moved().Over(m.Time)
	}
	return row, used, nil
}
