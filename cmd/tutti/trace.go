package main

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"tutti/model/profile"
	"tutti/sim"
	"tutti/sim/timeline"
)

// maxTraced is how many steps are kept for a trace: a file of a gigabyte.
const maxTraced = 1 << 22

func newTrace() *cobra.Command {
	var f callFlags
	out := "trace.json"
	c := &cobra.Command{
		Use:   "trace",
		Short: "Simulate a collective and write its timeline",
		Long: `Simulate a collective and write what every worker does when: its steps, its waits
for items and free slots, and the items that cross the network. A name in .json
gives a trace that opens in the Perfetto UI (ui.perfetto.dev) and in
chrome://tracing; one in .svg a picture, of small cases.`,
		Example: `  tutti trace --nodes 2 --algo ring --size 64M -O ring.json
  tutti trace --machine h200x4 --algo tree --size 1M --channels 1 -O tree.svg`,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			form := filepath.Ext(out)
			if form != ".json" && form != ".svg" {
				return usage(fmt.Errorf("--out %s: want a name in .json or .svg", out))
			}
			s, err := f.schedule(c)
			if err != nil {
				return err
			}
			cluster, err := f.cluster()
			if err != nil {
				return err
			}
			steps := 0
			for w := range s.Workers() {
				if steps += s.Worker(w).Steps; steps > maxTraced {
					return usage(fmt.Errorf("more than %d steps: want fewer nodes, channels or bytes", maxTraced))
				}
			}
			if form == ".svg" && steps > timeline.MaxDrawn {
				return usage(fmt.Errorf("%d steps are too many for a picture: want at most %d, or --out in .json", steps, timeline.MaxDrawn))
			}
			line := timeline.New(s)
			result, err := sim.RunWith(s, cluster, profile.ForGPU(cluster.Machine.SM()), sim.Options{Watch: line})
			if err != nil {
				return err
			}
			write := line.WriteChrome
			if form == ".svg" {
				write = line.WriteSVG
			}
			if err := writeFile(out, write); err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "%s: %d steps of %d workers, %v in all, %v of it to launch and end the kernel\n",
				out, line.Len(), s.Workers(), result.Time, result.Base)
			return err
		},
	}
	f.register(c, 0, 1<<20)
	c.Flags().StringVarP(&out, "out", "O", out, "file to write: FILE.json or FILE.svg")
	return c
}
