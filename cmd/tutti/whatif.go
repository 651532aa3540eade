package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tutti/experiments/rows"
	"tutti/experiments/sweep"
	"tutti/model/units"
)

func newWhatif() *cobra.Command {
	var f simFlags
	var versus string
	c := &cobra.Command{
		Use:   "whatif --versus \"FLAGS\"",
		Short: "Compare two settings side by side",
		Long: `Simulate the same collectives under two settings and print the times side by side.
The first setting is what the flags say, as in tutti sim; the second is the first
with the flags of --versus instead.`,
		Example: `  tutti whatif --nodes 32 --sizes 64M,1G --fabric fat-tree --versus "--fabric fat-tree-2to1"
  tutti whatif --nodes 4 --algo ring --proto simple --versus "--proto ll128"
  tutti whatif --nodes 8 --sizes 1G --versus "--machine dgx-b200"`,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if versus == "" {
				return usage(errors.New("--versus is missing: want the flags of the second setting, as in --versus \"--fabric fat-tree-2to1\""))
			}
			other, otherCommand, err := alternative(c, versus)
			if err != nil {
				return usage(err)
			}
			first, err := f.simulated(c)
			if err != nil {
				return err
			}
			second, err := other.simulated(otherCommand)
			if err != nil {
				return fmt.Errorf("--versus: %w", err)
			}
			t, err := besides(first, second)
			if err != nil {
				return err
			}
			return t.write(c.OutOrStdout(), f.csv)
		},
	}
	f.register(c)
	c.Flags().StringVar(&versus, "versus", "", "flags that are different in the second setting")
	for _, flag := range []string{"plot", "json", "shard"} {
		_ = c.Flags().MarkHidden(flag) // it is there
	}
	return c
}

// alternative reads the flags of a command again, those of versus in the place of
// the same ones.
func alternative(c *cobra.Command, versus string) (*simFlags, *cobra.Command, error) {
	parse := func(args []string) (*simFlags, *cobra.Command, error) {
		f, command := &simFlags{}, &cobra.Command{}
		f.register(command)
		command.SetContext(c.Context())
		command.SetErr(c.ErrOrStderr())
		if err := command.ParseFlags(args); err != nil {
			return nil, nil, fmt.Errorf("--versus: %w", err)
		}
		if rest := command.Flags().Args(); len(rest) > 0 {
			return nil, nil, fmt.Errorf("--versus: %q is no flag", rest[0])
		}
		return f, command, nil
	}
	args := strings.Fields(versus)
	_, changed, err := parse(args)
	if err != nil {
		return nil, nil, err
	}
	c.Flags().Visit(func(flag *pflag.Flag) {
		if flag.Name == "versus" || changed.Flags().Changed(flag.Name) {
			return
		}
		value := flag.Value.String()
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			value = strings.Join(list.GetSlice(), ",")
		}
		args = append(args, "--"+flag.Name+"="+value)
	})
	return parse(args)
}

// simulated returns the rows of the study.
func (f *simFlags) simulated(c *cobra.Command) ([]rows.Row, error) {
	study, err := f.study(c)
	if err != nil {
		return nil, err
	}
	jobs, _, err := f.jobs(study)
	if err != nil {
		return nil, usage(err)
	}
	if err := f.fits(jobs); err != nil {
		return nil, err
	}
	ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt)
	defer stop()
	bar := newProgress(c.ErrOrStderr(), len(jobs))
	defer bar.end()
	results, err := sweep.Run(ctx, jobs, func(j sweep.Job) { bar.step(fmt.Sprint(j.Task().Bytes())) })
	if ctx.Err() != nil {
		return nil, errInterrupted
	}
	return results, err
}

// besides lays the results of two settings side by side.
func besides(first, second []rows.Row) (*table, error) {
	if len(first) != len(second) {
		return nil, usage(fmt.Errorf("%d cases against %d: want settings that can run the same ones", len(first), len(second)))
	}
	t := &table{header: []string{"ranks", "size(B)", "algo", "proto", "time(us)", "busbw(GB/s)", "held up by", "time'(us)", "busbw'(GB/s)", "held up by'", "change(%)"}}
	word := func(a, b string) string {
		if a == b {
			return a
		}
		return a + " > " + b
	}
	for i, a := range first {
		b := second[i]
		cells := func(r rows.Row) []string {
			return []string{fmt.Sprintf("%.2f", r.Time.Microseconds()), fmt.Sprintf("%.2f", float64(r.BusBW()/units.GBps)), r.Why.Bottleneck}
		}
		row := []string{word(fmt.Sprint(a.Ranks), fmt.Sprint(b.Ranks)), word(fmt.Sprint(int64(a.Bytes)), fmt.Sprint(int64(b.Bytes))),
			word(a.Algorithm.String(), b.Algorithm.String()), word(a.Protocol.String(), b.Protocol.String())}
		row = append(append(row, cells(a)...), cells(b)...)
		t.add(append(row, fmt.Sprintf("%+.1f", 100*(float64(b.Time)/float64(a.Time)-1)))...)
	}
	return t, nil
}
