package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"tutti/backend"
	"tutti/backend/cuda"
	"tutti/experiments/rows"
	"tutti/model/schedule"
	"tutti/model/units"
)

// measure goes through the trials and fills in the table. What a backend does not
// support is left out with a note, unless nothing else was asked for. With an error
// come the results from before it.
func (f *runFlags) measure(ctx context.Context, executors []backend.Backend, machine string, trials []trial, table *runTable, bar *progress, notes io.Writer) (results []rows.Row, err error) {
	defer bar.end()
	var largest units.Bytes
	var rate units.Rate // at that size
	var left []error
	for _, trial := range trials {
		var first units.Time // of the first backend
		for _, executor := range executors {
			var forms [2]*rows.Row // out of place, in place
			var t schedule.Task
			for _, inPlace := range trial.forms {
				s, err := trial.build(executor.Name(), inPlace)
				if err != nil {
					return results, err
				}
				t = s.Task()
				what := fmt.Sprintf("%v %v over %v on %d ranks, %v", t.Collective, t.Algorithm, t.Protocol, t.Ranks, t.Bytes())
				if executor == executors[0] && inPlace == trial.forms[0] {
					bar.step(what)
				}
				row, used, err := f.bounded(ctx, executor, s)
				if errors.Is(err, backend.ErrUnsupported) {
					left = append(left, fmt.Errorf("%s: %s: %w", executor.Name(), what, err))
					break
				}
				if err != nil {
					return results, fmt.Errorf("%s: %w", what, err)
				}
				row.Machine = machine
				if trial.size >= largest {
					largest, rate = trial.size, used
				}
				results = append(results, row)
				t.Channels = row.Channels
				if inPlace {
					forms[1] = &row
				} else {
					forms[0] = &row
				}
			}
			bar.end()
			measured := cmp.Or(forms[0], forms[1])
			if measured == nil {
				continue
			}
			if executor == executors[0] {
				first = measured.Time
			}
			if !table.begun {
				table.header(executors, machine, t)
			}
			table.row(executor.Name(), t, forms, first)
		}
	}
	if len(results) == 0 {
		return nil, usage(errors.Join(left...))
	}
	for _, err := range left {
		fmt.Fprintf(notes, "left out: %v\n", err)
	}
	table.footer(results)
	if f.memory {
		table.memory(largest, rate)
	}
	return results, nil
}

// method returns how calls are measured.
func (f *runFlags) method() backend.Method {
	return backend.Method{Warmup: f.warmup, Iterations: f.iterations, Check: f.check == 1, Seed: f.seed}
}

// bounded is once within the time of -T. What NCCL has begun cannot be called back: after
// some time more it is left to the end of the program.
func (f *runFlags) bounded(ctx context.Context, executor backend.Backend, s schedule.Schedule) (row rows.Row, used units.Rate, err error) {
	const grace = 10 * time.Second
	if f.timeout > 0 {
		var stop context.CancelFunc
		limit := time.Duration(f.timeout) * time.Second
		ctx, stop = context.WithTimeoutCause(ctx, limit, fmt.Errorf("not done within %v (-T)", limit))
		defer stop()
	}
	type result struct {
		row  rows.Row
		used units.Rate
	}
	done := make(chan result, 1)
	err = within(ctx, grace, func() error {
		row, used, err := f.once(ctx, executor, s)
		done <- result{row, used}
		return err
	})
	if err != nil {
		return row, 0, err
	}
	r := <-done
	return r.row, r.used, nil
}

// once measures a schedule; used is the rate at which it read and wrote memory,
// where the backend knows it.
func (f *runFlags) once(ctx context.Context, executor backend.Backend, s schedule.Schedule) (row rows.Row, used units.Rate, err error) {
	e, err := executor.Prepare(s)
	if err != nil {
		return row, 0, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	t := s.Task()
	m, err := backend.Measure(ctx, e, t, f.method())
	if err != nil {
		return row, 0, err
	}
	row = rows.Row{
		Source: executor.Name(), Collective: t.Collective, Algorithm: t.Algorithm, Protocol: t.Protocol, Nodes: t.Nodes, Ranks: t.Ranks,
		Channels: t.Channels, Datatype: t.Datatype, Redop: t.Redop, Bytes: t.Bytes(), Time: m.Time, InPlace: t.InPlace,
	}
	if f.check == 1 {
		row.Wrong = &m.Wrong
	}
	if w := cuda.WorkOf(e); w != nil && w.Blocks > 0 {
		row.Channels, row.Kernel = w.Blocks, w.Kernel // each block is a channel
	}
	if meter, ok := e.(interface{ Moved() units.Bytes }); ok {
		used = meter.Moved().Over(m.Time)
	}
	return row, used, nil
}
