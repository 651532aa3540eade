package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"tutti/backend/cuda"
	"tutti/backend/cuda/driver"
	"tutti/model"
	"tutti/model/schedule"
	"tutti/model/units"
)

// fault is something that a call must answer with an error, and survive.
type fault struct {
	name string
	make func(*stress) error
	is   func(error) bool
}

var faults = []fault{
	{"a rank left out of one shot", leaveOut(cuda.Launch{Algorithm: cuda.OneShotLL, Blocks: 64, Threads: 512}), timedOut},
	{"a rank left out of two shots", leaveOut(cuda.Launch{Algorithm: cuda.TwoShotPush, Blocks: 16, Threads: 512, Rounds: 1}), timedOut},
	{"a rank left out of a hybrid", leaveOut(cuda.Launch{Algorithm: cuda.Hybrid, Blocks: 16, Threads: 512, Rounds: 2}), timedOut},
	{"a rank left out of a ring", leaveOutOf(model.Ring, model.Simple), timedOut},
	{"a rank left out of a tree over LL", leaveOutOf(model.Tree, model.LL), timedOut},
	{"a call given up", giveUp, func(err error) bool { return errors.Is(err, context.DeadlineExceeded) && !timedOut(err) }},
	{"a call too large for the memory", func(s *stress) error {
		made, err := s.build(schedule.Task{Collective: model.AllReduce, Datatype: model.Float32, Algorithm: model.Ring}, units.TiB)
		if err != nil {
			return err
		}
		_, err = s.Prepare(made)
		return err
	}, outOfMemory},
	{"a buffer at an odd address", oddBuffer, func(err error) bool { return strings.Contains(err.Error(), "want an address that is a multiple of 16") }},
}

// try makes a fault, and expects its error.
func (s *stress) try(f fault) error {
	begun := time.Now()
	err := f.make(s)
	if err == nil || !f.is(err) {
		return fmt.Errorf("%s went unnoticed: %w", f.name, err)
	}
	fmt.Fprintf(s.notes, "%s: as it should after %v: %v\n", f.name, time.Since(begun).Round(time.Millisecond), err)
	return nil
}

func timedOut(err error) bool { return errors.As(err, new(*cuda.TimeoutError)) }

func outOfMemory(err error) bool {
	var refused *driver.Error
	return errors.As(err, &refused) && refused.Name == "CUDA_ERROR_OUT_OF_MEMORY"
}

// small is a call that any launch and algorithm can carry out.
func (s *stress) small() schedule.Task {
	return schedule.Task{Collective: model.AllReduce, Datatype: model.Float32, Count: 1 << 16, Ranks: len(s.GPUs()), Nodes: 1}
}

// leaveOut leaves rank 0 out of a call by a hot kernel.
func leaveOut(l cuda.Launch) func(*stress) error {
	return func(s *stress) error {
		x, err := s.PrepareLaunch(s.small(), l)
		if err != nil {
			return err
		}
		return without(context.Background(), x)
	}
}

// leaveOutOf leaves rank 0 out of a schedule.
func leaveOutOf(a model.Algorithm, p model.Protocol) func(*stress) error {
	return func(s *stress) error {
		t := s.small()
		t.Algorithm, t.Protocol = a, p
		made, err := s.build(t, t.Bytes())
		if err != nil {
			return err
		}
		e, err := s.Prepare(made)
		if err != nil {
			return err
		}
		return without(context.Background(), cuda.WorkOf(e))
	}
}

// giveUp ends the context of a call that cannot end by itself before its timeout.
func giveUp(s *stress) error {
	x, err := s.PrepareLaunch(s.small(), cuda.Launch{Algorithm: cuda.TwoShotPush, Blocks: 16, Threads: 512, Rounds: 1})
	if err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer stop()
	return without(ctx, x)
}

// without runs work without rank 0.
func without(ctx context.Context, x *cuda.Work) error {
	x.Absent = 1
	err := x.Queue()
	if err == nil {
		err = x.Settle(ctx)
	}
	return errors.Join(err, x.Close())
}

func oddBuffer(s *stress) error {
	comm, streams, err := s.Comm()
	if err != nil {
		return err
	}
	odd := make([]driver.Pointer, comm.Ranks())
	for i := range odd {
		odd[i] = 1<<20 + 4 // it is refused before anything is queued
	}
	return comm.AllReduce(cuda.Call{Input: odd, Output: odd, Count: 4, Datatype: model.Float32}, cuda.Launch{Algorithm: cuda.OneShotLL, Blocks: 64, Threads: 32}, streams)
}
