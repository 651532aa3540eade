package main

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"tutti/experiments/sweep"
	"tutti/model"
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
