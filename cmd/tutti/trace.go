package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"tutti/experiments/sweep"
	"tutti/model/profile"
	"tutti/model/schedule"
	"tutti/model/units"
	"tutti/sim"
	"tutti/sim/timeline"
	"tutti/topo"
)

// maxTraced is how many steps are kept for a trace: a file of a gigabyte or two.
const maxTraced = 1 << 22

// traceFlags are the flags of tutti trace, as they were given.
type traceFlags struct {
	callFlags
	changeFlags
	troubleFlags
	nicFlags
	workFlags
	profile, out string
}

func newTrace() *cobra.Command {
	f := traceFlags{out: "trace.json"}
	c := &cobra.Command{
		Use:   "trace",
		Short: "Simulate a collective and write its timeline",
		Long: `Simulate a collective and write what every worker does when: its steps, its waits
for data and for free slots, the items that cross the network, the rate of every
link, and faults and stragglers. A name in .json gives a trace that opens in the
Perfetto UI (ui.perfetto.dev) and in chrome://tracing; one in .svg a picture, of
small cases.`,
		Example: `  tutti trace --nodes 2 --algo ring --size 64M -O ring.json
  tutti trace --machine h200x4 --algo tree --size 1M --channels 1 -O tree.svg
  tutti trace --nodes 2 --size 16M --straggler rank=3,slow=2 --fault "link=node 1 NET mlx5_0,rate=0.5,at=100us"`,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c) },
	}
	f.callFlags.register(c, 0, 1<<20)
	f.changeFlags.register(c)
	f.callFlags.change = f.changeFlags.change
	f.troubleFlags.register(c)
	f.nicFlags.register(c)
	f.workFlags.register(c)
	c.Flags().StringVar(&f.profile, "profile", "", "calibrated constants: built-in names and FILE.yaml (default by the GPUs' generation, and ndr-rail)")
	c.Flags().StringVarP(&f.out, "out", "O", f.out, "file to write: FILE.json or FILE.svg")
	complete(c, "profile", profile.Profiles())
	return c
}

func (f *traceFlags) run(c *cobra.Command) error {
	form := filepath.Ext(f.out)
	if form != ".json" && form != ".svg" {
		return usage(fmt.Errorf("--out %s: want a name in .json or .svg", f.out))
	}
	options, err := f.options()
	if err != nil {
		return err
	}
	if options.NIC, err = f.nic(); err != nil {
		return err
	}
	options.NoSymmetry = true // every worker has its row
	s, err := f.schedule(c)
	if err != nil {
		return err
	}
	cluster, err := f.cluster()
	if err != nil {
		return err
	}
	f.stage([]*topo.Cluster{cluster})
	if err := f.checkRanks(options, cluster); err != nil {
		return err
	}
	constants, err := openProfile(f.profile, cluster.Machine)
	if err != nil {
		return err
	}
	steps := 0
	for w := range s.Workers() {
		if steps += s.Worker(w).Steps; steps > maxTraced {
			return usage(fmt.Errorf("more than %d steps: want fewer nodes, channels or bytes", maxTraced))
		}
	}
	if steps == 0 {
		return usage(errors.New("nothing to trace: no rank has anything to do: want more bytes"))
	}
	if form == ".svg" && steps > timeline.MaxDrawn {
		return usage(fmt.Errorf("%d steps are too many for a picture: want at most %d, or --out in .json", steps, timeline.MaxDrawn))
	}
	if err := f.room(c, s, cluster, constants, options, steps); err != nil {
		return err
	}
	return f.write(c, s, cluster, constants, options)
}

// room makes sure that there is memory for the simulation and its timeline.
func (f *traceFlags) room(c *cobra.Command, s schedule.Schedule, cluster *topo.Cluster, p *profile.Profile, o sim.Options, steps int) error {
	limit, err := f.limit()
	if err != nil {
		return err
	}
	need := sim.NewPlan(s, cluster, p, o).Need() + units.Bytes(steps)*timeline.StepBytes
	if limit > 0 && need > limit {
		return advised(&sweep.MemoryError{What: "a trace of " + inWords(s.Task()), Need: need, Limit: limit}, c)
	}
	return nil
}

// write simulates the call and writes its timeline.
func (f *traceFlags) write(c *cobra.Command, s schedule.Schedule, cluster *topo.Cluster, p *profile.Profile, o sim.Options) error {
	ctx, stop := untilInterrupted(c)
	defer stop()
	line := timeline.New(s, cluster, o)
	o.Watch = line
	var result sim.Result
	err := unless(ctx, func() (err error) {
		if result, err = sim.RunWith(s, cluster, p, o); err == nil {
			line.End(result)
		}
		return err
	})
	if err != nil {
		return onNoLink(err)
	}
	err = writeFile(f.out, func(w io.Writer) error {
		w = interruptible{ctx, w}
		if filepath.Ext(f.out) == ".svg" {
			return line.WriteSVG(w)
		}
		return line.WriteChrome(w)
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.OutOrStdout(), "%s: %d steps of %d workers, %v in all, %v of it to launch and end the kernel\n",
		f.out, line.Len(), s.Workers(), result.Time, result.Base)
	return err
}
