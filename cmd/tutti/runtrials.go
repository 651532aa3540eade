package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"tutti/experiments/sweep"
	"tutti/model"
	"tutti/model/schedule"
	"tutti/model/schedule/file"
	"tutti/model/units"
	"tutti/topo"
)

// trial is a call to measure.
type trial struct {
	size  units.Bytes
	ranks int
	maker *sweep.Maker
	// forms are those that the call has: false for out of place, true for in
	// place.
	forms []bool
	build func(backend string, inPlace bool) (schedule.Schedule, error)
}

// trials lists what to measure, in the order of nccl-tests: by datatype,
// operation and root, and there by algorithm, protocol and size. What the cluster
// cannot run is left out with a note.
func (f *runFlags) trials(c *cobra.Command, backends []string) (machine string, trials []trial, notes []string, err error) {
	if f.file != "" {
		s, err := file.Read(f.file)
		if err == nil {
			err = verify(s)
		}
		if err != nil {
			return "", nil, nil, fmt.Errorf("--schedule: %w", err)
		}
		t := s.Task()
		return filepath.Base(f.file), []trial{{
			size: t.Bytes(), ranks: t.Ranks, forms: []bool{t.InPlace},
			build: func(string, bool) (schedule.Schedule, error) { return s, nil },
		}}, nil, nil
	}
	tasks, err := f.tasks()
	if err != nil {
		return "", nil, nil, usage(err)
	}
	cluster, err := f.cluster()
	if err != nil {
		return "", nil, nil, err
	}
	roots, err := f.roots(tasks[0].Collective, cluster)
	if err != nil {
		return "", nil, nil, usage(err)
	}
	var named []model.Algorithm
	for _, t := range tasks {
		named = append(named, t.Algorithm)
	}
	maker := sweep.NewMaker(cluster, named...)
	for _, t := range tasks {
		sizes, err := f.sizes.sizes(c, t.Datatype)
		if err != nil {
			return "", nil, nil, usage(err)
		}
		forms := []bool{false}
		if t.CanOverlap() {
			forms = []bool{false, true}
		}
		for _, root := range roots {
			for _, size := range sizes {
				build := func(backend string, inPlace bool) (schedule.Schedule, error) {
					call := suit(backend, t, size, cluster.Ranks())
					call.Root, call.InPlace = root, inPlace
					return maker.Schedule(call, size)
				}
				if _, err := build(backends[0], false); err == nil {
					trials = append(trials, trial{size, cluster.Ranks(), maker, forms, build})
				} else if note := err.Error(); !slices.Contains(notes, note) {
					notes = append(notes, note)
				}
			}
		}
	}
	if len(trials) == 0 {
		return "", nil, nil, usage(fmt.Errorf("nothing to run on %s: %s", cluster.Title(), strings.Join(notes, "; ")))
	}
	if slices.Contains(f.algorithms, "all") {
		notes = nil // all that can run were asked for
	}
	return cluster.Machine.Name, trials, notes, nil
}

// tasks lists the combinations of datatype, operation, algorithm and protocol.
func (f *runFlags) tasks() (tasks []schedule.Task, err error) {
	collective, err := model.ParseCollective(f.collective)
	if err != nil {
		return nil, fmt.Errorf("--coll: %w", err)
	}
	datatypes, err := someOrAll(f.datatypes, model.ParseDatatype, model.Datatypes())
	if err != nil {
		return nil, fmt.Errorf("-d: %w", err)
	}
	ops, err := someOrAll(f.ops, model.ParseRedop, model.Redops())
	if err != nil {
		return nil, fmt.Errorf("-o: %w", err)
	}
	if !collective.Reduces() {
		ops = ops[:1]
	}
	algorithms, err := choices(f.algorithms, model.Algorithms(), model.ParseAlgorithm)
	if err != nil {
		return nil, fmt.Errorf("--algo: %w", err)
	}
	protocols, err := choices(f.protocols, model.Protocols(), model.ParseProtocol)
	if err != nil {
		return nil, fmt.Errorf("--proto: %w", err)
	}
	if algorithms == nil {
		algorithms = []model.Algorithm{sweep.Auto}
	}
	if protocols == nil {
		protocols = []model.Protocol{sweep.Auto}
	}
	for _, d := range datatypes {
		for _, o := range ops {
			for _, a := range algorithms {
				for _, p := range protocols {
					tasks = append(tasks, schedule.Task{Collective: collective, Datatype: d, Redop: o, Algorithm: a, Protocol: p, Channels: f.channels})
				}
			}
		}
	}
	return tasks, nil
}

// someOrAll reads names, or all.
func someOrAll[T comparable](words []string, parse func(string) (T, error), all []T) (list []T, err error) {
	if slices.Contains(words, "all") {
		if len(words) > 1 {
			return nil, fmt.Errorf("%s: want all alone, or some of %v", strings.Join(words, ","), all)
		}
		return all, nil
	}
	if len(words) == 0 {
		words = []string{""}
	}
	for _, word := range words {
		v, err := parse(word)
		if err != nil {
			return nil, fmt.Errorf("%w, or all", err)
		}
		if !slices.Contains(list, v) {
			list = append(list, v)
		}
	}
	return list, nil
}

// roots lists the ranks that are to be the root.
func (f *runFlags) roots(c model.Collective, cluster *topo.Cluster) (roots []int, err error) {
	if f.root == "all" {
		if !c.Rooted() {
			return []int{0}, nil
		}
		for rank := range cluster.Ranks() {
			roots = append(roots, rank)
		}
		return roots, nil
	}
	root, err := strconv.Atoi(f.root)
	if err != nil || root < 0 || root >= cluster.Ranks() {
		return nil, fmt.Errorf("-r %s: want a rank, 0 to %d, or all", f.root, cluster.Ranks()-1)
	}
	return []int{root}, nil
}
