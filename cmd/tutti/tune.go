package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"tutti/model"
	"tutti/model/tuning/nccl"
	"tutti/model/units"
	"tutti/topo/search"
)

// tuneFlags are the flags of tutti tune, as they were given.
type tuneFlags struct {
	clusterFlags
	sizes    sizeFlags
	as       string
	bySize   bool
	noNVLS   bool
	settings nccl.Settings
}

func newTune() *cobra.Command {
	var f tuneFlags
	c := &cobra.Command{
		Use:   "tune",
		Short: "Say which algorithm and protocol win on a cluster, by size",
		Long: `Say which algorithm and protocol win on a cluster.

With --as nccl it is NCCL 2.28.3 that is asked: its table of latencies and
bandwidths, line for line as NCCL_DEBUG_SUBSYS=TUNING logs it, or with --by-size
what it chooses for each size and the times that it predicts, in microseconds.`,
		Example: `  tutti tune --as nccl --machine my-topology.xml --nodes 4
  tutti tune --as nccl --by-size -b 8 -e 8G`,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c) },
	}
	f.clusterFlags.register(c)
	f.sizes.register(c)
	flags := c.Flags()
	flags.StringVar(&f.as, "as", "nccl", "whose model decides: nccl")
	flags.BoolVar(&f.bySize, "by-size", false, "with --as nccl: its choices by size in the place of its table")
	flags.BoolVar(&f.noNVLS, "no-nvls", false, "as with NCCL_NVLS_ENABLE=0")
	flags.StringVar(&f.settings.Algo, "nccl-algo", "", "as with NCCL_ALGO=LIST, such as ring,tree or ^nvls")
	flags.StringVar(&f.settings.Proto, "nccl-proto", "", "as with NCCL_PROTO=LIST, such as LL,Simple or ^LL128")
	complete(c, "as", []string{"nccl"})
	return c
}

func (f *tuneFlags) run(c *cobra.Command) error {
	if f.as != "nccl" {
		return usage(fmt.Errorf("--as %s: want nccl", f.as))
	}
	cluster, err := f.cluster()
	if err != nil {
		return err
	}
	graphs := search.Find(cluster, search.Options{NoNVLS: f.noNVLS})
	m, err := nccl.New(nccl.Describe(cluster, graphs), f.settings)
	if err != nil {
		return usage(err)
	}
	if !f.bySize {
		return m.WriteTable(c.OutOrStdout())
	}
	sizes, err := f.sizes.sizes(c, model.Float32)
	if err != nil {
		return usage(err)
	}
	return writeChoices(c.OutOrStdout(), m, sizes)
}

// writeChoices writes a line for each collective: what NCCL chooses from which
// size to which, and its times at both ends.
func writeChoices(w io.Writer, m *nccl.Model, sizes []units.Bytes) error {
	for _, collective := range nccl.Functions() {
		ranges, err := m.Ranges(nccl.Call{Collective: collective, Datatype: model.Float32}, sizes)
		if err != nil {
			return err
		}
		words := make([]string, len(ranges))
		for i, r := range ranges {
			words[i] = r.String()
		}
		if _, err := fmt.Fprintf(w, "%13v: %s\n", collective, strings.Join(words, "; ")); err != nil {
			return err
		}
	}
	return nil
}
