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

// beside makes the calls.
func (m *Maker) beside(list []Beside) (calls []sim.Call, err error) {
	for i, b := range list {
		s, err := m.Schedule(b.Task, b.Size)
		if err != nil {
			return nil, fmt.Errorf("call %d: %w", i+1, err)
		}
		calls = append(calls, sim.Call{Schedule: s, Start: b.Start, After: b.After})
	}
	return calls, nil
}

// Shared is a call as it went beside others: Time is from its beginning on the
// first of its ranks to its end on the last, Alone what it takes with nothing
// beside it.
type Shared struct {
	Task               schedule.Task
	Start, Time, Alone units.Time
}

// calls are the job's call and those beside it.
func (j Job) calls() []sim.Call {
	return append([]sim.Call{{Schedule: j.schedule}}, j.beside...)
}

// together simulates the job's calls at once, and each alone.
func (j Job) together(o sim.Options) (sim.Result, []Shared, error) {
	calls := j.calls()
	result, spans, err := sim.RunTogether(calls, j.cluster, j.profile, o)
	if err != nil {
		return result, nil, err
	}
	list := make([]Shared, len(calls))
	for i, c := range calls {
		alone, err := sim.RunWith(c.Schedule, j.cluster, j.profile, o)
		if err != nil {
			return result, nil, err
		}
		list[i] = Shared{c.Schedule.Task(), spans[i].Begin, spans[i].End - spans[i].Begin, alone.Time}
	}
	return result, list, nil
}
