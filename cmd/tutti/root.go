package main

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// newRoot returns the command tree. Every subcommand has a file of its own.
func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "tutti",
		Short: "Predict how fast a collective is on a GPU cluster, and why",
		Long: `tutti predicts GPU collectives: it reads a machine as NCCL sees it, builds the
rings and trees that NCCL builds, and simulates their schedules chunk by chunk.`,
		Version:       version(),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          arguments(cobra.NoArgs),
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usage(fmt.Errorf("%w (see %s --help)", err, c.CommandPath()))
	})
	root.AddCommand(newSim(), newTrace(), newWhatif(), newMerge(), newTopo(), newSearch(), newTune(), newPredict(), newCompare(), newProfile(), newRun(), newSchedule(), newDoctor())
	return root
}

// arguments makes a wrong number of arguments, or an unknown command, an error
// of usage.
func arguments(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error { return usage(check(c, args)) }
}

// version is that of the module, and the commit it was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	text := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			text += " " + s.Value
		}
	}
	return text
}
