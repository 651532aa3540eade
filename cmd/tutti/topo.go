package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tutti/topo"
	"tutti/topo/draw"
	"tutti/topo/fabric"
)

func newTopo() *cobra.Command {
	c := &cobra.Command{
		Use:   "topo",
		Short: "List, describe, draw and convert machines and cluster fabrics",
		Args:  arguments(cobra.NoArgs),
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newTopoList(), newTopoShow(), newTopoFabric())
	return c
}

// formFlags choose between a table, CSV and JSON.
type formFlags struct{ csv, json bool }

func (f *formFlags) register(c *cobra.Command) {
	c.Flags().BoolVar(&f.csv, "csv", false, "write CSV instead of the table")
	c.Flags().BoolVar(&f.json, "json", false, "write JSON instead of the table")
}

func newTopoList() *cobra.Command {
	var form formFlags
	c := &cobra.Command{
		Use:   "list",
		Short: "List the built-in machines",
		Example: `  tutti topo list
  tutti topo list --csv`,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := exclusive(c, "csv", "json"); err != nil {
				return usage(err)
			}
			list, err := machineList()
			if err != nil {
				return err
			}
			return output(c.OutOrStdout(), func(w io.Writer) error {
				if form.json {
					return writeJSON(w, struct {
						Schema   string        `json:"schema"`
						Machines []machineInfo `json:"machines"`
					}{"tutti.machines/1", list})
				}
				return machineTable(list).write(w, form.csv)
			})
		},
	}
	form.register(c)
	return c
}

func newTopoFabric() *cobra.Command {
	var form formFlags
	c := &cobra.Command{
		Use:   "fabric [NAME]",
		Short: "List the built-in fabrics, or print one as YAML",
		Long:  "List the built-in fabrics, or print the YAML of one to start from.\n\n" + fabric.Schema,
		Example: `  tutti topo fabric
  tutti topo fabric superpod-4su > mine.yaml`,
		Args:              arguments(cobra.MaximumNArgs(1)),
		ValidArgsFunction: cobra.FixedCompletions(fabric.Names(), cobra.ShellCompDirectiveNoFileComp),
		RunE: func(c *cobra.Command, args []string) error {
			if err := exclusive(c, "csv", "json"); err != nil {
				return usage(err)
			}
			if len(args) == 1 {
				text, err := fabric.YAML(args[0])
				if errors.As(err, new(fabric.UnknownError)) {
					err = usage(err)
				}
				if err != nil {
					return err
				}
				return output(c.OutOrStdout(), func(w io.Writer) error { _, err := w.Write(text); return err })
			}
			list, err := fabricList()
			if err != nil {
				return err
			}
			return output(c.OutOrStdout(), func(w io.Writer) error {
				if form.json {
					return writeJSON(w, struct {
						Schema  string       `json:"schema"`
						Fabrics []fabricInfo `json:"fabrics"`
					}{"tutti.fabrics/1", list})
				}
				return fabricTable(list).write(w, form.csv)
			})
		},
	}
	form.register(c)
	return c
}

// topoShow are the flags of tutti topo show.
type topoShow struct {
	clusterFlags
	json             bool
	format, svg, xml string
}

func newTopoShow() *cobra.Command {
	var f topoShow
	c := &cobra.Command{
		Use:   "show",
		Short: "Describe a machine or a cluster, draw it, write its NCCL topology XML",
		Long: `Describe a machine as NCCL sees it: its GPUs, NICs and the paths between them. With
several nodes, describe the switches and cables that join them, too.`,
		Example: `  tutti topo show --machine dgx-1v --svg dgx-1v.svg
  tutti topo show --machine matrix.txt --nic-rate 'mlx5_ib*=400' --xml machine.xml
  tutti topo show --machine my-topology.xml --nodes 2 --format nccl
  tutti topo show --fabric superpod-16su --svg cluster.svg`,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c) },
	}
	f.register(c)
	c.Flags().StringVar(&f.format, "format", formatTable, "table; nccl, as NCCL logs systems and paths with NCCL_DEBUG_SUBSYS=GRAPH; json")
	complete(c, "format", topoFormats)
	c.Flags().BoolVar(&f.json, "json", false, "the same as --format json")
	c.Flags().StringVar(&f.svg, "svg", "", "draw the machine, or the cluster where there are several, into this file")
	c.Flags().StringVar(&f.xml, "xml", "", "write the machine's NCCL topology XML into this file")
	return c
}

// topoFormats are the forms in which a machine is described.
var topoFormats = []string{formatTable, formatNCCL, formatJSON}

func (f *topoShow) run(c *cobra.Command) error {
	if err := exclusive(c, "json", "format"); err != nil {
		return usage(err)
	}
	if f.json {
		f.format = formatJSON
	}
	if !slices.Contains(topoFormats, f.format) {
		return usage(fmt.Errorf("--format %s: want one of %s", f.format, strings.Join(topoFormats, ", ")))
	}
	v, err := f.view()
	if err != nil {
		return err
	}
	if f.xml != "" && v.Mixed() {
		return usage(errors.New("--xml: want one machine: a mixture has no topology of its own"))
	}
	if f.xml != "" {
		if err := writeFile(f.xml, func(w io.Writer) error { _, err := w.Write(v.xml); return err }); err != nil {
			return err
		}
	}
	if f.svg != "" {
		if err := writeFile(f.svg, func(w io.Writer) error { return draw.Cluster(w, v.Cluster) }); err != nil {
			return err
		}
	}
	return output(c.OutOrStdout(), func(w io.Writer) error {
		switch f.format {
		case formatJSON:
			return writeJSON(w, describe(v))
		case formatNCCL:
			for kind, m := range v.Machines() {
				if v.Mixed() {
					fmt.Fprintf(w, "# %s\n", m.Name)
				}
				if err := topo.Dump(w, m.Restrict(v.AllOf(kind).RanksPerNode(), v.Nodes > 1)); err != nil {
					return err
				}
			}
			return nil
		default:
			return v.write(w)
		}
	})
}
