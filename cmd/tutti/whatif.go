package main

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
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

// settable are the flags that --against can set.
var settable = []string{
	"machine", "fabric", "nodes", "gpus", "net-rate", "without", "oversubscription", "routing", "sharing",
	"profile", "algo", "proto", "channels", "fault",
	"straggler", "jitter", "seed", "seeds", "nic", "queue-pairs", "gdr",
}

// parts are the keys that follow in the values of flags that are pairs themselves.
var parts = map[string][]string{"fault": {"rate", "at"}, "straggler": {"delay", "slow"}}

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

// assignment is a flag and what it is set to.
type assignment struct{ flag, value string }

// assignments reads FLAG=VALUE,…; a value may be a list.
func assignments(text string) (set []assignment, err error) {
	for _, part := range strings.Split(text, ",") {
		flag, value, found := strings.Cut(part, "=")
		switch {
		case found && slices.ContainsFunc(set, func(a assignment) bool { return a.flag == flag }):
			return nil, fmt.Errorf("%s stands there twice", flag)
		case found && slices.Contains(settable, flag):
			set = append(set, assignment{flag, value})
		case len(set) > 0 && slices.Contains(parts[set[len(set)-1].flag], flag):
			set[len(set)-1].value += "," + part
		case found || len(set) == 0:
			return nil, fmt.Errorf("%q is no setting: want FLAG=VALUE with one of %s", part, strings.Join(settable, ", "))
		default:
			set[len(set)-1].value += "," + part
		}
	}
	return set, nil
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

// comparison is what several settings have for the same cases.
type comparison struct {
	settings []setting
	places   []sweep.Place
}

// places lists the cases that some setting has a row of.
func places(settings []setting) (list []sweep.Place) {
	seen := map[sweep.Place]bool{}
	for _, s := range settings {
		for _, j := range s.jobs {
			if _, done := s.rows[j.Place]; done && !seen[j.Place] {
				seen[j.Place] = true
				list = append(list, j.Place)
			}
		}
	}
	slices.SortStableFunc(list, sweep.Place.Compare)
	return list
}

// letter is the short name of a setting in the table.
func letter(i int) string {
	if i < 26 {
		return string(rune('A' + i))
	}
	return "S" + strconv.Itoa(i+1)
}

// ratio is the time of a setting over that of the first.
func (t comparison) ratio(i int, at sweep.Place) (float64, bool) {
	first, ok1 := t.settings[0].rows[at]
	r, ok2 := t.settings[i].rows[at]
	return float64(r.Time) / float64(max(1, first.Time)), ok1 && ok2
}

// writeTable writes a line for each case, below what the letters mean.
func (t comparison) writeTable(w io.Writer) error {
	var out table
	out.header = []string{"ranks", "size(B)"}
	for i, s := range t.settings {
		if _, err := fmt.Fprintf(w, "# %s: %s\n", letter(i), s.name); err != nil {
			return err
		}
		out.header = append(out.header, letter(i)+" by", letter(i)+" time(us)")
		if i > 0 {
			out.header = append(out.header, letter(i)+"/A")
		}
	}
	for _, at := range t.places {
		var cells, ranks, sizes []string
		for i, s := range t.settings {
			r, ok := s.rows[at]
			if !ok {
				cells = append(cells, none, none)
			} else {
				cells = append(cells, fmt.Sprintf("%v/%v", r.Algorithm, r.Protocol), fmt.Sprintf("%.2f", r.Time.Microseconds()))
				ranks = addOnce(ranks, strconv.Itoa(r.Ranks))
				sizes = addOnce(sizes, strconv.FormatInt(int64(r.Bytes), 10))
			}
			if ratio, ok := t.ratio(i, at); ok && i > 0 {
				cells = append(cells, fmt.Sprintf("%.3f", ratio))
			} else if i > 0 {
				cells = append(cells, none)
			}
		}
		out.add(append([]string{strings.Join(ranks, "/"), strings.Join(sizes, "/")}, cells...)...)
	}
	return out.write(w, false)
}

func addOnce(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// writeCSV writes result rows, before each the setting and its time over that of
// the first.
func (t comparison) writeCSV(w io.Writer) error {
	var list []rows.Row
	var before [][]string
	for _, at := range t.places {
		for i, s := range t.settings {
			if r, ok := s.rows[at]; ok {
				text := ""
				if ratio, ok := t.ratio(i, at); ok {
					text = fmt.Sprintf("%.4f", ratio)
				}
				list, before = append(list, r), append(before, []string{s.name, text})
			}
		}
	}
	var text bytes.Buffer
	if err := rows.WriteCSV(&text, list); err != nil {
		return err
	}
	records, err := csv.NewReader(&text).ReadAll()
	if err != nil {
		return err
	}
	for i, head := range append([][]string{{"setting", "time_ratio"}}, before...) {
		records[i] = append(head, records[i]...)
	}
	return csv.NewWriter(w).WriteAll(records)
}

// writeJSON writes for each setting its rows and their ratios, case by case.
func (t comparison) writeJSON(w io.Writer) error {
	type side struct {
		Name   string       `json:"name"`
		Ratios []*float64   `json:"time_ratio"`
		Rows   []*rows.JSON `json:"rows"`
	}
	var sides []side
	for i, s := range t.settings {
		one := side{Name: s.name}
		for _, at := range t.places {
			r, ok := s.rows[at]
			if !ok {
				one.Ratios, one.Rows = append(one.Ratios, nil), append(one.Rows, nil)
				continue
			}
			var ratio *float64
			if v, ok := t.ratio(i, at); ok {
				ratio = &v
			}
			row := r.JSON()
			one.Ratios, one.Rows = append(one.Ratios, ratio), append(one.Rows, &row)
		}
		sides = append(sides, one)
	}
	return writeJSON(w, struct {
		Schema   string `json:"schema"`
		Settings []side `json:"settings"`
	}{"tutti.whatif/1", sides})
}

// lines sorts the rows into the lines of a figure: one for each setting, in
// panels by whatever else there are several of.
func (t comparison) lines(x string) (lines []figure.Line) {
	for _, at := range t.places {
		for _, s := range t.settings {
			r, ok := s.rows[at]
			if !ok {
				continue
			}
			study := s.study
			var words []string
			if x == figure.Size && len(study.Clusters) > 1 {
				words = append(words, fmt.Sprintf("%d GPUs", r.Ranks))
			}
			if x == figure.Ranks && len(study.Sizes) > 1 {
				words = append(words, r.Bytes.String())
			}
			if len(study.Algorithms) > 1 {
				words = append(words, r.Algorithm.String())
			}
			if len(study.Protocols) > 1 {
				words = append(words, r.Protocol.String())
			}
			if len(study.Channels) > 1 {
				words = append(words, fmt.Sprintf("%d channels", r.Channels))
			}
			panel := strings.Join(words, " ")
			i := slices.IndexFunc(lines, func(l figure.Line) bool { return l.Panel == panel && l.Name == s.name })
			if i < 0 {
				i = len(lines)
				lines = append(lines, figure.Line{Panel: panel, Name: s.name})
			}
			lines[i].Rows = append(lines[i].Rows, r)
		}
	}
	return lines
}

// title says what all settings have in common.
func (t comparison) title() string {
	study := t.settings[0].study
	title := study.Collective.String()
	if len(study.Sizes) == 1 {
		title += " of " + study.Sizes[0].String()
	}
	if len(study.Clusters) == 1 {
		title += fmt.Sprintf(" on %d GPUs of %s", study.Clusters[0].Ranks(), study.Clusters[0].Machine.Name)
	}
	return title + ", simulated"
}
