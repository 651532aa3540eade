package main

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"tutti/model/units"
	"tutti/topo"
	"tutti/topo/fabric"
	"tutti/topo/xmltree"
)

// changeFlags are the flags that say in what a cluster differs from its machine
// file and its fabric file.
type changeFlags struct {
	netRate          string
	without          []string
	oversubscription string
	routing          string
	sharing          string
}

func (f *changeFlags) register(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.netRate, "net-rate", "", "all NICs at this rate, as in 800 Gb/s, in the place of the machine's")
	flags.StringSliceVar(&f.without, "without", nil, "NICs that every machine does without, as in mlx5_3: a failed rail")
	flags.StringVar(&f.oversubscription, "oversubscription", "", "of the fabric's topmost cables, as in 2:1, in the place of the fabric's")
	flags.StringVar(&f.routing, "routing", "", "adaptive or ecmp, in the place of the fabric's")
	complete(c, "routing", []string{topo.Adaptive.String(), topo.ECMP.String()})
	flags.StringVar(&f.sharing, "sharing", "", "of all links but NVLinks, in the place of the fabric's: fair, or fifo, item after item")
	complete(c, "sharing", []string{topo.Fair.String(), topo.FIFO.String()})
}

// change applies the changes to a fabric and to a machine's XML, which it
// returns. Its errors are of usage, but for XML that is none.
func (f *changeFlags) change(spec *fabric.Spec, machine []byte) ([]byte, error) {
	if err := f.changeFabric(&spec.Fabric); err != nil {
		return nil, usage(err)
	}
	if f.netRate == "" && len(f.without) == 0 {
		return machine, nil
	}
	root, err := xmltree.Parse(bytes.NewReader(machine), "machine", "topology", "system")
	if err != nil {
		return machine, nil // whoever reads it tells what is wrong, with the file's name
	}
	if err := f.changeNICs(root); err != nil {
		return nil, usage(err)
	}
	var text bytes.Buffer
	err = root.Write(&text)
	return text.Bytes(), err
}

func (f *changeFlags) changeFabric(to *topo.Fabric) error {
	if f.oversubscription != "" {
		value, err := strconv.ParseFloat(strings.TrimSuffix(f.oversubscription, ":1"), 64)
		if err != nil || !(value >= 0.01 && value <= 1000) {
			return fmt.Errorf("--oversubscription %s: want 0.01:1 to 1000:1, such as 2:1", f.oversubscription)
		}
		top := len(to.Levels) - 1
		if top == 0 {
			return fmt.Errorf("--oversubscription %s: fabric %s has one level of switches: want one with two", f.oversubscription, to.Name)
		}
		to.Levels[top].Oversubscription, to.Levels[top].Rate = value, 0
		to.Name += fmt.Sprintf(" %g:1", value)
	}
	if f.routing != "" {
		if err := setWord(&to.Routing, "routing", f.routing, topo.Adaptive, topo.ECMP); err != nil {
			return err
		}
		to.Name += " " + f.routing
	}
	if f.sharing != "" {
		if err := setWord(&to.Sharing, "sharing", f.sharing, topo.Fair, topo.FIFO); err != nil {
			return err
		}
		to.Name += " " + f.sharing
	}
	return nil
}

// setWord sets one of two values by a flag's word for it.
func setWord[T fmt.Stringer](to *T, flag, word string, a, b T) error {
	switch word {
	case a.String():
		*to = a
	case b.String():
		*to = b
	default:
		return fmt.Errorf("--%s %s: want %v or %v", flag, word, a, b)
	}
	return nil
}

// changeNICs sets the rate of all NETs, and takes some away.
func (f *changeFlags) changeNICs(machine *xmltree.Element) error {
	var names []string
	machine.Each(func(e *xmltree.Element) {
		if name, ok := e.Attr("name"); ok && e.Name == "net" {
			names = append(names, name)
		}
	})
	if f.netRate != "" {
		rates, err := nicRates([]string{f.netRate})
		if err != nil {
			return fmt.Errorf("--net-rate: %w", err)
		}
		machine.Each(func(e *xmltree.Element) {
			if e.Name == "net" {
				set(e, "speed", strconv.FormatInt(int64(rates[0].Rate/units.Mbps), 10))
			}
		})
	}
	for _, pattern := range f.without {
		match := func(name string) bool {
			ok, _ := path.Match(pattern, name)
			return ok
		}
		if !slices.ContainsFunc(names, match) {
			return fmt.Errorf("--without %s: the machine has no such NIC: want some of %s", pattern, strings.Join(names, ", "))
		}
		if names = slices.DeleteFunc(names, match); len(names) == 0 {
			return errors.New("--without leaves no NIC: want one at least")
		}
		machine.Each(func(e *xmltree.Element) {
			e.Children = slices.DeleteFunc(e.Children, func(child *xmltree.Element) bool {
				name, _ := child.Attr("name")
				return child.Name == "net" && match(name)
			})
		})
	}
	return nil
}

// set gives an element an attribute, in the place of the one of that name.
func set(e *xmltree.Element, name, value string) {
	for i := range e.Attrs {
		if e.Attrs[i].Name.Local == name {
			e.Attrs[i].Value = value
			return
		}
	}
	e.Attrs = append(e.Attrs, xmltree.New("", name, value).Attrs...)
}
