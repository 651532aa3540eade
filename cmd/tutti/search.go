package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tutti/topo"
	"tutti/topo/search"
)

// searchFlags are the flags of tutti search, as they were given.
type searchFlags struct {
	clusterFlags
	nvls, collnet       bool
	format, ranks       string
	json                bool
	graphFile, dumpFile string
	svg                 string
	env                 []string
}

// The forms in which graphs are told.
const (
	formatTable = "table"
	formatNCCL  = "nccl"
	formatXML   = "xml"
	formatJSON  = "json"
)

var searchFormats = []string{formatTable, formatNCCL, formatXML, formatJSON}

func newSearch() *cobra.Command {
	var f searchFlags
	c := &cobra.Command{
		Use:   "search",
		Short: "Find the channels that NCCL finds: rings, trees and heads",
		Long: `Find the channels of a cluster as NCCL 2.28.3 does: in which order rings and
trees pass the GPUs of a machine, by which ports they leave it, which GPUs head
NVLS and CollNet, at which rates, and how many channels collectives and sends
have. Graphs are read and written as NCCL's graph files, so that one found here
can drive NCCL (NCCL_GRAPH_FILE) and the reverse (NCCL_GRAPH_DUMP_FILE).`,
		Example: `  tutti search --nodes 2
  tutti search --machine my-topology.xml --nodes 4 --format nccl --ranks all
  tutti search --nodes 16 --graph-dump-file graph.xml`,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c) },
	}
	f.clusterFlags.register(c)
	flags := c.Flags()
	flags.BoolVar(&f.nvls, "nvls", true, "look for NVLS heads, as NCCL does unless NCCL_NVLS_ENABLE=0")
	flags.BoolVar(&f.collnet, "collnet", false, "look for CollNet graphs, as NCCL does with NCCL_COLLNET_ENABLE=1")
	flags.StringVar(&f.format, "format", formatTable, "table; nccl, as NCCL logs it; xml, as its graph files; json")
	flags.StringVar(&f.ranks, "ranks", "", "all: with the neighbours of every rank in rings and trees (formats nccl and json)")
	flags.BoolVar(&f.json, "json", false, "the same as --format json")
	flags.StringVar(&f.graphFile, "graph-file", "", "take the graphs in this file and search for the others only (NCCL_GRAPH_FILE)")
	flags.StringVar(&f.dumpFile, "graph-dump-file", "", "write the graphs to this file, too (NCCL_GRAPH_DUMP_FILE)")
	flags.StringSliceVar(&f.env, "env", nil, "settings of NCCL that change paths or channels, as in NCCL_CROSS_NIC=0,NCCL_P2P_LEVEL=SYS")
	flags.StringVar(&f.svg, "svg", "", "draw rings and trees over the machine, of a mixture the first, into this file")
	complete(c, "format", searchFormats)
	complete(c, "ranks", []string{"all"})
	return c
}

func (f *searchFlags) run(c *cobra.Command) error {
	if err := f.check(c); err != nil {
		return usage(err)
	}
	cluster, err := f.cluster()
	if err != nil {
		return err
	}
	options := search.Options{NoNVLS: !f.nvls, CollNet: f.collnet}
	if cluster, err = applyEnv(cluster, &options, f.env); err != nil {
		return usage(fmt.Errorf("--env: %w", err))
	}
	if cluster.Mixed() && f.graphFile != "" {
		return usage(errors.New("--graph-file: want one machine: each of a mixture has graphs of its own"))
	}
	if f.graphFile != "" {
		if options.Given, err = readGraphs(f.graphFile, cluster); err != nil {
			return err
		}
	}
	graphs := search.Find(cluster, options)
	if f.dumpFile != "" {
		write := func(w io.Writer) error { return search.WriteXML(w, cluster, graphs) }
		if err := writeFile(f.dumpFile, write); err != nil {
			return err
		}
	}
	if f.svg != "" {
		if err := writeFile(f.svg, func(w io.Writer) error { return drawSearch(w, cluster, graphs) }); err != nil {
			return err
		}
	}
	return output(c.OutOrStdout(), func(w io.Writer) error {
		switch f.format {
		case formatNCCL:
			return search.WriteNCCL(w, cluster, graphs, f.ranks == "all")
		case formatXML:
			return search.WriteXML(w, cluster, graphs)
		case formatJSON:
			return writeJSON(w, newJSONSearch(cluster, graphs, f.ranks == "all"))
		default:
			return writeSearchTable(w, cluster, graphs)
		}
	})
}

// check finds what is wrong with the flags.
func (f *searchFlags) check(c *cobra.Command) error {
	if err := exclusive(c, "json", "format"); err != nil {
		return err
	}
	if f.json {
		f.format = formatJSON
	}
	if !slices.Contains(searchFormats, f.format) {
		return fmt.Errorf("--format %s: want one of %s", f.format, strings.Join(searchFormats, ", "))
	}
	if f.ranks != "" && f.ranks != "all" {
		return fmt.Errorf("--ranks %s: want all", f.ranks)
	}
	if f.ranks != "" && f.format != formatNCCL && f.format != formatJSON {
		return fmt.Errorf("--ranks is for --format %s and --json, not for %s", formatNCCL, f.format)
	}
	return nil
}

// applyEnv gives the machines, or the search, the settings in a list of NAME=VALUE.
func applyEnv(c *topo.Cluster, o *search.Options, env []string) (*topo.Cluster, error) {
	if len(env) == 0 {
		return c, nil
	}
	var settings topo.Settings
	for _, item := range env {
		name, value, _ := strings.Cut(item, "=")
		known, err := settings.Set(name, value)
		if !known {
			known, err = o.Set(name, value)
		}
		if err != nil {
			return nil, err
		}
		if !known {
			return nil, fmt.Errorf("%s is none of NCCL's variables that matter here: want %s", name, strings.Join(append(topo.Variables(), search.Variables()...), ", "))
		}
	}
	return c.With(settings), nil
}

func readGraphs(file string, c *topo.Cluster) (*search.Graphs, error) {
	r, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	g, err := search.ReadXML(r, file, c)
	return &g, err
}
