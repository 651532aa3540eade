package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"tutti/topo"
)

// clusterFlags are the flags that name one cluster.
type clusterFlags struct {
	machine     string
	nodes, gpus int
}

func (f *clusterFlags) register(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.machine, "machine", defaultMachine, "a built-in machine ("+strings.Join(topo.Machines(), ", ")+") or an NCCL topology FILE.xml")
	flags.IntVar(&f.nodes, "nodes", 1, "how many such machines")
	flags.IntVarP(&f.gpus, "gpus", "g", 0, "use the first N GPUs of each machine (default all)")
	complete(c, "machine", topo.Machines())
}

// cluster opens the machine and joins as many as were asked for.
func (f *clusterFlags) cluster() (*topo.Cluster, error) {
	machine, err := topo.Open(f.machine)
	if err != nil {
		if errors.As(err, new(topo.UnknownMachineError)) {
			err = usage(fmt.Errorf("--machine: %w", err))
		}
		return nil, err
	}
	c, err := topo.NewCluster(machine, f.nodes, f.gpus, topo.RailOptimised)
	return c, usage(err)
}
