package host_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"tutti/backend"
	"tutti/backend/host"
	"tutti/model"
	"tutti/model/schedule"
	"tutti/model/schedule/scheduletest"
)

var builder scheduletest.Builder

// wrong runs a schedule on real data, twice, and counts the elements that differ
// from the reference.
func wrong(t require.TestingT, s schedule.Schedule, hands int, seed uint64) int64 {
	e, err := host.New(hands).Prepare(s)
	require.NoError(t, err)
	m, err := backend.Measure(context.Background(), e, s.Task(), backend.Method{Iterations: 1, Check: true, Seed: seed})
	require.NoError(t, err)
	require.NoError(t, e.Close())
	return m.Wrong
}

// Whatever the algorithm, type and operation, the data is what the reference
// says.
func TestRandomSchedulesComputeTheReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		task := rapid.Custom(func(t *rapid.T) schedule.Task {
			algorithm := rapid.SampledFrom(model.Algorithms()).Draw(t, "algorithm")
			task := schedule.Task{
				Algorithm:  algorithm,
				Collective: rapid.SampledFrom(algorithm.Collectives()).Draw(t, "collective"),
				Protocol:   rapid.SampledFrom(algorithm.Protocols()).Draw(t, "protocol"),
				Datatype:   model.Datatype(rapid.IntRange(0, int(model.BFloat16)).Draw(t, "datatype")),
				Redop:      model.Redop(rapid.IntRange(0, int(model.Avg)).Draw(t, "operation")),
				Count:      rapid.OneOf(rapid.Int64Range(0, 70), rapid.Int64Range(0, 1<<18)).Draw(t, "count"),
				InPlace:    rapid.Bool().Draw(t, "in place"),
				Channels:   rapid.IntRange(1, 4).Draw(t, "channels"),
				Nodes:      rapid.IntRange(1, 3).Draw(t, "nodes"),
			}
			task.Ranks = task.Nodes * rapid.IntRange(1, 8).Draw(t, "GPUs")
			task.Root = rapid.IntRange(0, task.Ranks-1).Draw(t, "root")
			return task
		}).Filter(scheduletest.Possible).Draw(t, "task")
		s, err := builder.Build(task, task.Ranks/task.Nodes)
		require.NoError(t, err)
		hands := rapid.IntRange(1, 5).Draw(t, "hands")
		assert.Zero(t, wrong(t, s, hands, rapid.Uint64().Draw(t, "seed")))
	})
}
