package main

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"tutti/topo"
	"tutti/topo/fabric"
)

// machineCount is a number of machines, as in dgx-h100:6.
type machineCount struct {
	name  string
	nodes int
}

var machineCountForm = regexp.MustCompile(`^(.+):([0-9]{1,6})$`)

// mixture reads --machine where it says how many machines there are of which:
// NAME:N,…; it is nil where it names one machine, which --nodes counts.
func (f *machineFlags) mixture() (list []machineCount, sum int, err error) {
	items := strings.Split(f.machine, ",")
	for _, item := range items {
		form := machineCountForm.FindStringSubmatch(item)
		if form == nil && len(items) == 1 {
			return nil, 0, nil
		}
		if form == nil {
			return nil, 0, usage(fmt.Errorf("--machine %s: %q does not say how many: want NAME:N,…, as in dgx-h100:6,slow.xml:2", f.machine, item))
		}
		n, _ := strconv.Atoi(form[2])
		if n < 1 || n > topo.MaxNodes {
			return nil, 0, usage(fmt.Errorf("--machine %s: %d nodes: want 1 to %d", f.machine, n, topo.MaxNodes))
		}
		list, sum = append(list, machineCount{form[1], n}), sum+n
	}
	return list, sum, nil
}

// joinMixed is join for a mixture.
func (f machineFlags) joinMixed(c *cobra.Command, spec *fabric.Spec, list []machineCount, gpus int, change func(*fabric.Spec, []byte) ([]byte, error)) (*clusterView, error) {
	v, known := &clusterView{}, map[string]*topo.System{}
	var changed fabric.Spec
	var parts []topo.Part
	for _, m := range list {
		if known[m.name] == nil {
			f.machine = m.name
			text, assumed, err := f.xml(c)
			if err != nil {
				return nil, err
			}
			if changed = *spec; change != nil { // for each machine anew
				if text, err = change(&changed, text); err != nil {
					return nil, err
				}
			}
			if known[m.name], err = topo.ReadXML(bytes.NewReader(text), m.name); err != nil {
				return nil, err
			}
			v.xml, v.assumed = text, append(v.assumed, assumed...)
		}
		parts = append(parts, topo.Part{Machine: known[m.name], Nodes: m.nodes})
	}
	var err error
	if v.Cluster, err = changed.Mixed(parts, gpus); err != nil {
		return nil, usage(err)
	}
	return v, nil
}

// noteMixed says what a model takes the machines of a mixture for.
func noteMixed(w io.Writer, c *topo.Cluster) {
	if c.Mixed() {
		fmt.Fprintf(w, "%s: every machine counts as what all have at the least; tutti sim has each at its own speed\n", c.Machine.Name)
	}
}
