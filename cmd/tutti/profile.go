package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"tutti/experiments/calibrate"
	"tutti/model/profile"
	"tutti/topo"
)

func newProfile() *cobra.Command {
	c := &cobra.Command{
		Use:   "profile",
		Short: "List a machine's calibrated constants, or take them from measurements",
		Args:  arguments(cobra.NoArgs),
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newProfileList(), newProfileFit(), newProfileProbe())
	return c
}

func newProfileList() *cobra.Command {
	return &cobra.Command{
		Use:   "list [NAME|FILE.yaml]",
		Short: "List the built-in profiles, or what is in one",
		Args:  arguments(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				for _, name := range profile.Profiles() {
					f, err := profile.Load(name)
					if err != nil {
						return err
					}
					if _, err := fmt.Fprintf(c.OutOrStdout(), "%-14s %s\n", name, f.About); err != nil {
						return err
					}
				}
				return nil
			}
			f, err := profile.Load(args[0])
			if err != nil {
				return profileError(err)
			}
			for _, k := range f.Constants {
				s := f.Sources[k.From]
				if _, err := fmt.Fprintf(c.OutOrStdout(), "%-30s %14s  %-9s  %s\n", k.Path, k, s.Kind, s.Data); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// profileError marks the error of a wrong name as one of usage.
func profileError(err error) error {
	if errors.As(err, new(profile.UnknownError)) {
		return usage(fmt.Errorf("--profile: %w", err))
	}
	return err
}

const profileUsage = "calibrated constants: built-in names and FILE.yaml, laid over each other (default by the GPUs' generation, and ndr-rail)"

// openProfile opens the profiles that were named or, if none were, those of the
// machine.
func openProfile(names string, machine *topo.System) (*profile.Profile, error) {
	if names == "" {
		return profile.ForGPU(machine.SM()), nil
	}
	p, err := profile.Open(names)
	if err != nil {
		return nil, profileError(err)
	}
	return p, p.Suits(machine)
}

// fitFlags are the flags of tutti profile fit, as they were given.
type fitFlags struct {
	rowFlags
	profile, out string
	keep         []string
	csv, quiet   bool
}

func newProfileFit() *cobra.Command {
	var f fitFlags
	c := &cobra.Command{
		Use:   "fit ROWS...",
		Short: "Fit a profile to measured rows and say how well it predicts rows it has not seen",
		Long: `Fit the constants of a profile to measured rows: tutti's CSV or the logs of
nccl-tests. First every other size is held out: the table has, for each series,
the errors on the sizes that were fitted and on those that were not. Then all
rows are fitted, and the constants are written as a layer over the profile that
the fit began from.

Where rows have several sources, those of the first say what a call costs: from
the others' times goes by how much their calls take longer, as told by the small
sizes that both have.`,
		Example: `  tutti profile fit measured.csv -o mine.yaml
  tutti profile fit experiments/firstlight/measured.csv experiments/ranks/measured.csv \
    --profile h200-nvswitch,ndr-rail,experiments/firstlight/start.yaml --keep copy.ring.simple # h200-nvswitch anew
  tutti sim --machine h200x4 --profile h200-nvswitch,ndr-rail,mine.yaml`,
		Args: arguments(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error { return f.run(c, args) },
	}
	f.rowFlags.register(c)
	flags := c.Flags()
	flags.StringVar(&f.profile, "profile", "", "the profile to begin from: "+profileUsage)
	flags.StringSliceVar(&f.keep, "keep", nil, "constants to leave as they are, as in copy.ring.simple (tutti profile list NAME has them)")
	flags.StringVarP(&f.out, "output", "o", "", "file to write the layer to (default: stdout, after the table)")
	flags.BoolVar(&f.csv, "csv", false, "write every row's predicted time and error as CSV in the place of the table")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "no progress")
	return c
}

func (f *fitFlags) run(c *cobra.Command, files []string) error {
	stderr := c.ErrOrStderr()
	if f.quiet {
		stderr = io.Discard
	}
	f.schedules = true
	worlds := &calibrate.Worlds{Open: openMeasured}
	list, err := f.read(files, worlds, stderr)
	if err != nil {
		return err
	}
	start, err := profileOf(list, f.profile, worlds)
	if err != nil {
		return err
	}
	for _, name := range f.keep {
		if _, known := start.Value(name); !known {
			return usage(fmt.Errorf("--keep: unknown constant %s: want one that tutti profile list %s has", name, strings.Split(start.Name, ",")[0]))
		}
	}
	list, offsets, err := calibrate.Align(list)
	if err != nil {
		return err
	}
	if err := calibrate.WriteOffsets(stderr, offsets); err != nil {
		return err
	}
	bar := newProgress(stderr, 2)
	bar.step("fitting every other size")
	fitted, held := calibrate.Halves(list)
	half, err := calibrate.Fit(fitted, start, worlds, f.keep...)
	if err != nil {
		return err
	}
	bar.step("fitting all sizes")
	whole, err := calibrate.Fit(list, start, worlds, f.keep...)
	if err != nil {
		return err
	}
	bar.end()
	var text bytes.Buffer
	report, err := calibrate.NewReport(fitted, held, half, worlds)
	if err != nil {
		return err
	}
	write := report.WriteTable
	if f.csv {
		write = report.WriteCSV
	}
	if err := write(&text); err != nil {
		return err
	}
	layer, err := whole.Layer("fitted over "+start.Name, profile.Source{Kind: "fitted", Data: strings.Join(files, ", ")}, calibrate.Constants(list, f.keep...))
	if err != nil {
		return err
	}
	if f.out == "" {
		if !f.csv {
			text.WriteString("\n" + string(layer))
		}
	} else if err := os.WriteFile(f.out, layer, 0o644); err != nil {
		return err
	}
	_, err = text.WriteTo(c.OutOrStdout())
	return err
}

func newProfileProbe() *cobra.Command {
	var machine, names, out string
	c := &cobra.Command{
		Use:   "probe PROBE.csv",
		Short: "Take a machine's constants from what tutti run --probe measured on it",
		Long: `Take constants from the rows of tutti run --probe: the latency and the efficiency
of NVLink, and the rates of tutti's own kernels that NVLink holds up. They are
written as a layer over the machine's profile, as tutti profile fit does.`,
		Example: `  tutti run --probe --sizes 64M,256M > probe.csv
  tutti profile probe probe.csv --machine h200x4 -o wires.yaml
  tutti tune --machine h200x4 --profile h200-nvswitch,ndr-rail,wires.yaml`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if mixture, err := topo.ParseMixture(machine); mixture != nil || err != nil {
				return usage(fmt.Errorf("--machine %s: a probe is of one machine: want its name or FILE.xml", machine))
			}
			file, err := os.Open(args[0])
			if err != nil {
				return err
			}
			defer file.Close()
			probe, err := calibrate.ReadProbe(file, args[0])
			if err != nil {
				return err
			}
			if machine == "" {
				return usage(fmt.Errorf("%s does not say which machine it was measured on: want --machine NAME|FILE.xml", args[0]))
			}
			m, err := topo.Open(machine)
			if err != nil {
				return err
			}
			start, err := openProfile(names, m)
			if err != nil {
				return err
			}
			p, constants, err := probe.Constants(m, start)
			if err != nil {
				return err
			}
			layer, err := p.Layer("probed over "+start.Name, profile.Source{Kind: "measured", Data: args[0]}, constants)
			if err != nil {
				return err
			}
			if out != "" {
				return os.WriteFile(out, layer, 0o644)
			}
			_, err = c.OutOrStdout().Write(layer)
			return err
		},
	}
	flags := c.Flags()
	flags.StringVar(&machine, "machine", "", "the machine that was probed: a built-in name or FILE.xml")
	flags.StringVar(&names, "profile", "", "the profile to lay it over: "+profileUsage)
	flags.StringVarP(&out, "output", "o", "", "file to write the layer to (default: stdout)")
	return c
}
