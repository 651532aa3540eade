package backend_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"tutti/backend"
	"tutti/backend/host"
	"tutti/model"
	"tutti/model/schedule"
	"tutti/model/units"
)

// task draws a call that one shot carries out.
func task(t *rapid.T) schedule.Task {
	return schedule.Task{
		Collective: rapid.SampledFrom(model.OneShot.Collectives()).Draw(t, "collective"),
		Algorithm:  model.OneShot, Protocol: model.LL, Channels: 1, Nodes: 1,
		Datatype: rapid.SampledFrom(model.Datatypes()).Draw(t, "datatype"),
		Redop:    rapid.SampledFrom(model.Redops()).Draw(t, "operation"),
		Count:    rapid.Int64Range(1, 40000).Draw(t, "count"),
		Ranks:    rapid.IntRange(1, 8).Draw(t, "ranks"),
	}
}

// Whatever is changed in a right result, the check finds.
func TestCheckFindsOneWrongElement(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		task := task(t)
		e, err := host.New(2).Prepare(schedule.NewOneShot(task))
		require.NoError(t, err)
		data := backend.NewData(task, rapid.Uint64().Draw(t, "seed"))
		require.NoError(t, data.Fill(e))
		_, err = e.Run(context.Background(), 1)
		require.NoError(t, err)
		wrong, err := data.Check(e)
		require.NoError(t, err)
		require.Zero(t, wrong)

		rank := rapid.IntRange(0, task.Ranks-1).Draw(t, "rank")
		n := task.Output(rank).Len()
		if n == 0 {
			return
		}
		size := task.Datatype.Size()
		at := units.Bytes(rapid.Int64Range(0, n-1).Draw(t, "element")) * size
		element := make([]byte, size)
		require.NoError(t, e.Read(rank, backend.Output, at, element))
		element[size-1] ^= 0x40 // the top of the exponent, or of an integer
		require.NoError(t, e.Write(rank, backend.Output, at, element))
		wrong, err = data.Check(e)
		require.NoError(t, err)
		assert.Equal(t, int64(1), wrong)
	})
}

// Outputs that nobody wrote are wrong, but for numbers that are -1 by chance.
func TestCheckFindsMissingOutput(t *testing.T) {
	task := schedule.Task{Collective: model.AllReduce, Datatype: model.Int32, Count: 1000, Channels: 1, Ranks: 3, Nodes: 1}
	e, err := host.New(1).Prepare(schedule.NewOneShot(task))
	require.NoError(t, err)
	data := backend.NewData(task, 1)
	require.NoError(t, data.Fill(e))
	wrong, err := data.Check(e)
	require.NoError(t, err)
	assert.Equal(t, int64(3000), wrong)
}

// In place, an element of input and output has one place in memory.
func ExampleOverlap() {
	for _, c := range []model.Collective{model.AllReduce, model.AllGather, model.ReduceScatter, model.Broadcast} {
		t := schedule.Task{Collective: c, Count: 100, Ranks: 4, Nodes: 1, InPlace: true}
		in, out, together := backend.Overlap(t, 2)
		fmt.Printf("%-13v input at %3d, output at %3d, in one memory: %v\n", c, in, out, together)
	}
	// Output:
	// allreduce     input at   0, output at   0, in one memory: true
	// allgather     input at 200, output at   0, in one memory: true
	// reducescatter input at   0, output at 200, in one memory: true
	// broadcast     input at   0, output at   0, in one memory: false
}
