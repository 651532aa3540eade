package sim

import (
	"tutti/model/profile"
	"tutti/model/schedule"
	"tutti/model/units"
)

// call is what the steps of one call have in common.
type call struct {
	task           schedule.Task
	worker         int // the first
	base           units.Time
	overhead, turn units.Time
	ramp           units.Pace // of an item's first bytes, beside copying
	input, slots   units.Time // thousandths of buffers for which they count more, as they are not in the cache
}

// callsOf returns the calls that a schedule is made of: one, but for several that
// run together.
func callsOf(s schedule.Schedule, p *profile.Profile) (calls []call) {
	parts, several := s.(joined)
	if !several {
		parts = joined{{Schedule: s}}
	}
	for _, part := range parts {
		t := part.Task()
		c := call{
			task: t, worker: part.workers, base: p.Base[t.Algorithm][t.Protocol],
			overhead: p.Overhead[t.Protocol], turn: p.Turn[t.Algorithm][t.Protocol],
		}
		slots, all := t.Footprint()
		c.input, c.slots = units.Time(1000*p.Misses(t.Algorithm, t.Protocol, all)), units.Time(1000*p.Misses(t.Algorithm, t.Protocol, slots))
		if ramp := p.Ramp[t.Algorithm][t.Protocol]; ramp > 0 {
			c.ramp = profile.RampBytes.Over(ramp).Pace()
		}
		calls = append(calls, c)
	}
	return calls
}

// callOf returns the number of the call that a worker belongs to.
func (x *simulation) callOf(worker int32) int {
	i := 0
	for i+1 < len(x.calls) && x.calls[i+1].worker <= int(worker) {
		i++
	}
	return i
}

// size returns the bytes of elements.
func (c *call) size(elements int64) units.Bytes {
	return units.Bytes(elements) * c.task.Datatype.Size()
}
