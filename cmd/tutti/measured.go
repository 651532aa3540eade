package main

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"tutti/backend/live"
	"tutti/experiments/calibrate"
	"tutti/experiments/rows"
	"tutti/model"
	"tutti/model/profile"
	"tutti/topo"

	"github.com/spf13/cobra"
)

// rowFlags say how files of measured rows are to be read.
type rowFlags struct {
	machine, collective, algorithm, protocol string
	// schedules says that only rows of schedules are asked for, as all executors
	// run them.
	schedules bool
}

func (f *rowFlags) register(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.machine, "machine", "", "the machine that was measured, in the place of the rows' own: a built-in name or FILE.xml")
	flags.StringVar(&f.collective, "coll", model.AllReduce.String(), "the collective of an nccl-tests log that does not say")
	flags.StringVar(&f.algorithm, "algo", model.Ring.String(), "the algorithm of an nccl-tests log (NCCL_ALGO)")
	flags.StringVar(&f.protocol, "proto", model.Simple.String(), "the protocol of an nccl-tests log (NCCL_PROTO)")
}

// read reads the rows of all files, and notes which are left out.
func (f *rowFlags) read(files []string, notes io.Writer) (list []rows.Row, err error) {
	like := rows.Row{Machine: f.machine, Channels: 1}
	if like.Collective, err = model.ParseCollective(f.collective); err != nil {
		return nil, usage(fmt.Errorf("--coll: %w", err))
	}
	if like.Algorithm, err = model.ParseAlgorithm(f.algorithm); err != nil {
		return nil, usage(fmt.Errorf("--algo: %w", err))
	}
	if like.Protocol, err = model.ParseProtocol(f.protocol); err != nil {
		return nil, usage(fmt.Errorf("--proto: %w", err))
	}
	list, err = rows.ReadFiles(files, like)
	if err != nil {
		return nil, err
	}
	for i := range list {
		if f.machine != "" {
			list[i].Machine = f.machine
		}
		if list[i].Machine == "" {
			return nil, usage(fmt.Errorf("%s does not say which machine it was measured on: want --machine NAME|FILE.xml", list[i].Source))
		}
	}
	if list = f.known(list, notes); len(list) == 0 {
		return nil, fmt.Errorf("%s: no rows are left", strings.Join(files, ", "))
	}
	return list, nil
}

// known returns the rows that can be predicted, and notes which others there are.
func (f *rowFlags) known(list []rows.Row, notes io.Writer) []rows.Row {
	for _, other := range []struct {
		is   func(rows.Row) bool
		what string
	}{
		{func(r rows.Row) bool { return r.Source == onHost }, "by this computer's cores (host)"},
		{func(r rows.Row) bool { return r.Source == onSymmetric }, "by NCCL's kernels for symmetric windows, which have no model"},
		{func(r rows.Row) bool { return r.Kernel != "" && f.schedules }, "by tutti's own kernels, which have constants of their own"},
	} {
		before := len(list)
		if list = slices.DeleteFunc(list, other.is); len(list) < before {
			fmt.Fprintf(notes, "left out: %d rows %s\n", before-len(list), other.what)
		}
	}
	return list
}

// openMeasured opens the machine that rows name.
func openMeasured(name string) (*topo.System, error) {
	if name != liveMachine {
		return topo.Open(name)
	}
	text, err := live.XML()
	if err != nil {
		return nil, usage(fmt.Errorf("rows of the machine that they were measured on (live), which is not this one: %w; want --machine NAME|FILE.xml, such as tutti topo show --machine live --xml FILE writes there", err))
	}
	return topo.ReadXML(bytes.NewReader(text), name)
}

// profileOf opens the profiles for the machine of some rows.
func profileOf(list []rows.Row, names string, worlds *calibrate.Worlds) (*profile.Profile, error) {
	w, err := worlds.Of(list[0])
	if err != nil {
		return nil, err
	}
	return openProfile(names, w.Cluster.Machine)
}
