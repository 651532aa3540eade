package main

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"tutti/topo"
	"tutti/topo/fabric"
)

// clusterFlags are the flags that name one cluster: machines on a fabric.
type clusterFlags struct {
	machineFlags
	nodes, gpus int
	fabric      string

	command *cobra.Command
}

const defaultFabric = "rail-optimised"

func (f *clusterFlags) register(c *cobra.Command) {
	f.command = c
	f.machineFlags.register(c)
	flags := c.Flags()
	flags.IntVar(&f.nodes, "nodes", 0, "how many such machines (default as the fabric says, or 1)")
	flags.StringVar(&f.fabric, "fabric", defaultFabric, "how they are joined: a built-in fabric (tutti topo fabric) or a FILE.yaml")
	flags.IntVarP(&f.gpus, "gpus", "g", 0, "use the first N GPUs of each machine (default all)")
	complete(c, "fabric", fabric.Names())
}

// clusterView is a cluster and what there is to know of where it comes from.
type clusterView struct {
	*topo.Cluster
	xml     []byte   // the machine's
	assumed []string // to make a machine of a matrix
}

// view returns the cluster that the flags mean. Its errors are of usage, but for a
// file that cannot be read.
func (f *clusterFlags) view() (*clusterView, error) {
	given := f.command.Flags().Changed
	spec, err := fabric.Open(f.fabric)
	if errors.As(err, new(fabric.UnknownError)) {
		err = usage(fmt.Errorf("--fabric: %w", err))
	}
	if err != nil {
		return nil, err
	}
	if !given("machine") && spec.Machine != "" {
		f.machine = spec.Machine
	}
	nodes := f.nodes
	switch {
	case given("nodes") && (nodes < 1 || nodes > topo.MaxNodes):
		return nil, usage(fmt.Errorf("--nodes %d: want 1 to %d", nodes, topo.MaxNodes))
	case !given("nodes") && given("fabric") && spec.Nodes == 0:
		return nil, usage(fmt.Errorf("--fabric %s does not say how many machines it joins: want --nodes, too", f.fabric))
	case !given("nodes"):
		nodes = max(1, spec.Nodes)
	}
	v := &clusterView{}
	if v.xml, v.assumed, err = f.xml(f.command); err != nil {
		return nil, err
	}
	if _, err := topo.ReadXML(bytes.NewReader(v.xml), f.machine); err != nil {
		return nil, err
	}
	if v.Cluster, err = spec.Cluster(v.xml, f.machine, nodes, f.gpus); err == nil {
		v.xml, err = spec.Join(v.xml, f.machine, nodes)
	}
	return v, usage(err)
}

// cluster is view for those who want the cluster alone.
func (f *clusterFlags) cluster() (*topo.Cluster, error) {
	v, err := f.view()
	if err != nil {
		return nil, err
	}
	return v.Cluster, nil
}
