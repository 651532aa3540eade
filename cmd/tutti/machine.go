package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tutti/backend/live"
	"tutti/model/units"
	"tutti/topo"
	"tutti/topo/smi"
)

// liveMachine names this host.
const liveMachine = "live"

// machineFlags are the flags that name one machine, and say what a matrix of
// nvidia-smi does not say of it.
type machineFlags struct {
	machine, gpuKind, cpuKind string
	nicRates                  []string
	merge                     string
}

func (f *machineFlags) register(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.machine, "machine", defaultMachine, "a built-in machine (tutti topo list), an NCCL topology FILE.xml, the output of nvidia-smi topo -m in FILE.txt, or live: this host; or several, with their numbers in the place of --nodes, as in dgx-h100:6,slow.xml:2")
	flags.StringSliceVar(&f.nicRates, "nic-rate", nil, "FILE.txt, or an XML of PCI devices alone: the NICs' rate, as in 400 Gb/s, or rates by name, as in mlx5_ib*=400,mlx5_eth*=25; others are left out")
	flags.StringVar(&f.gpuKind, "gpu-kind", "", "FILE.txt, or an XML of PCI devices alone: what the GPUs are: "+strings.Join(smi.GPUs(), ", ")+" (default after their NVLinks)")
	flags.StringVar(&f.cpuKind, "cpu-kind", "", "FILE.txt: what the CPUs are: "+strings.Join(smi.CPUs(), ", ")+" (default what such GPUs come with)")
	flags.StringVar(&f.merge, "net-merge-level", mergeNames[0], "make one of the ports this near each other, as NCCL does (NCCL_NET_MERGE_LEVEL): "+strings.Join(mergeNames, ", "))
	complete(c, "machine", append(topo.Machines(), liveMachine))
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
	if f.machine == liveMachine {
		text, err = live.XML()
		return text, nil, err
	}
	text, err = topo.XML(f.machine)
	if errors.As(err, new(topo.UnknownMachineError)) {
		err = usage(fmt.Errorf("--machine: %w", err))
	}
	if err == nil && c.Flags().Changed("gpu-kind") && !c.Flags().Changed("cpu-kind") {
		return f.template(text)
	}
	for _, flag := range []string{"nic-rate", "cpu-kind"} {
		if c.Flags().Changed(flag) {
			return nil, nil, usage(fmt.Errorf("--%s is for the output of nvidia-smi topo -m: want --machine FILE.txt", flag))
		}
	}
	return text, nil, err
}

// template completes a file of PCI devices.
func (f *machineFlags) template(text []byte) (complete []byte, assumed []string, err error) {
	h := topo.Hardware{NIC: 10 * units.Gbps} // as NCCL takes it for unknown NICs
	var known bool
	if h.SM, h.NVLinks, known = smi.GPU(f.gpuKind); !known {
		return nil, nil, usage(fmt.Errorf("--gpu-kind %s: want one of %s", f.gpuKind, strings.Join(smi.GPUs(), ", ")))
	}
	rates, err := nicRates(f.nicRates)
	if err != nil || len(rates) > 1 || len(rates) == 1 && rates[0].Pattern != "*" {
		return nil, nil, usage(errors.Join(err, errors.New("--nic-rate: a template does not name its NICs: want one rate")))
	}
	if len(rates) == 1 {
		h.NIC = rates[0].Rate
	}
	return topo.Complete(text, f.machine, h)
}

// matrix reads the output of nvidia-smi topo -m.
func (f *machineFlags) matrix() (text []byte, assumed []string, err error) {
	o := smi.Options{GPU: f.gpuKind, CPU: f.cpuKind}
	for _, kind := range []struct {
		flag, value string
		known       []string
	}{{"gpu-kind", f.gpuKind, smi.GPUs()}, {"cpu-kind", f.cpuKind, smi.CPUs()}} {
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
