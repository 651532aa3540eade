package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tutti/experiments/sweep"
	"tutti/model"
	"tutti/model/profile"
	"tutti/topo"
	"tutti/topo/fabric"
	"tutti/topo/search"
)

// studyFlags are the flags that say what to simulate: clusters, calls and the
// ways to carry them out.
type studyFlags struct {
	machineFlags
	changeFlags
	troubleFlags
	nicFlags
	nodes, channels       []int
	gpus, root, seeds     int
	fabrics               []string
	profile               string
	collective            string
	datatype, op          string
	algorithms, protocols []string
	sizes                 sizeFlags
	noSymmetry            bool
}

func (f *studyFlags) register(c *cobra.Command) {
	f.machineFlags.register(c)
	f.changeFlags.register(c)
	f.troubleFlags.register(c)
	f.nicFlags.register(c)
	flags := c.Flags()
	flags.IntSliceVar(&f.nodes, "nodes", nil, "how many machines, as in 1,2,4")
	flags.StringSliceVar(&f.fabrics, "fabric", []string{defaultFabric}, "how the machines are joined: built-in fabrics (tutti topo fabric) or FILE.yaml")
	flags.IntVarP(&f.gpus, "gpus", "g", 0, "use the first N GPUs of each machine (default all)")
	flags.StringVar(&f.profile, "profile", "", "calibrated constants: built-in names and FILE.yaml, laid over each other (default by the GPUs' generation, and ndr-rail)")
	flags.StringVar(&f.collective, "coll", model.AllReduce.String(), "the collective")
	flags.IntVarP(&f.root, "root", "r", 0, "rank that broadcast starts from and reduce ends at")
	flags.StringSliceVar(&f.algorithms, "algo", nil, "algorithms; all that do the collective; or auto, as tuning decides for each size")
	flags.StringSliceVar(&f.protocols, "proto", []string{"auto"}, "ll, ll128, simple; all; or auto, as tuning decides for each size")
	f.sizes.register(c)
	flags.StringVarP(&f.datatype, "datatype", "d", model.Float32.String(), "type of the elements: float, half, bfloat16, int32, …")
	flags.StringVarP(&f.op, "op", "o", model.Sum.String(), "operation: sum, prod, min, max, avg")
	flags.IntSliceVar(&f.channels, "channels", nil, "numbers of channels (default as NCCL chooses)")
	flags.IntVar(&f.seeds, "seeds", 1, "simulate --jitter with as many seeds, from --seed on, and print the median, least and greatest time")
	flags.BoolVar(&f.noSymmetry, "no-symmetry", false, "simulate every worker, even where many do the same")
	complete(c, "fabric", fabric.Names())
	complete(c, "profile", profile.Profiles())
	complete(c, "coll", names(collectives()))
	complete(c, "algo", append([]string{"all", "auto"}, names(model.Algorithms())...))
	complete(c, "proto", append([]string{"all", "auto"}, names(model.Protocols())...))
}

// complete offers the shell the words that a flag takes.
func complete(c *cobra.Command, flag string, words []string) {
	if err := c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveDefault)); err != nil {
		panic(err) // no such flag
	}
}

func names[T fmt.Stringer](values []T) []string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = v.String()
	}
	return words
}

// clusters joins the machines on each of the fabrics. A machine alone needs no
// fabric, and stands there once only. Where neither machines, fabrics nor nodes
// are named, there are the given numbers of nodes.
func (f *studyFlags) clusters(c *cobra.Command, nodes []int) (clusters []*topo.Cluster, err error) {
	switch given := c.Flags().Changed; {
	case given("nodes"):
		nodes = unique(f.nodes)
	case given("machine") || given("fabric"):
		nodes = nil
	}
	alone := map[string]bool{}
	for _, name := range unique(f.fabrics) {
		views, err := f.join(c, name, nodes, f.gpus, f.change)
		if err != nil {
			return nil, err
		}
		for _, v := range views {
			if v.Nodes == 1 {
				if alone[v.Machine.Name] {
					continue
				}
				alone[v.Machine.Name] = true
			}
			clusters = append(clusters, v.Cluster)
		}
	}
	return clusters, nil
}

// study reads the flags; nodes are those of no cluster that is named, and
// algorithms those where none is. Its errors are of usage, but for a file that
// cannot be read.
func (f *studyFlags) study(c *cobra.Command, nodes []int, algorithms func(model.Collective) []model.Algorithm) (s sweep.Study, err error) {
	if err := notEmpty(c, "nodes", "fabric", "algo", "proto", "sizes", "channels", "without"); err != nil {
		return s, usage(err)
	}
	s = sweep.Study{Root: f.root, Channels: unique(f.channels), Seeds: f.seeds}
	if s.Collective, err = model.ParseCollective(f.collective); err != nil {
		return s, usage(fmt.Errorf("--coll: %w", err))
	}
	if s.Datatype, err = model.ParseDatatype(f.datatype); err != nil {
		return s, usage(fmt.Errorf("-d: %w", err))
	}
	if s.Redop, err = model.ParseRedop(f.op); err != nil {
		return s, usage(fmt.Errorf("-o: %w", err))
	}
	if s.Algorithms, err = choices(f.algorithms, model.Algorithms(), model.ParseAlgorithm); err != nil {
		return s, usage(fmt.Errorf("--algo: %w", err))
	}
	if len(f.algorithms) == 0 {
		s.Algorithms = algorithms(s.Collective)
	} else {
		s.Named = s.Algorithms
	}
	if s.Protocols, err = choices(f.protocols, model.Protocols(), model.ParseProtocol); err != nil {
		return s, usage(fmt.Errorf("--proto: %w", err))
	}
	if s.Sizes, err = f.sizes.sizes(c, s.Datatype); err != nil {
		return s, usage(err)
	}
	for _, n := range f.channels {
		if n < 0 || n > search.MaxChannels {
			return s, usage(fmt.Errorf("--channels %d: want 1 to %d, or 0 for NCCL's choice", n, search.MaxChannels))
		}
	}
	if f.profile != "" {
		if s.Profile, err = profile.Open(f.profile); err != nil {
			return s, profileError(err)
		}
	}
	if s.Options, err = f.options(); err != nil {
		return s, err
	}
	switch {
	case f.seeds < 1 || f.seeds > maxSeeds:
		return s, usage(fmt.Errorf("--seeds %d: want 1 to %d", f.seeds, maxSeeds))
	case f.seeds > 1 && f.jitter == "":
		return s, usage(errors.New("--seeds without --jitter: nothing varies"))
	}
	s.Options.NoSymmetry = f.noSymmetry
	if s.Options.NIC, err = f.nic(); err != nil {
		return s, err
	}
	if s.Clusters, err = f.clusters(c, nodes); err != nil {
		return s, err
	}
	f.stage(s.Clusters)
	for _, cluster := range s.Clusters {
		if err := f.checkRanks(s.Options, cluster); err != nil {
			return s, err
		}
		if c.Flags().Changed("root") && !s.Collective.Rooted() {
			return s, usage(fmt.Errorf("--root is for broadcast and reduce: %v has none", s.Collective))
		}
		if f.root < 0 || f.root >= cluster.Ranks() {
			return s, usage(fmt.Errorf("--root %d: want a rank, 0 to %d", f.root, cluster.Ranks()-1))
		}
	}
	return s, nil
}

const maxSeeds = 10000

// notEmpty fails for a list that was given and has nothing in it, as from a
// variable that is not set.
func notEmpty(c *cobra.Command, flags ...string) error {
	for _, name := range flags {
		if f := c.Flags().Lookup(name); f.Changed && len(f.Value.(pflag.SliceValue).GetSlice()) == 0 {
			return fmt.Errorf("--%s is empty: want a value, or no --%[1]s", name)
		}
	}
	return nil
}

// unique drops what stands there before.
func unique[T comparable](list []T) (kept []T) {
	for _, v := range list {
		if !slices.Contains(kept, v) {
			kept = append(kept, v)
		}
	}
	return kept
}

// choices reads a list of names: all for every value, auto for none, which
// leaves the choice to tuning.
func choices[T comparable](words []string, all []T, parse func(string) (T, error)) (list []T, err error) {
	for _, word := range words {
		switch {
		case word == "all":
			return all, nil
		case word == "auto" && len(words) == 1:
			return nil, nil
		}
		v, err := parse(word)
		if err != nil {
			return nil, fmt.Errorf("%w, all or auto", err)
		}
		if !slices.Contains(list, v) {
			list = append(list, v)
		}
	}
	return list, nil
}
