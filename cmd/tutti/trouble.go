package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"tutti/model/units"
	"tutti/sim"
	"tutti/topo"
)

// troubleFlags say what is wrong with a cluster.
type troubleFlags struct {
	faults, stragglers []string
	jitter             string
	seed               uint64
}

func (f *troubleFlags) register(c *cobra.Command) {
	flags := c.Flags()
	flags.StringArrayVar(&f.faults, "fault", nil, "a slow or failed link, as in \"link=node 3 NET mlx5_0,rate=0.5,at=100us\": a part of its name (tutti sim --links=all lists them), the share of its rate that is left, and from when on (default the start)")
	flags.StringArrayVar(&f.stragglers, "straggler", nil, "a late or slow rank, as in rank=3,delay=50us or rank=3,slow=1.5: how many times as long its threads take")
	flags.StringVar(&f.jitter, "jitter", "", "vary what each step costs and how long each item takes to be known, by a normal distribution with this deviation, as in 5%")
	flags.Uint64Var(&f.seed, "seed", 1, "of --jitter: the same seed gives the same times")
}

// options reads the flags. Its errors are of usage.
func (f *troubleFlags) options() (o sim.Options, err error) {
	for _, text := range f.faults {
		fault, err := parseFault(text)
		if err != nil {
			return o, usage(fmt.Errorf("--fault: %w", err))
		}
		o.Faults = append(o.Faults, fault)
	}
	for _, text := range f.stragglers {
		s, err := parseStraggler(text)
		if err != nil {
			return o, usage(fmt.Errorf("--straggler: %w", err))
		}
		o.Stragglers = append(o.Stragglers, s)
	}
	if f.jitter != "" {
		percent, isPercent := strings.CutSuffix(f.jitter, "%")
		deviation, err := strconv.ParseFloat(percent, 64)
		if isPercent {
			deviation /= 100
		}
		if err != nil || !(deviation > 0 && deviation <= 1) {
			return o, usage(fmt.Errorf("--jitter %s: want a deviation such as 5%%, above 0 and at most 100%%", f.jitter))
		}
		o.Jitter = sim.Jitter{Deviation: deviation, Seed: f.seed}
	}
	return o, nil
}

// checkRanks makes sure that stragglers are among a cluster's ranks.
func (f *troubleFlags) checkRanks(o sim.Options, c *topo.Cluster) error {
	for _, r := range o.Stragglers {
		if r.Rank >= c.Ranks() {
			return usage(fmt.Errorf("--straggler: rank %d: want 0 to %d", r.Rank, c.Ranks()-1))
		}
	}
	return nil
}

// parseFault reads link=NAME,rate=SHARE,at=TIME.
func parseFault(text string) (f sim.Fault, err error) {
	f.Rate = -1
	err = parsePairs(text, map[string]func(string) error{
		"link": func(v string) error { f.Link = v; return nil },
		"rate": func(v string) (err error) { f.Rate, err = strconv.ParseFloat(v, 64); return err },
		"at":   func(v string) (err error) { f.At, err = units.ParseTime(v); return err },
	})
	if err != nil || f.Link == "" || !(f.Rate == 0 || f.Rate >= 1e-6 && f.Rate <= 1) {
		return f, fmt.Errorf("%q: want link=NAME,rate=SHARE with a share from 0 to 1, and at=TIME, such as 100us, if not from the start", text)
	}
	return f, nil
}

// onNoLink marks it as an error of usage that a fault is on no link in use, which the
// simulation finds.
func onNoLink(err error) error {
	if errors.As(err, new(*sim.FaultError)) {
		return usage(fmt.Errorf("--fault: %w", err))
	}
	return err
}

// parseStraggler reads rank=N,delay=TIME,slow=TIMES.
func parseStraggler(text string) (s sim.Straggler, err error) {
	s.Rank = -1
	err = parsePairs(text, map[string]func(string) error{
		"rank":  func(v string) (err error) { s.Rank, err = strconv.Atoi(v); return err },
		"delay": func(v string) (err error) { s.Delay, err = units.ParseTime(v); return err },
		"slow":  func(v string) (err error) { s.Slow, err = strconv.ParseFloat(v, 64); return err },
	})
	if err != nil || s.Rank < 0 || s.Delay == 0 && s.Slow == 0 || s.Slow != 0 && !(s.Slow >= 1 && s.Slow <= 1e6) {
		return s, fmt.Errorf("%q: want rank=N and delay=TIME, such as 50us, or slow=TIMES, from 1 up", text)
	}
	return s, nil
}

// parsePairs reads key=value pairs with commas between, each key once.
func parsePairs(text string, keys map[string]func(string) error) error {
	seen := map[string]bool{}
	for _, pair := range strings.Split(text, ",") {
		key, value, _ := strings.Cut(pair, "=")
		set, known := keys[key]
		if !known {
			return fmt.Errorf("%q: want KEY=VALUE with some of %s", pair, strings.Join(slices.Sorted(maps.Keys(keys)), ", "))
		}
		if seen[key] {
			return fmt.Errorf("%s stands there twice", key)
		}
		seen[key] = true
		if err := set(value); err != nil {
			return err
		}
	}
	return nil
}
