package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"tutti/experiments/rows"
	"tutti/experiments/sweep"
	"tutti/model"
	"tutti/model/schedule"
	"tutti/model/units"
	"tutti/topo/search"
)

// togetherFlags name calls that share the fabric with the one that is simulated.
type togetherFlags struct {
	with []string
}

func (f *togetherFlags) register(c *cobra.Command) {
	c.Flags().StringArrayVar(&f.with, "with", nil, "a call beside it on the same fabric, as in coll=alltoall,bytes=64M,start=100us; also algo, proto, channels, root, and after=N for one that follows call N on each rank: 0 is the call of the other flags, 1 the first --with")
}

// beside reads the flags. Its errors are of usage.
func (f *togetherFlags) beside(c *cobra.Command, datatype model.Datatype) (list []sweep.Beside, err error) {
	if len(f.with) > 0 {
		if err := exclusive(c, "with", "shard"); err != nil {
			return nil, usage(err)
		}
	}
	for i, text := range f.with {
		b, err := parseBeside(text, datatype, i+1)
		if err != nil {
			return nil, usage(fmt.Errorf("--with %s: %w", text, err))
		}
		list = append(list, b)
	}
	return list, nil
}

// parseBeside reads key=value pairs; number is the call's own.
func parseBeside(text string, datatype model.Datatype, number int) (b sweep.Beside, err error) {
	b.Task = schedule.Task{Algorithm: sweep.Auto, Protocol: sweep.Auto, Datatype: datatype}
	err = parsePairs(text, map[string]func(string) error{
		"coll":  func(v string) (err error) { b.Task.Collective, err = model.ParseCollective(v); return err },
		"algo":  func(v string) (err error) { b.Task.Algorithm, err = model.ParseAlgorithm(v); return err },
		"proto": func(v string) (err error) { b.Task.Protocol, err = model.ParseProtocol(v); return err },
		"bytes": func(v string) (err error) { b.Size, err = units.ParseBytes(v); return err },
		"start": func(v string) (err error) { b.Start, err = units.ParseTime(v); return err },
		"root":  func(v string) (err error) { b.Task.Root, err = parseCount(v, 1<<20); return err },
		"channels": func(v string) (err error) {
			b.Task.Channels, err = parseCount(v, search.MaxChannels)
			return err
		},
		"after": func(v string) error {
			before, err := parseCount(v, number-1)
			b.After = []int{before}
			return err
		},
	})
	if err == nil && b.Size == 0 {
		err = errors.New("want bytes=SIZE, as in bytes=64M")
	}
	if err == nil && b.Size > maxSize {
		err = fmt.Errorf("size of %v: want at most %v", b.Size, maxSize)
	}
	return b, err
}

// parseCount reads a whole number from 0 up.
func parseCount(text string, most int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > most {
		return 0, fmt.Errorf("%q: want a number from 0 to %d", text, most)
	}
	return n, nil
}

// sharedRow is a call of a case as it went beside others.
type sharedRow struct {
	Case       int     `json:"case"`
	Call       int     `json:"call"`
	Ranks      int     `json:"ranks"`
	Collective string  `json:"collective"`
	Algorithm  string  `json:"algorithm"`
	Protocol   string  `json:"protocol"`
	Channels   int     `json:"channels"`
	Bytes      int64   `json:"bytes"`
	Start      float64 `json:"start_us"`
	Time       float64 `json:"time_us"`
	Alone      float64 `json:"alone_us"`
	BusBW      float64 `json:"busbw_GBps"`
}

// writeShared tells of each call of each case its time, beside its time alone.
func writeShared(w io.Writer, done []sweep.Done, f *outputFlags) error {
	var list []sharedRow
	for _, d := range done {
		for n, s := range d.Calls {
			t := s.Task
			busbw := rows.Row{Collective: t.Collective, Ranks: t.Ranks, Bytes: t.Bytes(), Time: s.Time}.BusBW()
			list = append(list, sharedRow{
				d.Job, n, t.Ranks, t.Collective.String(), t.Algorithm.String(), t.Protocol.String(), t.Channels, int64(t.Bytes()),
				s.Start.Microseconds(), s.Time.Microseconds(), s.Alone.Microseconds(), float64(busbw / units.GBps),
			})
		}
	}
	if f.json {
		return writeJSON(w, list)
	}
	return sharedTable(list).write(w, f.csv)
}

func sharedTable(list []sharedRow) *table {
	t := &table{header: strings.Fields("case call ranks coll algo proto channels size(B) start(us) time(us) alone(us) slower(%) busbw(GB/s)")}
	for _, r := range list {
		t.add(strconv.Itoa(r.Case), strconv.Itoa(r.Call), strconv.Itoa(r.Ranks), r.Collective, r.Algorithm, r.Protocol, strconv.Itoa(r.Channels), strconv.FormatInt(r.Bytes, 10),
			fmt.Sprintf("%.2f", r.Start), fmt.Sprintf("%.2f", r.Time), fmt.Sprintf("%.2f", r.Alone), fmt.Sprintf("%+.1f", 100*(r.Time/r.Alone-1)), fmt.Sprintf("%.2f", r.BusBW))
	}
	return t
}
