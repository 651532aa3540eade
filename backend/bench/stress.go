package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"tutti/backend"
	"tutti/backend/cuda"
	"tutti/model"
	"tutti/model/schedule"
	"tutti/model/units"
)

// Stress runs random calls for a time: collectives, sizes, types, operations,
// algorithms and launches, in place or not, several back to back before the results
// of all are checked; build makes the schedule of a call on all ranks. It begins with
// each of the faults that a call must answer with an error, and makes one now and
// then: the next call must work. It returns how many calls were right; the error is
// of the first that was not.
func Stress(ctx context.Context, b *cuda.Backend, d time.Duration, seed uint64, build func(schedule.Task, units.Bytes) (schedule.Schedule, error), notes io.Writer) (calls int, err error) {
	s := stress{Backend: b, random: rand.New(rand.NewPCG(seed, 1)), build: build, notes: notes}
	for _, f := range faults {
		err = errors.Join(err, s.try(f), s.batch(ctx))
	}
	for end := time.Now().Add(d); err == nil && ctx.Err() == nil && time.Now().Before(end); {
		if s.random.IntN(40) == 0 {
			err = s.try(pick(s.random, faults))
		}
		if err == nil {
			err = s.batch(ctx)
		}
	}
	if err != nil {
		err = fmt.Errorf("after %d calls (seed %d): %w", s.calls, seed, err)
	}
	return s.calls, err
}

type stress struct {
	*cuda.Backend
	random *rand.Rand
	build  func(schedule.Task, units.Bytes) (schedule.Schedule, error)
	notes  io.Writer
	calls  int
}

// call is one of a batch.
type call struct {
	*cuda.Work
	what string
	data *backend.Data
}

// batch queues calls one after the other, waits, and checks all.
func (s *stress) batch(ctx context.Context) (err error) {
	var batch []call
	defer func() {
		for _, c := range batch {
			err = errors.Join(err, c.Close())
		}
	}()
	for range 1 + s.random.IntN(6) {
		c, err := s.draw()
		if errors.Is(err, backend.ErrUnsupported) || err == nil && c.Work == nil {
			continue
		} else if err != nil {
			return err
		}
		batch = append(batch, c)
		if err := c.data.Fill(c); err != nil {
			return err
		}
	}
	for _, c := range batch {
		if err := c.Queue(); err != nil {
			return fmt.Errorf("%s: %w", c.what, err)
		}
	}
	for _, c := range batch {
		if err := c.Settle(ctx); err != nil {
			return fmt.Errorf("%s: %w", c.what, err)
		}
		wrong, err := c.data.Check(c)
		if err == nil && wrong > 0 {
			err = fmt.Errorf("%d elements are wrong", wrong)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", c.what, err)
		}
		s.calls++
	}
	return nil
}

// draw prepares a random call; its Work is nil where there is no such schedule.
func (s *stress) draw() (c call, err error) {
	t := schedule.Task{
		Algorithm: pick(s.random, model.Algorithms()), Protocol: pick(s.random, model.Protocols()),
		Datatype: pick(s.random, model.Datatypes()), Redop: pick(s.random, model.Redops()),
	}
	size := units.Bytes(1) << s.random.IntN(26)
	size += units.Bytes(s.random.Int64N(int64(size))) + 8
	hot := s.random.IntN(2) == 0                                       // half of all are calls of the hot kernels
	if t.Collective = pick(s.random, t.Algorithm.Collectives()); hot { // the launch decides how
		t.Algorithm, t.Protocol, t.Collective = model.OneShot, model.Simple, pick(s.random, model.OneShot.Collectives())
	}
	t.InPlace = t.CanOverlap() && s.random.IntN(3) == 0
	made, err := s.build(t, size)
	if err != nil || schedule.Verify(made) != nil {
		return c, nil
	}
	if t = made.Task(); t.Count == 0 {
		return c, nil
	}
	c.data, c.what = backend.NewData(t, s.random.Uint64()), fmt.Sprintf("%+v", t)
	if hot {
		launches := Launches(t)
		if len(launches) == 0 {
			return c, nil
		}
		l := pick(s.random, launches)
		c.what += " by " + l.String()
		c.Work, err = s.PrepareLaunch(t, l)
		return c, err
	}
	e, err := s.Prepare(made)
	if err != nil {
		return c, err
	}
	c.Work = cuda.WorkOf(e)
	return c, nil
}

func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }
