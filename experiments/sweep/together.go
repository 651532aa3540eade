package sweep

import (
	"fmt"

	"tutti/model/schedule"
	"tutti/model/units"
	"tutti/sim"
)

// Beside is a call that runs beside that of a job, on the same cluster. What its
// task leaves open is as in [Maker.Schedule].
type Beside struct {
	Task  schedule.Task
	Size  units.Bytes
	Start units.Time
	// After are the calls, counted from the job's own, 0, that it follows on each
	// rank.
	After []int
}

// Shared is a call as it went beside others: Time is from its beginning on the
// first of its ranks to its end on the last, Alone what it takes with nothing
// beside it.
type Shared struct {
	Task               schedule.Task
	Start, Time, Alone units.Time
}

// Together simulates the job's call and those beside it at once, and each alone.
func (j Job) Together(beside []Beside) ([]Shared, error) {
	maker := NewMaker(j.cluster)
	calls := []sim.Call{{Schedule: j.schedule}}
	for _, b := range beside {
		s, err := maker.Schedule(b.Task, b.Size)
		if err != nil {
			return nil, fmt.Errorf("beside %v: %w", j, err)
		}
		calls = append(calls, sim.Call{Schedule: s, Start: b.Start, After: b.After})
	}
	_, spans, err := sim.RunTogether(calls, j.cluster, j.profile, j.options)
	if err != nil {
		return nil, fmt.Errorf("%v: %w", j, err)
	}
	list := make([]Shared, len(calls))
	for i, c := range calls {
		alone, err := sim.RunWith(c.Schedule, j.cluster, j.profile, j.options)
		if err != nil {
			return nil, fmt.Errorf("%v: %w", j, err)
		}
		list[i] = Shared{c.Schedule.Task(), spans[i].Begin, spans[i].End - spans[i].Begin, alone.Time}
	}
	return list, nil
}
