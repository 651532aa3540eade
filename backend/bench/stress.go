package bench

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"tutti/backend/cuda"
	"tutti/backend/cuda/driver"
	"tutti/model"
	"tutti/model/units"
)

// Stress runs random calls for a time: sizes, types, operations, algorithms and
// launches, in place or not, several back to back before the results of all are
// checked. Between them it leaves a rank out of a call: that must end in an error
// within the timeout, and the next call must work. It returns how many calls were
// right; the error is of the first that was not.
func (b *Bench) Stress(d time.Duration, seed uint64) (calls int, err error) {
	random := rand.New(rand.NewPCG(seed, 1))
	types := []model.Datatype{model.Float32, model.BFloat16, model.Float16, model.Float64, model.Int32, model.Int64}
	ops := []model.Redop{model.Sum, model.Prod, model.Min, model.Max, model.Avg}
	for end := time.Now().Add(d); time.Now().Before(end); {
		if random.IntN(40) == 0 {
			if err := b.abandon(); err != nil {
				return calls, err
			}
		}
		c := Case{Datatype: types[random.IntN(len(types))], Redop: ops[random.IntN(len(ops))]}
		// Several calls side by side in the buffers, each with bounds of 16 bytes.
		var batch []stressCall
		for at := int64(0); len(batch) < 1+random.IntN(6); {
			size := int64(1) << random.IntN(26)
			size = (size + random.Int64N(size)) / 8 * 8
			if size += 8; at+size > b.room {
				break
			}
			list := Launches(units.Bytes(size), 1<<10)
			batch = append(batch, stressCall{at, size, list[random.IntN(len(list))], random.IntN(3) == 0})
			at += (size + 15) / 16 * 16
		}
		n, err := b.runStress(c, batch, random.Uint64())
		calls += n
		if err != nil {
			return calls, fmt.Errorf("after %d calls (seed %d): %v %v: %w", calls, seed, c.Datatype, c.Redop, err)
		}
	}
	return calls, nil
}

type stressCall struct {
	at, size int64
	launch   cuda.Launch
	inPlace  bool
}

// runStress queues a batch of calls, waits, and checks all.
func (b *Bench) runStress(c Case, batch []stressCall, seed uint64) (calls int, err error) {
	t, err := newData(c.Datatype, c.Redop, len(b.gpus), seed)
	if err != nil {
		return 0, err
	}
	if err := b.comm.Prepare(c.Datatype, c.Redop); err != nil {
		return 0, err
	}
	call := func(s stressCall) cuda.Call {
		k := cuda.Call{Count: s.size / int64(c.Datatype.Size()), Datatype: c.Datatype, Redop: c.Redop}
		for i := range b.gpus {
			k.Input = append(k.Input, b.input[i]+driver.Pointer(s.at))
			k.Output = append(k.Output, b.output[i]+driver.Pointer(s.at))
		}
		if s.inPlace {
			k.Output = k.Input
		}
		return k
	}
	for _, s := range batch {
		for i, stream := range b.streams {
			if err := t.fill(stream, i, call(s).Input[i], s.size); err != nil {
				return 0, err
			}
			if err := b.gpus[i].Fill(b.output[i]+driver.Pointer(s.at), 0xff, s.size); err != nil {
				return 0, err
			}
		}
	}
	queued := map[int]bool{}
	for i, s := range batch {
		// A launch that does not suit the size says so and queues nothing.
		queued[i] = b.comm.AllReduce(call(s), s.launch, b.streams) == nil
	}
	if err := b.sync(); err != nil {
		return 0, err
	}
	for i, s := range batch {
		if !queued[i] {
			continue
		}
		for r, g := range b.gpus {
			wrong, err := t.check(g, call(s).Output[r], call(s).Count, b.staging.Data)
			if err != nil {
				return calls, err
			}
			if wrong > 0 {
				return calls, fmt.Errorf("%v of %d bytes, in place %v, call %d of %d: %d elements of rank %d are wrong", s.launch, s.size, s.inPlace, i+1, len(batch), wrong, r)
			}
		}
		calls++
	}
	return calls, nil
}

// abandon leaves rank 0 out of a call, and expects the others to give up.
func (b *Bench) abandon() error {
	if err := b.comm.Prepare(model.Float32, model.Sum); err != nil {
		return err
	}
	call := cuda.Call{Input: b.input, Output: b.output, Count: 1024, Datatype: model.Float32, Redop: model.Sum}
	if err := b.comm.AllReduceWithout(0, call, cuda.Launch{Algorithm: cuda.OneShotLL, Blocks: 1, Threads: 512}, b.streams); err != nil {
		return err
	}
	begun := time.Now()
	for _, s := range b.streams {
		if err := s.Sync(); err != nil {
			return err
		}
	}
	err := b.comm.Check()
	if !errors.As(err, new(*cuda.TimeoutError)) {
		return fmt.Errorf("a rank that was left out went unnoticed: %w", err)
	}
	fmt.Fprintf(b.log, "as it should after %v: %v\n", time.Since(begun).Round(time.Millisecond), err)
	return b.comm.Reset()
}

// sync waits for all streams and returns what went wrong.
func (b *Bench) sync() error {
	for _, s := range b.streams {
		if err := s.Sync(); err != nil {
			return err
		}
	}
	return b.faults()
}
