package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"tutti/experiments/nccllog"
	"tutti/experiments/rows"
	"tutti/experiments/winners"
	"tutti/model"
	"tutti/model/schedule"
	"tutti/model/tuning/nccl"
	"tutti/topo"
	"tutti/topo/search"
)

// predictFlags are the flags of tutti predict, as they were given.
type predictFlags struct {
	clusterFlags
	sizes                    sizeFlags
	log, profile             string
	collective, datatype, op string
	csv, json, quiet         bool
}

func newPredict() *cobra.Command {
	var f predictFlags
	c := &cobra.Command{
		Use:   "predict",
		Short: "Say in microseconds what to expect of a collective on a cluster, or of a job from its NCCL log",
		Long: `Say what to expect of a collective by size: what NCCL chooses and expects, what
tutti's model expects of that choice, and the fastest way. It takes microseconds,
whatever the cluster's size.

With --nccl-log the machine, the graphs and the table come from the log of a job
(NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,GRAPH,TUNING), as NCCL had them.`,
		Example: `  tutti predict --nodes 128
  tutti predict --nccl-log job.log -b 8 -e 8G
  tutti predict --nodes 4 --coll reducescatter
  tutti predict --nodes 16384 --csv`,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c) },
	}
	f.clusterFlags.register(c)
	f.sizes.register(c)
	flags := c.Flags()
	flags.StringVar(&f.log, "nccl-log", "", "take the machine, graphs and table from this log of NCCL, in the place of --machine and --nodes")
	flags.StringVar(&f.profile, "profile", "", profileUsage)
	flags.StringVar(&f.collective, "coll", model.AllReduce.String(), "the collective: one that NCCL has costs of")
	flags.StringVarP(&f.datatype, "datatype", "d", model.Float32.String(), "type of the elements")
	flags.StringVarP(&f.op, "op", "o", model.Sum.String(), "operation: sum, prod, min, max, avg")
	flags.BoolVar(&f.csv, "csv", false, "write what tutti expects of NCCL's choices as CSV instead of the table")
	flags.BoolVar(&f.json, "json", false, "write what tutti expects of NCCL's choices as JSON instead of the table")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "no notes")
	complete(c, "coll", names(collectives()))
	return c
}

func (f *predictFlags) run(c *cobra.Command) error {
	for _, flags := range [][]string{{"csv", "json"}, {"nccl-log", "machine", "nodes", "gpus"}} {
		if err := exclusive(c, flags[0], flags[1:]...); err != nil {
			return usage(err)
		}
	}
	var t schedule.Task
	var err error
	if t.Collective, err = model.ParseCollective(f.collective); err != nil {
		return usage(fmt.Errorf("--coll: %w", err))
	}
	if t.Datatype, err = model.ParseDatatype(f.datatype); err != nil {
		return usage(fmt.Errorf("-d: %w", err))
	}
	if t.Redop, err = model.ParseRedop(f.op); err != nil {
		return usage(fmt.Errorf("-o: %w", err))
	}
	sizes, err := f.sizes.sizes(c, t.Datatype)
	if err != nil {
		return usage(err)
	}
	stderr := c.ErrOrStderr()
	if f.quiet {
		stderr = io.Discard
	}
	cluster, graphs, table, err := f.job(stderr)
	if err != nil {
		return err
	}
	noteMixed(stderr, cluster)
	p, err := openProfile(f.profile, cluster.Machine)
	if err != nil {
		return err
	}
	study, err := winners.New(cluster, graphs, p, t, nccl.Settings{})
	if err != nil {
		return usage(err)
	}
	if table != nil {
		study.Logged(table)
	}
	expected, err := study.Expect(sizes)
	if err != nil {
		return usage(err)
	}
	return output(c.OutOrStdout(), func(w io.Writer) error {
		switch list := winners.RowsOf(expected); {
		case f.csv:
			return rows.WriteCSV(w, list)
		case f.json:
			return rows.WriteJSON(w, list)
		default:
			return winners.WriteExpectations(w, expected)
		}
	})
}

// job returns the cluster and its graphs: of the flags or of the log, with the
// table that the log has.
func (f *predictFlags) job(notes io.Writer) (*topo.Cluster, search.Graphs, *nccl.Table, error) {
	if f.log == "" {
		c, err := f.cluster()
		if err != nil {
			return nil, search.Graphs{}, nil, err
		}
		return c, search.All(c), nil, nil
	}
	file, err := os.Open(f.log)
	if err != nil {
		return nil, search.Graphs{}, nil, err
	}
	defer file.Close()
	log, err := nccllog.Read(file, f.log)
	if err != nil {
		return nil, search.Graphs{}, nil, err
	}
	c := log.Cluster
	fmt.Fprintf(notes, "%s: NCCL %s, %d ranks, %d x %d GPUs (compute capability %d.%d by the rate of NVLink)\n",
		f.log, log.Version, c.Ranks(), c.Nodes, c.RanksPerNode(), c.Machine.SM()/10, c.Machine.SM()%10)
	if log.Plugin != "" && !strings.HasPrefix(log.Plugin, "IB") {
		fmt.Fprintf(notes, "the job's network is %s, and the profile's is InfiniBand: expect more time between nodes\n", log.Plugin)
	}
	if log.Table.Empty() {
		fmt.Fprintln(notes, "the log has no tuning table (NCCL_DEBUG_SUBSYS=TUNING): it is computed from the graphs")
		return c, log.Graphs, nil, nil
	}
	return c, log.Graphs, log.Table, nil
}
