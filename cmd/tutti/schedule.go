package main

import (
	"bytes"
	"fmt"
	"io"
	"math"

	"github.com/spf13/cobra"

	"tutti/experiments/sweep"
	"tutti/model"
	"tutti/model/schedule"
	"tutti/model/schedule/draw"
	"tutti/model/schedule/file"
	"tutti/model/units"
	"tutti/topo/search"
)

func newSchedule() *cobra.Command {
	c := &cobra.Command{
		Use:   "schedule",
		Short: "Show, export and verify the schedule of a collective",
		Long: `Show, export and verify the schedule of a collective: its workers, what they do
step by step, and the FIFOs that join them. One schedule is what tutti simulates,
runs and proves.`,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newScheduleShow(), newScheduleExport(), newScheduleVerify())
	return c
}

// callFlags name one call on one cluster.
type callFlags struct {
	clusterFlags
	collective, algorithm, protocol, datatype, op string
	count                                         int64
	size                                          string
	root, channels                                int
	inPlace                                       bool
}

func (f *callFlags) register(c *cobra.Command, gpus int, count int64) {
	f.clusterFlags.register(c)
	flags := c.Flags()
	if gpus > 0 {
		flags.Lookup("gpus").DefValue = fmt.Sprint(gpus)
		f.gpus = gpus
	}
	flags.StringVar(&f.collective, "coll", model.AllReduce.String(), "the collective")
	flags.StringVar(&f.algorithm, "algo", model.Ring.String(), "the algorithm, or auto")
	flags.StringVar(&f.protocol, "proto", "auto", "ll, ll128, simple, or auto")
	flags.IntVar(&f.channels, "channels", 1, "number of channels; 0 as NCCL chooses")
	flags.StringVarP(&f.datatype, "datatype", "d", model.Float32.String(), "type of the elements")
	flags.StringVarP(&f.op, "op", "o", model.Sum.String(), "operation")
	flags.IntVarP(&f.root, "root", "r", 0, "rank that broadcast starts from and reduce ends at")
	flags.BoolVar(&f.inPlace, "inplace", false, "input and output are one buffer")
	flags.Int64Var(&f.count, "count", count, "elements, as the call's count: of a buffer; of a rank's block in allgather, reducescatter, alltoall")
	flags.StringVar(&f.size, "size", "", "size in bytes as in nccl-tests, in the place of --count")
	complete(c, "coll", names(collectives()))
	complete(c, "algo", append([]string{"auto"}, names(model.Algorithms())...))
	complete(c, "proto", append([]string{"auto"}, names(model.Protocols())...))
}

func collectives() (list []model.Collective) {
	for c := model.AllReduce; c <= model.Exchange; c++ {
		list = append(list, c)
	}
	return list
}

// schedule makes the schedule of the call.
func (f *callFlags) schedule(c *cobra.Command) (schedule.Schedule, error) {
	t, err := f.task(c)
	if err != nil {
		return nil, usage(err)
	}
	cluster, err := f.cluster()
	if err != nil {
		return nil, err
	}
	t.Ranks = cluster.Ranks()
	size := t.Bytes()
	if f.size != "" {
		if size, err = units.ParseBytes(f.size); err != nil {
			return nil, usage(fmt.Errorf("--size: %w", err))
		}
	}
	if size > maxSize || size < 0 || t.Count > int64(maxSize) {
		return nil, usage(fmt.Errorf("size of %v: want at most %v", size, maxSize))
	}
	s, err := sweep.NewMaker(cluster, t.Algorithm).Schedule(t, size)
	return s, usage(err)
}

func (f *callFlags) task(c *cobra.Command) (t schedule.Task, err error) {
	if err := exclusive(c, "count", "size"); err != nil {
		return t, err
	}
	if err := f.checkRoot(c); err != nil {
		return t, err
	}
	if f.count < 0 || f.count > math.MaxInt32 {
		return t, fmt.Errorf("--count %d: want 0 to %d (--size takes more)", f.count, math.MaxInt32)
	}
	if f.channels < 0 || f.channels > search.MaxChannels {
		return t, fmt.Errorf("--channels %d: want 1 to %d, or 0 for NCCL's choice", f.channels, search.MaxChannels)
	}
	t = schedule.Task{Algorithm: sweep.Auto, Protocol: sweep.Auto, Count: f.count, Root: f.root, InPlace: f.inPlace, Channels: f.channels}
	if t.Collective, err = model.ParseCollective(f.collective); err != nil {
		return t, fmt.Errorf("--coll: %w", err)
	}
	if f.algorithm != "auto" {
		if t.Algorithm, err = model.ParseAlgorithm(f.algorithm); err != nil {
			return t, fmt.Errorf("--algo: %w, or auto", err)
		}
	}
	if f.protocol != "auto" {
		if t.Protocol, err = model.ParseProtocol(f.protocol); err != nil {
			return t, fmt.Errorf("--proto: %w, or auto", err)
		}
	}
	if t.Datatype, err = model.ParseDatatype(f.datatype); err != nil {
		return t, fmt.Errorf("-d: %w", err)
	}
	if t.Redop, err = model.ParseRedop(f.op); err != nil {
		return t, fmt.Errorf("-o: %w", err)
	}
	return t, nil
}

// checkRoot makes sure that a root is named only for what has one.
func (f *callFlags) checkRoot(c *cobra.Command) error {
	collective, err := model.ParseCollective(f.collective)
	if err == nil && c.Flags().Changed("root") && !collective.Rooted() {
		return fmt.Errorf("--root is for broadcast and reduce: %v has none", collective)
	}
	return nil
}

// from returns the schedule of a file, if one is named, or else that of the
// call.
func (f *callFlags) from(c *cobra.Command, args []string) (schedule.Schedule, error) {
	if len(args) == 0 {
		return f.schedule(c)
	}
	s, err := file.Read(args[0])
	if err != nil {
		return nil, err
	}
	return s, nil
}

// inWords writes a call in words.
func inWords(t schedule.Task) string {
	form := "out of place"
	if t.InPlace {
		form = "in place"
	}
	nodes := "one node"
	if t.Nodes > 1 {
		nodes = fmt.Sprintf("%d nodes", t.Nodes)
	}
	return fmt.Sprintf("%v by %v over %v: %v of %v, %s, %d ranks on %s, channels at most %d",
		t.Collective, t.Algorithm, t.Protocol, t.Bytes(), t.Datatype, form, t.Ranks, nodes, t.Channels)
}

// write writes to a file or, without a name, to stdout: whole, or not at all.
func write(c *cobra.Command, path string, to func(io.Writer) error) error {
	var text bytes.Buffer
	if err := to(&text); err != nil {
		return err
	}
	if path == "" {
		if _, err := text.WriteTo(c.OutOrStdout()); err != nil {
			return fmt.Errorf("writing: %w", err)
		}
		return nil
	}
	return writeFile(path, func(w io.Writer) error {
		_, err := text.WriteTo(w)
		return err
	})
}

func newScheduleShow() *cobra.Command {
	var f callFlags
	var picture string
	c := &cobra.Command{
		Use:   "show [FILE.json]",
		Short: "Print or draw who sends what to whom at each step",
		Long: `Print or draw who sends what to whom at each step, of a small call or of a schedule
that tutti schedule export wrote. Time is counted in steps, as if each took one
instant.`,
		Example: `  tutti schedule show
  tutti schedule show --gpus 2 --count 16 --proto ll
  tutti schedule show --algo tree --nodes 4 --gpus 1 --svg tree.svg
  tutti schedule show --algo nvls --gpus 4 --svg nvls.svg`,
		Args: arguments(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			s, err := f.from(c, args)
			if err != nil {
				return err
			}
			most := draw.MaxText
			if picture != "" {
				most = draw.MaxSVG
			}
			timeline, err := draw.NewTimeline(s, most)
			if err != nil {
				return err
			}
			if picture != "" {
				return write(c, picture, timeline.WriteSVG)
			}
			return write(c, "", timeline.WriteText)
		},
	}
	f.register(c, 4, 16)
	c.Flags().StringVar(&picture, "svg", "", "draw to this FILE")
	return c
}

func newScheduleExport() *cobra.Command {
	var f callFlags
	var format, path string
	formats := map[string]func(io.Writer, schedule.Schedule) error{"json": file.WriteJSON, "msccl-xml": file.WriteMSCCL}
	c := &cobra.Command{
		Use:   "export",
		Short: "Write the schedule, step by step, for other programs",
		Long: `Write the schedule, step by step, for other programs: as JSON, which tutti schedule
show, verify and tutti run read back, or as the XML of MSCCL, for what MSCCL can
express: thread blocks with one peer each way, chunks of equal size.`,
		Example: `  tutti schedule export --algo twoshot --size 1M > twoshot.json
  tutti schedule export --format msccl-xml --gpus 8 --count 128 --file ring.xml`,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			encode, known := formats[format]
			if !known {
				return usage(fmt.Errorf("--format %s: want json or msccl-xml", format))
			}
			s, err := f.schedule(c)
			if err != nil {
				return err
			}
			return write(c, path, func(w io.Writer) error { return encode(w, s) })
		},
	}
	f.register(c, 4, 16)
	c.Flags().StringVar(&format, "format", "json", "json or msccl-xml")
	c.Flags().StringVar(&path, "file", "", "write to this FILE (default stdout)")
	complete(c, "format", []string{"json", "msccl-xml"})
	return c
}

// maxProof bounds what a proof costs: steps times workers, as each step has a
// clock of all workers.
const maxProof = 1 << 32

func newScheduleVerify() *cobra.Command {
	var f callFlags
	c := &cobra.Command{
		Use:   "verify [FILE.json]",
		Short: "Prove that the schedule does what the collective must",
		Long: `Prove that a schedule does what the collective must, whatever the order in which its
workers run, or say where it first goes wrong: rank, channel, worker and step.`,
		Example: `  tutti schedule verify --algo nvlstree --nodes 4 --gpus 8 --size 64M
  tutti schedule verify schedule.json`,
		Args: arguments(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			s, err := f.from(c, args)
			if err != nil {
				return err
			}
			return prove(c.OutOrStdout(), s)
		},
	}
	f.register(c, 0, 1<<20)
	return c
}

// verify proves a schedule, if that is not too much work.
func verify(s schedule.Schedule) error {
	steps := 0
	for i := range s.Workers() {
		steps += s.Worker(i).Steps
	}
	if float64(steps)*float64(s.Workers()) > maxProof {
		return fmt.Errorf("%d steps of %d workers are too many to prove: want fewer ranks, channels or elements", steps, s.Workers())
	}
	if err := schedule.Verify(s); err != nil {
		return fmt.Errorf("%s: %w", inWords(s.Task()), err)
	}
	return nil
}

// prove verifies a schedule and writes what is known of it then.
func prove(w io.Writer, s schedule.Schedule) error {
	if err := verify(s); err != nil {
		return err
	}
	steps, items := 0, 0
	sent, most, used := make([]int64, s.Connections()), int64(0), 0
	for i := range s.Workers() {
		worker := s.Worker(i)
		steps += worker.Steps
		for k := range worker.Steps {
			step := s.Step(i, k)
			for port := range step.Send.All() {
				_, count := step.Range(port)
				sent[worker.Out[port]] += count
				items++
			}
		}
	}
	var total int64
	for _, elements := range sent {
		total += elements
		most = max(most, elements)
		if elements > 0 {
			used++
		}
	}
	size := int64(s.Task().Datatype.Size())
	_, err := fmt.Fprintf(w, `%s
proved, for every order in which the workers may run:
  every element of every output is written once and holds each rank's data exactly once
  %d steps of %d workers end: no deadlock with the slots that the connections have
  no step uses a port, an element or room that it does not have; nothing is left in a connection
  buffers are read before they are overwritten, and used only while their rank takes part
%d items carry %d bytes over %d connections, at most %d bytes over one
`, inWords(s.Task()), steps, s.Workers(), items, total*size, used, most*size)
	return err
}
