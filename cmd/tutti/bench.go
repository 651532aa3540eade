package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"tutti/backend/bench"
	"tutti/backend/cuda"
	"tutti/backend/cuda/driver"
	"tutti/model"
	"tutti/model/units"
)

// benchFlags are the flags of tutti bench, as they were given.
type benchFlags struct {
	gpus                        int
	devices                     []int
	datatypes                   []string
	op                          string
	sizes                       sizeFlags
	nccl, inPlace, probe, tuned bool
	ranks                       int
	only                        []string
	quiet                       bool
	scratch                     int
	maxBlocks                   int
	timeout, stress             time.Duration
}

func newBench() *cobra.Command {
	var f benchFlags
	c := &cobra.Command{
		Use:   "bench",
		Short: "Sweep the GPU kernels over sizes, blocks and threads, with NCCL beside them",
		Long: `Sweep tutti's AllReduce kernels on the GPUs of this host: for each size every
algorithm with the block and thread counts that are worth trying, and NCCL by
default and with symmetric windows. Every rank's result is checked. Times are
medians of CUDA graph replays. Writes CSV.`,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c) },
	}
	flags := c.Flags()
	flags.IntVarP(&f.gpus, "gpus", "g", 0, "use the first N GPUs (default all)")
	flags.IntSliceVar(&f.devices, "devices", nil, "the GPUs by index, a rank each; one GPU may stand for several ranks")
	flags.StringSliceVarP(&f.datatypes, "datatype", "d", []string{model.Float32.String()}, "types of the elements")
	flags.StringVarP(&f.op, "op", "o", model.Sum.String(), "operation: sum, prod, min, max, avg")
	f.sizes.register(c)
	flags.BoolVar(&f.nccl, "nccl", true, "measure NCCL, too")
	flags.BoolVar(&f.inPlace, "in-place", false, "reduce into the input")
	flags.BoolVar(&f.probe, "probe", false, "measure what the wires carry instead: the sizes are those of each pair of GPUs")
	flags.DurationVar(&f.stress, "stress", 0, "run random calls for this time instead, and check every result")
	flags.BoolVar(&f.tuned, "tuned", false, "only the launch that is chosen for each size")
	flags.StringSliceVar(&f.only, "only", nil, "run these algorithms only")
	flags.IntVar(&f.scratch, "scratch", 512, "MiB of memory for what peers push, of each rank")
	flags.IntVar(&f.maxBlocks, "max-blocks", 512, "leave out launches of more blocks")
	flags.DurationVar(&f.timeout, "timeout", 5*time.Second, "how long a kernel waits for a peer")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "no progress and no notes")
	return c
}

func (f *benchFlags) run(c *cobra.Command) error {
	op, err := model.ParseRedop(f.op)
	if err != nil {
		return usage(fmt.Errorf("-o: %w", err))
	}
	devices := f.devices
	if len(devices) == 0 {
		n, err := driver.Count()
		if err != nil {
			return err
		}
		if f.gpus > n {
			return usage(fmt.Errorf("--gpus %d: this host has %d", f.gpus, n))
		}
		if f.gpus > 0 {
			n = f.gpus
		}
		for i := range n {
			devices = append(devices, i)
		}
	}
	f.ranks = len(devices)
	var cases []bench.Case
	o := bench.Options{GPUs: devices, Peer: f.nccl, Timeout: f.timeout}
	for _, name := range f.datatypes {
		d, err := model.ParseDatatype(name)
		if err != nil {
			return usage(fmt.Errorf("-d: %w", err))
		}
		sizes, err := f.sizes.sizes(c, d)
		if err != nil {
			return usage(err)
		}
		for _, size := range sizes {
			cases = append(cases, bench.Case{Datatype: d, Redop: op, Bytes: size, InPlace: f.inPlace})
			if f.probe {
				size *= units.Bytes(len(devices))
			}
			o.Room = max(o.Room, size)
		}
	}
	o.Scratch = units.Bytes(f.scratch) * units.MiB
	stderr := c.ErrOrStderr()
	if f.quiet {
		stderr = io.Discard
	}
	b, err := bench.Open(o, c.OutOrStdout(), stderr)
	if err != nil {
		return err
	}
	if f.probe {
		return errors.Join(b.Probe(c.OutOrStdout(), probeSizes(cases)), b.Close())
	}
	if f.stress > 0 {
		calls, err := b.Stress(f.stress, uint64(time.Now().UnixNano()))
		fmt.Fprintf(c.OutOrStdout(), "%d calls right\n", calls)
		return errors.Join(err, b.Close())
	}
	bar := newProgress(stderr, len(cases))
	for _, one := range cases {
		bar.step(fmt.Sprintf("%v of %v", one.Bytes, one.Datatype))
		if _, err := b.Run(one, f.launches(one.Bytes)); err != nil {
			return err
		}
	}
	bar.end()
	return b.Close()
}

// launches returns what to try at a size.
func (f *benchFlags) launches(size units.Bytes) []cuda.Launch {
	if f.tuned {
		return []cuda.Launch{cuda.Choose(f.ranks, int64(size))}
	}
	return slices.DeleteFunc(bench.Launches(size, f.maxBlocks), func(l cuda.Launch) bool {
		return len(f.only) > 0 && !slices.Contains(f.only, l.Algorithm.String())
	})
}

func probeSizes(cases []bench.Case) []units.Bytes {
	var sizes []units.Bytes
	for _, c := range cases {
		sizes = append(sizes, c.Bytes)
	}
	return sizes
}
