package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tutti/experiments/figure"
	"tutti/experiments/rows"
	"tutti/experiments/sweep"
	"tutti/model"
	"tutti/topo"
	"tutti/topo/fabric"
)

// whatifFlags are the flags of tutti whatif, as they were given.
type whatifFlags struct {
	studyFlags
	workFlags
	outputFlags
	against []string
}

// whatifNodes is the cluster size when neither the user nor the fabric says one:
// four leaves of a classic fat tree, so that fabrics differ.
const whatifNodes = 16

func newWhatif() *cobra.Command {
	var f whatifFlags
	c := &cobra.Command{
		Use:   "whatif",
		Short: "Compare a collective's time under two settings or more, side by side",
		Long: `Simulate a collective under several settings, and print their times side by side
with the ratio of each to the first: below 1 is faster.

The flags of tutti sim are the first setting. Each --against is another, which
differs from the first in the flags that it names: ` + strings.Join(settable, ", ") + `.
A list of fabrics is short for one --against fabric=… each.`,
		Example: `  tutti whatif --nodes 64 --fabric rail-optimised,fat-tree-2to1
  tutti whatif --nodes 32 --against oversubscription=2:1 --against oversubscription=4:1
  tutti whatif --nodes 8 --net-rate 400 --against net-rate=200 --against net-rate=800
  tutti whatif --nodes 4 --against without=mlx5_3 --against "fault=link=node 3 NET mlx5_3,rate=0.5"
  tutti whatif --nodes 8 --coll alltoall --against machine=dgx-h200,fabric=fat-tree,routing=adaptive
  tutti whatif --nodes 8 --against machine=dgx-h100:7,slow.xml:1`,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c) },
	}
	f.studyFlags.register(c)
	f.workFlags.register(c)
	f.outputFlags.register(c, noPlot)
	flags := c.Flags()
	flags.Lookup("nodes").Usage += " (default as the fabric says, or 16)"
	flags.Lookup("algo").Usage += " (default auto)"
	flags.StringArrayVar(&f.against, "against", nil, "another setting: flags of this command that differ, as in fabric=fat-tree,nodes=32")
	return c
}

// setting is one side of a comparison.
type setting struct {
	// name says in what it differs.
	name  string
	study sweep.Study
	jobs  []sweep.Job
	rows  map[sweep.Place]rows.Row
}

func (f *whatifFlags) run(c *cobra.Command) error {
	if err := f.check(c); err != nil {
		return err
	}
	settings, err := f.settings(c)
	if err != nil {
		return err
	}
	var jobs []sweep.Job
	for i := range settings {
		s := &settings[i]
		var notes []string
		if s.jobs, notes, err = s.study.Jobs(); err != nil {
			return usage(fmt.Errorf("%s: %w", s.name, err))
		}
		if !slices.Contains(f.algorithms, "all") {
			for _, note := range notes {
				fmt.Fprintf(f.notes(c), "left out: %s: %s\n", s.name, note)
			}
		}
		jobs = append(jobs, s.jobs...)
	}
	done, failed := f.simulate(c, jobs, f.notes(c))
	first := 0
	for i := range settings {
		s := &settings[i]
		s.rows = map[sweep.Place]rows.Row{}
		for _, d := range done {
			if at := d.Job - first; at >= 0 && at < len(s.jobs) {
				s.rows[s.jobs[at].Place] = d.Row
			}
		}
		first += len(s.jobs)
	}
	if failed != nil {
		f.plot = noPlot
	}
	if len(done) == 0 {
		return failed
	}
	table := comparison{settings, places(settings)}
	write := table.writeTable
	if f.csv {
		write = table.writeCSV
	} else if f.json {
		write = table.writeJSON
	}
	draw := func() error {
		return figure.WriteLines(f.plot, table.title(), table.lines(f.axis(sweep.Rows(done))), f.axis(sweep.Rows(done)))
	}
	return errors.Join(f.tell(c, write, draw), failed)
}

// settings reads the flags.
func (f *whatifFlags) settings(c *cobra.Command) (settings []setting, err error) {
	against := f.against
	for _, name := range f.fabrics[min(1, len(f.fabrics)):] {
		against = append(against, "fabric="+name)
	}
	if len(against) == 0 {
		return nil, usage(errors.New("nothing to compare with: want --against FLAG=VALUE,…, or a list of fabrics"))
	}
	sets := [][]assignment{nil}
	var varied []string
	for _, text := range against {
		set, err := assignments(text)
		if err != nil {
			return nil, usage(fmt.Errorf("--against %s: %w", text, err))
		}
		for _, a := range set {
			if !slices.Contains(varied, a.flag) {
				varied = append(varied, a.flag)
			}
		}
		sets = append(sets, set)
	}
	for i, set := range sets {
		s, err := f.setting(c, set, varied)
		if err != nil && i > 0 {
			err = fmt.Errorf("--against %s: %w", against[i-1], err)
		}
		if err != nil {
			return nil, err
		}
		settings = append(settings, s)
	}
	return settings, nil
}

// setting returns the study that the flags mean with some of them set otherwise,
// and names it by those that vary.
func (f *whatifFlags) setting(c *cobra.Command, set []assignment, varied []string) (s setting, err error) {
	own := &cobra.Command{Use: c.Use}
	var study studyFlags
	study.register(own)
	c.Flags().Visit(func(given *pflag.Flag) {
		flag := own.Flags().Lookup(given.Name)
		if flag == nil {
			return
		}
		if list, ok := given.Value.(pflag.SliceValue); ok {
			err = errors.Join(err, flag.Value.(pflag.SliceValue).Replace(list.GetSlice()))
			flag.Changed = true
			return
		}
		err = errors.Join(err, own.Flags().Set(given.Name, given.Value.String()))
	})
	if err != nil {
		return s, err
	}
	study.fabrics = study.fabrics[:min(1, len(study.fabrics))]
	for _, a := range set {
		if err := own.Flags().Set(a.flag, a.value); err != nil {
			return s, usage(err)
		}
	}
	var names []string
	for _, flag := range varied {
		value := own.Flags().Lookup(flag).Value.String()
		if list, ok := own.Flags().Lookup(flag).Value.(pflag.SliceValue); ok {
			value = strings.Join(list.GetSlice(), ",")
		}
		if value == "" || value == "0" {
			value = map[bool]string{true: "none", false: "as it is"}[flag == "without" || flag == "fault"]
		}
		names = append(names, flag+" "+value)
	}
	s.name = strings.Join(names, ", ")
	if len(study.fabrics) != 1 {
		return s, usage(errors.New("want one fabric in a setting, and an --against for each further one"))
	}
	mixture, _ := topo.ParseMixture(study.machine) // whoever joins it tells what is wrong
	if spec, err := fabric.Open(study.fabrics[0]); err == nil && spec.Nodes == 0 && !own.Flags().Changed("nodes") && mixture == nil {
		study.nodes, own.Flags().Lookup("nodes").Changed = []int{whatifNodes}, true
	}
	s.study, err = study.study(own, nil, func(model.Collective) []model.Algorithm { return nil })
	return s, err
}
