package main

import (
	"bytes"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"tutti/topo"
	"tutti/topo/fabric"
)

// mixture reads --machine where it says how many machines there are of which; it
// is nil where it names one machine, which --nodes counts.
func (f *machineFlags) mixture() (list []topo.Count, sum int, err error) {
	if list, err = topo.ParseMixture(f.machine); err != nil {
		return nil, 0, usage(fmt.Errorf("--machine %s: %w", f.machine, err))
	}
	for _, item := range list {
		sum += item.Nodes
	}
	return list, sum, nil
}

// joinMixed is join for a mixture.
func (f machineFlags) joinMixed(c *cobra.Command, spec *fabric.Spec, gpus int, change func(*fabric.Spec, []byte) ([]byte, error)) (*clusterView, error) {
	v := &clusterView{}
	changed := *spec
	parts, err := topo.OpenMixture(f.machine, 0, func(name string) (*topo.System, error) {
		f.machine = name
		text, assumed, err := f.xml(c)
		if err != nil {
			return nil, err
		}
		if change != nil {
			changed = *spec // for each machine anew
			if text, err = change(&changed, text); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
		v.xml, v.assumed = text, append(v.assumed, assumed...)
		return topo.ReadXML(bytes.NewReader(text), name)
	})
	if err != nil {
		return nil, err
	}
	if v.Cluster, err = changed.Mixed(parts, gpus); err != nil {
		return nil, usage(err)
	}
	return v, nil
}

// noteMixed says what a model takes the machines of a mixture for.
func noteMixed(w io.Writer, c *topo.Cluster) {
	if c.Mixed() {
		fmt.Fprintf(w, "%s: the model takes the machine that would be slowest if all were like it; tutti sim has each as it is\n", c.Title())
	}
}
