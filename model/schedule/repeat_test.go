package schedule_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"tutti/model"
	"tutti/model/schedule"
)

// Steps do come round as Repeats says: the ports of each and the elements that
// go through them are those of the step a period before.
func TestStepsRepeat(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes, gpus := rapid.IntRange(1, 4).Draw(t, "nodes"), rapid.IntRange(3, 8).Draw(t, "gpus")
		a := rapid.SampledFrom(model.Algorithms()).Draw(t, "algorithm")
		made, err := build(schedule.Task{
			Collective: rapid.SampledFrom(a.Collectives()).Draw(t, "collective"), Algorithm: a, Protocol: rapid.SampledFrom(a.Protocols()).Draw(t, "protocol"),
			Datatype: model.Float32, Count: rapid.Int64Range(1, 1<<20).Draw(t, "count"), Channels: 2, Ranks: nodes * gpus, Nodes: nodes,
		})
		s, repeats := made.(schedule.Repeating)
		if err != nil || !repeats {
			return
		}
		w := rapid.IntRange(0, s.Workers()-1).Draw(t, "worker")
		steps := s.Worker(w).Steps
		for i := 0; i < steps; {
			period, until := s.Repeats(w, i)
			require.LessOrEqual(t, i+period, until)
			require.LessOrEqual(t, until, steps)
			for ; i < until-period; i++ {
				require.Equal(t, shape(s.Step(w, i)), shape(s.Step(w, i+period)), "steps %d and %d", i, i+period)
			}
			i = until
		}
	})
}

// shape is what a step has but for the place of its elements: its ports and
// flags, and the elements that the worker moves and that go through each port.
func shape(s schedule.Step) []any {
	shape := []any{s.Recv, s.Send, s.Input, s.Output, s.Total()}
	for _, ports := range []schedule.Ports{s.Recv, s.Send} {
		for port := range ports.All() {
			_, count := s.Range(port)
			shape = append(shape, count)
		}
	}
	return shape
}
