package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"tutti/backend"
	"tutti/backend/bench"
	"tutti/backend/cuda"
	"tutti/backend/cuda/driver"
	"tutti/backend/host"
	"tutti/backend/nccl"
	"tutti/experiments/sweep"
	"tutti/model"
	"tutti/model/schedule"
	"tutti/model/units"
)

// The backends.
const (
	onHost      = "host"
	onCUDA      = "cuda"
	onNCCL      = "nccl"
	onSymmetric = "nccl-symmetric"
)

var backendNames = []string{onHost, onCUDA, onNCCL, onSymmetric}

// chosen returns the names of the backends that are asked for. For auto it says
// what it found.
func (f *runFlags) chosen(notes io.Writer) ([]string, error) {
	if !slices.Equal(f.backends, []string{"auto"}) {
		if len(f.backends) == 0 {
			f.backends = []string{""}
		}
		for _, name := range f.backends {
			if !slices.Contains(backendNames, name) {
				return nil, usage(fmt.Errorf("--backend %s: want some of %v, or auto alone", name, backendNames))
			}
		}
		return f.backends, nil
	}
	why := "a machine, fabric or schedule is named, which need not be this host"
	given := f.command.Flags().Changed
	if !given("machine") && !given("fabric") && !given("nodes") && !given("schedule") {
		n, err := driver.Count()
		if err == nil && n > 1 && f.gpus <= n {
			fmt.Fprintf(notes, "%d GPUs found: running on them (--backend cuda)\n", n)
			return []string{onCUDA}, nil
		}
		why = fmt.Sprintf("%d GPUs found", n)
		if err != nil {
			why = err.Error()
		}
	}
	fmt.Fprintf(notes, "%s: running on the cores and memory of this computer (--backend host)\n", why)
	return []string{onHost}, nil
}

// available fails where a library or the GPUs that backends need are missing.
func (f *runFlags) available(names []string) error {
	if !slices.ContainsFunc(names, func(name string) bool { return name != onHost }) {
		if len(f.devices) > 0 {
			return usage(fmt.Errorf("--devices %v: the %s backend uses no GPUs (--backend %s)", f.devices, onHost, onCUDA))
		}
		return nil
	}
	n, err := driver.Count()
	if err == nil && (slices.Contains(names, onNCCL) || slices.Contains(names, onSymmetric)) {
		err = nccl.Load()
	}
	if err != nil {
		if f.examines() {
			return fmt.Errorf("%w: tutti doctor says what else is missing", err)
		}
		return fmt.Errorf("%w: tutti doctor says what else is missing; --backend %s needs none of it", err, onHost)
	}
	for _, i := range f.devices {
		if i < 0 || i >= n {
			return usage(fmt.Errorf("--devices %d: want 0 to %d", i, n-1))
		}
	}
	return nil
}

// open makes the backends ready for calls of up to the given size.
func (f *runFlags) open(names []string, largest units.Bytes) (list []backend.Backend, err error) {
	var gpus []*driver.GPU
	for _, name := range names {
		if name != onHost && gpus == nil {
			if gpus, err = openGPUs(f.devices); err != nil {
				return nil, err
			}
		}
		switch name {
		case onHost:
			list = append(list, host.New(0))
		case onCUDA:
			// What peers push lies in the scratch memory, a slot for each rank.
			scratch := int64(largest + units.MiB)
			list = append(list, cuda.NewBackend(gpus, cuda.Options{Scratch: scratch, Timeout: f.patience}))
		default:
			b, err := nccl.NewBackend(gpus, name == onSymmetric)
			if err != nil {
				return nil, err
			}
			list = append(list, b)
		}
	}
	return list, nil
}

// openGPUs opens GPUs, all unless they are named, a rank each.
func openGPUs(devices []int) (gpus []*driver.GPU, err error) {
	if len(devices) == 0 {
		n, err := driver.Count()
		if err != nil {
			return nil, err
		}
		for i := range n {
			devices = append(devices, i)
		}
	}
	opened := map[int]*driver.GPU{}
	defer func() {
		if err == nil {
			return
		}
		for _, g := range opened {
			if g != nil {
				err = errors.Join(err, g.Close())
			}
		}
	}()
	for _, i := range devices {
		if opened[i] == nil {
			if opened[i], err = driver.Open(i); err != nil {
				return nil, err
			}
		}
		gpus = append(gpus, opened[i])
	}
	return gpus, nil
}

// suit fills in what a backend itself decides of a call on so many ranks. On GPUs
// auto is the quickest kernel that was measured and, for other algorithms, Simple;
// NCCL goes its own way, which its variables tell and else tuning guesses.
func suit(name string, t schedule.Task, size units.Bytes, ranks int) schedule.Task {
	switch name {
	case onCUDA:
		l := cuda.ChooseFor(t.Collective, ranks, int64(size)).Algorithm
		if t.Algorithm == sweep.Auto && t.Protocol == sweep.Auto && t.Channels == 0 {
			t.Algorithm = l.Shots()
		}
		switch {
		case t.Protocol != sweep.Auto:
		case t.Algorithm == l.Shots():
			t.Protocol = l.Protocol()
		default:
			t.Protocol = model.Simple
		}
	case onNCCL, onSymmetric:
		t.Algorithm, t.Protocol, t.Channels = sweep.Auto, sweep.Auto, 0
		if a, p, told := ncclTold(); told {
			t.Algorithm, t.Protocol = a, p
		}
	}
	return t
}

// ncclTold returns the algorithm and protocol that NCCL was told to take, if it was
// told one of each.
func ncclTold() (model.Algorithm, model.Protocol, bool) {
	a, noAlgorithm := model.ParseAlgorithm(strings.ToLower(os.Getenv("NCCL_ALGO")))
	p, noProtocol := model.ParseProtocol(strings.ToLower(os.Getenv("NCCL_PROTO")))
	return a, p, noAlgorithm == nil && noProtocol == nil
}

// examine does what only the GPUs' own kernels are asked, in the place of
// measuring calls.
func (f *runFlags) examine(ctx context.Context, trials []trial, to, notes io.Writer) error {
	gpus, err := openGPUs(f.devices)
	if err != nil {
		return err
	}
	var sizes []units.Bytes
	for _, t := range trials {
		if !slices.Contains(sizes, t.size) {
			sizes = append(sizes, t.size)
		}
	}
	ranks := trials[0].ranks
	if ranks > len(gpus) {
		return usage(fmt.Errorf("%d ranks on %d GPUs: want one each (--gpus %d)", ranks, len(gpus), len(gpus)))
	}
	b := cuda.NewBackend(gpus[:ranks], cuda.Options{Scratch: int64(slices.Max(sizes) + units.MiB), Timeout: f.patience})
	switch {
	case f.probe:
		err = bench.Probe(ctx, b, sizes, to)
	case f.stress > 0:
		seed := f.seed
		if seed == 0 {
			seed = uint64(time.Now().UnixNano())
		}
		calls, wrong := bench.Stress(ctx, b, f.stress, seed, trials[0].maker.Schedule, notes)
		fmt.Fprintf(to, "%d calls right\n", calls)
		err = wrong
	default:
		fmt.Fprintln(to, bench.SweepHeader)
		for _, t := range trials {
			s, err := t.build(onCUDA, false)
			if err == nil {
				err = bench.Sweep(ctx, b, s.Task(), f.method(), to, notes)
			}
			if err != nil {
				return errors.Join(err, b.Close())
			}
		}
	}
	return errors.Join(err, b.Close())
}
