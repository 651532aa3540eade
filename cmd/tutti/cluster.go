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
	change  func(*fabric.Spec, []byte) ([]byte, error) // of machine and fabric, or nil
}

const defaultFabric = "rail-optimised"

func (f *clusterFlags) register(c *cobra.Command) {
	f.command = c
	f.machineFlags.register(c)
	flags := c.Flags()
	flags.IntVar(&f.nodes, "nodes", 0, "how many machines (default as the fabric says, or 1)")
	flags.StringVar(&f.fabric, "fabric", defaultFabric, "how the machines are joined: a built-in fabric (tutti topo fabric) or a FILE.yaml")
	flags.IntVarP(&f.gpus, "gpus", "g", 0, "use the first N GPUs of each machine (default all)")
	complete(c, "fabric", fabric.Names())
}

// clusterView is a cluster and what there is to know of where it comes from.
type clusterView struct {
	*topo.Cluster
	xml     []byte   // the machine's, of a mixture the last
	assumed []string // to make a machine of a matrix
}

// view returns the cluster that the flags mean. Its errors are of usage, but for a
// file that cannot be read.
func (f *clusterFlags) view() (*clusterView, error) {
	var nodes []int
	if f.command.Flags().Changed("nodes") {
		nodes = []int{f.nodes}
	}
	views, err := f.join(f.command, f.fabric, nodes, f.gpus, f.change)
	if err != nil {
		return nil, err
	}
	return views[0], nil
}

// join returns clusters of so many machines each, or of as many as the fabric
// says, having changed the machine and the fabric, unless change is nil.
func (f machineFlags) join(c *cobra.Command, fabricName string, nodes []int, gpus int, change func(*fabric.Spec, []byte) ([]byte, error)) ([]*clusterView, error) {
	given := c.Flags().Changed
	spec, err := fabric.Open(fabricName)
	if errors.As(err, new(fabric.UnknownError)) {
		err = usage(fmt.Errorf("--fabric: %w", err))
	}
	if err != nil {
		return nil, err
	}
	if !given("machine") && spec.Machine != "" {
		f.machine = spec.Machine
	}
	mixture, sum, err := f.mixture()
	switch {
	case err != nil:
		return nil, err
	case mixture != nil && len(nodes) > 0 && (len(nodes) > 1 || nodes[0] != sum):
		return nil, usage(fmt.Errorf("--nodes: --machine %s is %d: leave --nodes out", f.machine, sum))
	case len(mixture) == 1:
		f.machine, nodes = mixture[0].Name, []int{sum}
	case mixture != nil:
		v, err := f.joinMixed(c, spec, gpus, change)
		return []*clusterView{v}, err
	case len(nodes) == 0 && given("fabric") && spec.Nodes == 0:
		return nil, usage(fmt.Errorf("--fabric %s does not say how many machines it joins: want --nodes, too", fabricName))
	case len(nodes) == 0:
		nodes = []int{max(1, spec.Nodes)}
	}
	text, assumed, err := f.xml(c)
	if err != nil {
		return nil, err
	}
	if change != nil {
		if text, err = change(spec, text); err != nil {
			return nil, err
		}
	}
	if _, err := topo.ReadXML(bytes.NewReader(text), f.machine); err != nil {
		return nil, err
	}
	var views []*clusterView
	for _, n := range nodes {
		if n < 1 || n > topo.MaxNodes {
			return nil, usage(fmt.Errorf("--nodes %d: want 1 to %d", n, topo.MaxNodes))
		}
		v := &clusterView{assumed: assumed}
		if v.Cluster, err = spec.Cluster(text, f.machine, n, gpus); err == nil {
			v.xml, err = spec.Join(text, f.machine, n)
		}
		if err != nil {
			return nil, usage(err)
		}
		views = append(views, v)
	}
	return views, nil
}

// cluster is view for those who want the cluster alone.
func (f *clusterFlags) cluster() (*topo.Cluster, error) {
	v, err := f.view()
	if err != nil {
		return nil, err
	}
	return v.Cluster, nil
}
