package main

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tutti/backend/live"
	"tutti/experiments/calibrate"
	"tutti/experiments/rows"
	"tutti/experiments/sweep"
	"tutti/model"
	"tutti/model/profile"
	"tutti/model/schedule"
	"tutti/topo"
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
	flags.StringVar(&f.machine, "machine", "", "the machine that was measured, in the place of the rows' own: a built-in name or FILE.xml, or several, as in dgx-h100:6,slow.xml:2")
	flags.StringVar(&f.collective, "coll", model.AllReduce.String(), "the collective of an nccl-tests log that does not say")
	flags.StringVar(&f.algorithm, "algo", "auto", "the algorithm of an nccl-tests log (NCCL_ALGO), or auto: as NCCL chooses for each size")
	flags.StringVar(&f.protocol, "proto", "auto", "the protocol of an nccl-tests log (NCCL_PROTO), or auto: as NCCL chooses for each size")
}

// auto stands for an algorithm or protocol that NCCL chose.
const auto = "auto"

// read reads the rows of all files, and notes which are left out.
func (f *rowFlags) read(files []string, worlds *calibrate.Worlds, notes io.Writer) (list []rows.Row, err error) {
	like := rows.Row{Machine: f.machine, Channels: 1, Algorithm: sweep.Auto, Protocol: sweep.Auto}
	if _, err := topo.ParseMixture(f.machine); err != nil {
		return nil, usage(fmt.Errorf("--machine %s: %w", f.machine, err))
	}
	if like.Collective, err = model.ParseCollective(f.collective); err != nil {
		return nil, usage(fmt.Errorf("--coll: %w", err))
	}
	if f.algorithm != auto {
		if like.Algorithm, err = model.ParseAlgorithm(f.algorithm); err != nil {
			return nil, usage(fmt.Errorf("--algo: %w, or auto", err))
		}
	}
	if f.protocol != auto {
		if like.Protocol, err = model.ParseProtocol(f.protocol); err != nil {
			return nil, usage(fmt.Errorf("--proto: %w, or auto", err))
		}
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
	return list, choose(list, worlds)
}

// choose finds the ways that NCCL chose where a log does not say.
func choose(list []rows.Row, worlds *calibrate.Worlds) error {
	makers := map[*calibrate.World]*sweep.Maker{}
	for i := range list {
		r := &list[i]
		if r.Algorithm != sweep.Auto && r.Protocol != sweep.Auto {
			continue
		}
		w, err := worlds.Of(*r)
		if err != nil {
			return err
		}
		if makers[w] == nil {
			makers[w] = sweep.NewMaker(w.Cluster)
		}
		t := makers[w].Choose(schedule.Task{Collective: r.Collective, Algorithm: r.Algorithm, Protocol: r.Protocol, Datatype: r.Datatype, Redop: r.Redop}, r.Bytes)
		r.Algorithm, r.Protocol = t.Algorithm, t.Protocol
	}
	return nil
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
