package main

import (
	"bytes"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tutti/experiments/figure"
	"tutti/experiments/winners"
	"tutti/model"
	"tutti/model/schedule"
	"tutti/model/tuning/export"
	"tutti/model/tuning/nccl"
	"tutti/model/units"
	"tutti/topo"
	"tutti/topo/search"
)

// tuneFlags are the flags of tutti tune, as they were given.
type tuneFlags struct {
	clusterFlags
	sizes                   sizeFlags
	as, profile, collective string
	datatype, plot, export  string
	bySize, explain, nvls   bool
	csv, json               bool
	settings                nccl.Settings
}

// models are those that can decide.
var models = []string{"tutti", "nccl"}

// exports are the forms that choices can be written in.
var exports = []string{"nccl-tuner", "env", "mscclpp"}

func newTune() *cobra.Command {
	var f tuneFlags
	c := &cobra.Command{
		Use:   "tune",
		Short: "Say which algorithm and protocol win on a cluster, by size",
		Long: `Say which algorithm and protocol win on a cluster, and from which size on.

By default it is tutti's own model that is asked, with the machine's calibrated
constants; beside the winner stand the second best and what NCCL would choose.
Times are those of calls back to back, as benchmarks measure them: Broadcast and
Reduce, whose ranks do not wait for each other, take longer when called alone.
On one NVSwitch host tutti's own kernels (tutti/...) stand among the ways, as
measured on 2 and 4 GPUs; other numbers follow from what the busiest link carries.
--explain shows what the times are made of. --export writes the winners among
NCCL's algorithms for others:
the file of NCCL's example tuner plugin (nccl-tuner), NCCL_ALGO and NCCL_PROTO
(env), or a table by size with the keys of MSCCL++'s plans (mscclpp).

With --as nccl it is NCCL 2.28.3 that is asked: its table of latencies and
bandwidths, line for line as NCCL_DEBUG_SUBSYS=TUNING logs it, or with --by-size
what it chooses for each size and the times that it predicts, in microseconds.`,
		Example: `  tutti tune --machine dgx-h100 --nodes 4
  tutti tune --nodes 2 --sizes 64K,16M --explain
  tutti tune --nodes 2 --export nccl-tuner > nccl_tuner.conf
  tutti tune --as nccl --machine my-topology.xml --nodes 4`,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c) },
	}
	f.clusterFlags.register(c)
	f.sizes.register(c)
	flags := c.Flags()
	flags.StringVar(&f.as, "as", models[0], "whose model decides: "+strings.Join(models, " or "))
	flags.StringVar(&f.profile, "profile", "", profileUsage)
	flags.StringVar(&f.collective, "coll", model.AllReduce.String(), "the collective")
	flags.StringVarP(&f.datatype, "datatype", "d", model.Float32.String(), "type of the elements")
	flags.BoolVar(&f.explain, "explain", false, "show what each way's time is made of, at the smallest size or at --sizes")
	flags.StringVar(&f.export, "export", "", "write the winners as "+strings.Join(exports, ", "))
	flags.BoolVar(&f.bySize, "by-size", false, "with --as nccl: its choices by size in the place of its table")
	flags.BoolVar(&f.nvls, "nvls", true, "without it, as NCCL with NCCL_NVLS_ENABLE=0")
	flags.BoolVar(&f.settings.CollNet, "collnet", false, "as NCCL with NCCL_COLLNET_ENABLE=1 and a plugin")
	flags.StringVar(&f.settings.Algo, "nccl-algo", "", "as with NCCL_ALGO=LIST, such as ring,tree or ^nvls")
	flags.StringVar(&f.settings.Proto, "nccl-proto", "", "as with NCCL_PROTO=LIST, such as LL,Simple or ^LL128")
	flags.BoolVar(&f.csv, "csv", false, "write CSV instead of the table")
	flags.BoolVar(&f.json, "json", false, "write JSON instead of the table")
	flags.StringVar(&f.plot, "plot", noPlot, "figure of the leading ways with the crossover points: a name ending in .png, .svg or .pdf")
	complete(c, "as", models)
	complete(c, "export", exports)
	return c
}

func (f *tuneFlags) run(c *cobra.Command) error {
	switch {
	case !slices.Contains(models, f.as):
		return usage(fmt.Errorf("--as %s: want %s", f.as, strings.Join(models, " or ")))
	case f.export != "" && !slices.Contains(exports, f.export):
		return usage(fmt.Errorf("--export %s: want one of %s", f.export, strings.Join(exports, ", ")))
	}
	for _, flags := range [][]string{{"csv", "json", "explain", "export"}, {"json", "explain", "export"}, {"explain", "export"}} {
		if err := exclusive(c, flags[0], flags[1:]...); err != nil {
			return usage(err)
		}
	}
	if f.plot != noPlot {
		if err := checkFigure("plot", f.plot); err != nil {
			return err
		}
	}
	t := schedule.Task{Redop: model.Sum}
	var err error
	if t.Collective, err = model.ParseCollective(f.collective); err != nil {
		return usage(fmt.Errorf("--coll: %w", err))
	}
	if t.Datatype, err = model.ParseDatatype(f.datatype); err != nil {
		return usage(fmt.Errorf("-d: %w", err))
	}
	sizes, err := f.sizes.sizes(c, t.Datatype)
	if err != nil {
		return usage(err)
	}
	cluster, err := f.cluster()
	if err != nil {
		return err
	}
	noteMixed(c.ErrOrStderr(), cluster)
	graphs := search.Find(cluster, search.Options{NoNVLS: !f.nvls, CollNet: f.settings.CollNet, SHARP: f.settings.CollNet && f.as == models[0]})
	return output(c.OutOrStdout(), func(w io.Writer) error {
		if f.as == "nccl" {
			return f.asNCCL(w, cluster, graphs, sizes)
		}
		return f.asTutti(w, cluster, graphs, t, sizes)
	})
}

// asNCCL writes NCCL's table or its choices.
func (f *tuneFlags) asNCCL(w io.Writer, cluster *topo.Cluster, graphs search.Graphs, sizes []units.Bytes) error {
	m, err := nccl.New(nccl.Describe(cluster, graphs), f.settings)
	if err != nil {
		return usage(err)
	}
	if !f.bySize {
		return m.WriteTable(w)
	}
	return writeChoices(w, m, sizes)
}

// writeChoices writes a line for each collective: what NCCL chooses from which
// size to which, and its times at both ends.
func writeChoices(w io.Writer, m *nccl.Model, sizes []units.Bytes) error {
	for _, collective := range nccl.Functions() {
		ranges, err := m.Ranges(nccl.Call{Collective: collective, Datatype: model.Float32}, sizes)
		words := make([]string, len(ranges))
		for i, r := range ranges {
			words[i] = r.String()
		}
		if err != nil { // as with --nccl-algo tree, which is for AllReduce alone
			words = []string{err.Error()}
		}
		if _, err := fmt.Fprintf(w, "%13v: %s\n", collective, strings.Join(words, "; ")); err != nil {
			return err
		}
	}
	return nil
}

// asTutti writes the winners, or what their times are made of.
func (f *tuneFlags) asTutti(w io.Writer, cluster *topo.Cluster, graphs search.Graphs, t schedule.Task, sizes []units.Bytes) error {
	p, err := openProfile(f.profile, cluster.Machine)
	if err != nil {
		return err
	}
	study, err := winners.New(cluster, graphs, p, t, f.settings)
	if err != nil {
		return usage(err)
	}
	if f.export != "" {
		if !slices.Contains(nccl.Functions(), t.Collective) {
			return usage(fmt.Errorf("--export %s: NCCL has one way to carry out %v: there is nothing to tell it", f.export, t.Collective))
		}
		study.OnlyNCCL()
	}
	if f.explain {
		if len(f.sizes.list) == 0 {
			sizes = sizes[:1]
		}
		for _, size := range sizes {
			if err := study.Explain(w, size); err != nil {
				return usage(err)
			}
		}
		return nil
	}
	list, err := study.Find(slices.Min(sizes), slices.Max(sizes))
	if err != nil {
		return usage(err)
	}
	if f.plot != noPlot {
		if err := f.draw(study, list, sizes); err != nil {
			return err
		}
	}
	switch {
	case f.export != "":
		entries, err := study.Entries(list)
		if err != nil {
			return err
		}
		return writeExport(w, f.export, entries)
	case f.csv:
		return winners.WriteCSV(w, list)
	case f.json:
		return winners.WriteJSON(w, list)
	default:
		return winners.WriteTable(w, list)
	}
}

// draw makes the figure of the leading ways, with the sizes from which on others win.
func (f *tuneFlags) draw(study *winners.Study, list []winners.Winner, sizes []units.Bytes) error {
	all, err := study.Rows(sizes)
	if err != nil {
		return err
	}
	var crossovers []units.Bytes
	for _, w := range list[1:] {
		crossovers = append(crossovers, w.From)
	}
	return figure.Write(f.plot, all, crossovers...)
}

// writeExport writes entries in a form and makes sure that they read back equal.
func writeExport(w io.Writer, form string, entries []export.Entry) error {
	var text bytes.Buffer
	again := entries
	var err error
	switch form {
	case "nccl-tuner":
		if err = export.WriteTuner(&text, entries); err == nil {
			again, err = export.ReadTuner(bytes.NewReader(text.Bytes()), form)
		}
	case "mscclpp":
		if err = export.WriteTable(&text, entries); err == nil {
			again, err = export.ReadTable(bytes.NewReader(text.Bytes()), form)
		}
	default:
		if err = export.WriteEnvironment(&text, entries); err == nil {
			err = export.CheckEnvironment(bytes.NewReader(text.Bytes()), form, entries)
		}
	}
	if err == nil && !reflect.DeepEqual(entries, again) {
		err = fmt.Errorf("%s does not read back as it was written", form)
	}
	if err != nil {
		return err
	}
	_, err = text.WriteTo(w)
	return err
}
