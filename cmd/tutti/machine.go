package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tutti/model/units"
	"tutti/topo"
	"tutti/topo/fabric"
	"tutti/topo/smi"
)

// machineFlags say which machine is meant, and what a matrix of nvidia-smi does
// not say of it.
type machineFlags struct {
	machine, gpu, cpu string
	nicRates          []string
	merge             string
}

func (f *machineFlags) register(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.machine, "machine", defaultMachine, "a built-in machine (tutti topo list), an NCCL topology FILE.xml, or the output of nvidia-smi topo -m in FILE.txt")
	flags.StringSliceVar(&f.nicRates, "nic-rate", nil, "FILE.txt: the NICs' rate, as in 400 Gb/s, or rates by name, as in mlx5_ib*=400,mlx5_eth*=25; others are left out")
	flags.StringVar(&f.gpu, "gpu-kind", "", "FILE.txt: what the GPUs are: "+strings.Join(smi.GPUs(), ", ")+" (default after their NVLinks)")
	flags.StringVar(&f.cpu, "cpu-kind", "", "FILE.txt: what the CPUs are: "+strings.Join(smi.CPUs(), ", ")+" (default what such GPUs come with)")
	flags.StringVar(&f.merge, "net-merge-level", mergeNames[0], "make one of the ports this near each other, as NCCL does (NCCL_NET_MERGE_LEVEL): "+strings.Join(mergeNames, ", "))
	complete(c, "machine", topo.Machines())
	complete(c, "net-merge-level", mergeNames)
	complete(c, "gpu-kind", smi.GPUs())
	complete(c, "cpu-kind", smi.CPUs())
}

// xml returns the machine's NCCL topology XML, and what was assumed to make one
// of a matrix.
func (f *machineFlags) xml(c *cobra.Command) (text []byte, assumed []string, err error) {
	if text, assumed, err = f.given(c); err == nil {
		text, err = fuse(text, f.machine, f.merge)
	}
	return text, assumed, err
}

// given is xml with the ports as they are given.
func (f *machineFlags) given(c *cobra.Command) (text []byte, assumed []string, err error) {
	if strings.HasSuffix(f.machine, ".txt") {
		return f.matrix()
	}
	for _, flag := range []string{"nic-rate", "gpu-kind", "cpu-kind"} {
		if c.Flags().Changed(flag) {
			return nil, nil, usage(fmt.Errorf("--%s is for the output of nvidia-smi topo -m: want --machine FILE.txt", flag))
		}
	}
	text, err = topo.XML(f.machine)
	if errors.As(err, new(topo.UnknownMachineError)) {
		err = usage(fmt.Errorf("--machine: %w", err))
	}
	return text, nil, err
}

// matrix reads the output of nvidia-smi topo -m.
func (f *machineFlags) matrix() (text []byte, assumed []string, err error) {
	o := smi.Options{GPU: f.gpu, CPU: f.cpu}
	for _, kind := range []struct {
		flag, value string
		known       []string
	}{{"gpu-kind", f.gpu, smi.GPUs()}, {"cpu-kind", f.cpu, smi.CPUs()}} {
		if kind.value != "" && !slices.Contains(kind.known, kind.value) {
			return nil, nil, usage(fmt.Errorf("--%s %s: want one of %s", kind.flag, kind.value, strings.Join(kind.known, ", ")))
		}
	}
	if o.NICs, err = nicRates(f.nicRates); err != nil {
		return nil, nil, usage(fmt.Errorf("--nic-rate: %w", err))
	}
	file, err := os.ReadFile(f.machine)
	if err != nil {
		return nil, nil, err
	}
	m, err := smi.Parse(file, f.machine)
	if err != nil {
		return nil, nil, err
	}
	text, assumed, err = m.XML(o)
	if err != nil {
		return nil, nil, usage(fmt.Errorf("%s: %w (see --gpu-kind, --nic-rate)", f.machine, err))
	}
	return text, assumed, nil
}

// nicRates reads a list of rates, each for all NICs or for those of a name. A
// number alone is in Gb/s.
func nicRates(list []string) ([]smi.NICRate, error) {
	var rates []smi.NICRate
	for _, item := range list {
		pattern, value, named := strings.Cut(item, "=")
		if !named {
			pattern, value = "*", item
		}
		if strings.Trim(value, "0123456789.") == "" {
			value += " Gb/s"
		}
		rate, err := units.ParseRate(value)
		if err != nil {
			return nil, err
		}
		if rate <= 0 || rate > 1e6*units.Gbps {
			return nil, fmt.Errorf("%s: want more than 0 and at most 1000000 Gb/s", item)
		}
		rates = append(rates, smi.NICRate{Pattern: pattern, Rate: rate})
	}
	return rates, nil
}

// clusterFlags say which cluster is meant: machines on a fabric.
type clusterFlags struct {
	machineFlags
	nodes, gpus int
	fabric      string
}

const defaultFabric = "rail-optimised"

func (f *clusterFlags) register(c *cobra.Command) {
	f.machineFlags.register(c)
	flags := c.Flags()
	flags.IntVar(&f.nodes, "nodes", 0, "how many such machines (default as the fabric says, or 1)")
	flags.IntVarP(&f.gpus, "gpus", "g", 0, "use the first N GPUs of each machine (default all)")
	flags.StringVar(&f.fabric, "fabric", defaultFabric, "how they are joined: a built-in fabric (tutti topo fabric) or a FILE.yaml")
	complete(c, "fabric", fabric.Names())
}

// view is a cluster and what there is to know of where it comes from.
type view struct {
	*topo.Cluster
	xml     []byte   // the machine's
	assumed []string // to make a machine of a matrix
}

// open returns the cluster that the flags mean.
func (f *clusterFlags) open(c *cobra.Command) (*view, error) {
	spec, err := fabric.Open(f.fabric)
	if errors.As(err, new(fabric.UnknownError)) {
		err = usage(fmt.Errorf("--fabric: %w", err))
	}
	if err != nil {
		return nil, err
	}
	if !c.Flags().Changed("machine") && spec.Machine != "" {
		f.machine = spec.Machine
	}
	nodes := f.nodes
	switch {
	case !c.Flags().Changed("nodes"):
		nodes = max(1, spec.Nodes)
		if c.Flags().Changed("fabric") && spec.Nodes == 0 {
			return nil, usage(fmt.Errorf("--fabric %s does not say how many machines it joins: want --nodes, too", f.fabric))
		}
	case nodes < 1 || nodes > topo.MaxNodes:
		return nil, usage(fmt.Errorf("--nodes %d: want 1 to %d", nodes, topo.MaxNodes))
	}
	v := &view{}
	if v.xml, v.assumed, err = f.xml(c); err != nil {
		return nil, err
	}
	if v.Cluster, err = spec.Cluster(v.xml, f.machine, nodes, f.gpus); err != nil {
		if f.gpus != 0 {
			err = usage(fmt.Errorf("--gpus %d: %w", f.gpus, err))
		}
		return nil, err
	}
	v.xml, err = spec.Join(v.xml, f.machine, nodes)
	return v, err
}

// cluster is open for those who want the cluster alone.
func (f *clusterFlags) cluster(c *cobra.Command) (*topo.Cluster, error) {
	v, err := f.open(c)
	if err != nil {
		return nil, err
	}
	return v.Cluster, nil
}
