package backend

import (
	"context"

	"tutti/model/schedule"
	"tutti/model/units"
)

// Method says how a call is measured, as nccl-tests does.
type Method struct {
	// Warmup and Iterations are the calls before the clock starts and those that
	// are timed.
	Warmup, Iterations int
	// Check says that the results of one more call are compared with a reference.
	Check bool
	// Seed chooses the data.
	Seed uint64
}

// Measurement is what came out.
type Measurement struct {
	// Time is that of one call, on average.
	Time units.Time
	// Wrong is the number of elements, of all ranks' outputs, that are out of the
	// bounds of [Data.Check].
	Wrong int64
}

// Measure runs a schedule that was prepared.
func Measure(ctx context.Context, e Execution, t schedule.Task, m Method) (result Measurement, err error) {
	data := NewData(t, m.Seed)
	if err := data.Fill(e); err != nil {
		return result, err
	}
	if m.Warmup > 0 {
		if _, err := e.Run(ctx, m.Warmup); err != nil {
			return result, err
		}
	}
	if m.Iterations > 0 {
		if result.Time, err = e.Run(ctx, m.Iterations); err != nil {
			return result, err
		}
	}
	if !m.Check {
		return result, nil
	}
	if err := data.Fill(e); err != nil {
		return result, err
	}
	if _, err := e.Run(ctx, 1); err != nil {
		return result, err
	}
	result.Wrong, err = data.Check(e)
	return result, err
}
