package host_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"tutti/backend"
	"tutti/backend/host"
	"tutti/model"
	"tutti/model/schedule"
)

// network is a schedule that is written out.
type network struct {
	task        schedule.Task
	workers     []schedule.Worker
	steps       [][]schedule.Step
	connections []schedule.Connection
}

func (n *network) Task() schedule.Task                  { return n.task }
func (n *network) Workers() int                         { return len(n.workers) }
func (n *network) Worker(w int) schedule.Worker         { return n.workers[w] }
func (n *network) Step(w, i int) schedule.Step          { return n.steps[w][i] }
func (n *network) Connections() int                     { return len(n.connections) }
func (n *network) Connection(c int) schedule.Connection { return n.connections[c] }
func (n *network) worker(rank int, steps []schedule.Step) { // its connections come later
	n.workers = append(n.workers, schedule.Worker{Rank: rank, Share: 1, Steps: len(steps)})
	n.steps = append(n.steps, slices.Clone(steps))
}

// connect joins workers that exist, by their next free ports.
func (n *network) connect(kind schedule.Kind, storage schedule.Storage, slots int, from, to []int) {
	c := len(n.connections)
	n.connections = append(n.connections, schedule.Connection{
		Kind: kind, Storage: storage, Slots: slots, From: from, To: to, Room: n.task.Count, OutNET: -1, InNET: -1,
	})
	for _, w := range from {
		n.workers[w].Out = append(n.workers[w].Out, c)
	}
	for _, w := range to {
		n.workers[w].In = append(n.workers[w].In, c)
	}
}

// pieces are the steps that do the same with so many parts of all elements.
func (n *network) pieces(parts int64, s schedule.Step) (steps []schedule.Step) {
	size := (n.task.Count + parts - 1) / parts
	for from := int64(0); from < n.task.Count; from += size {
		s.Offset, s.Count = from, min(size, n.task.Count-from)
		steps = append(steps, s)
	}
	return steps
}

func ranks(n int) (list []int) {
	for r := range n {
		list = append(list, r)
	}
	return list
}

// aggregated is AllReduce by one connection that adds up and hands out.
func aggregated(t schedule.Task, storage schedule.Storage) *network {
	n := &network{task: t}
	send := schedule.Step{Input: true, Send: schedule.Port(0)}
	recv := schedule.Step{Output: true, Recv: schedule.Port(0)}
	for rank := range 2 * t.Ranks {
		if rank < t.Ranks {
			n.worker(rank, n.pieces(7, send))
		} else {
			n.worker(rank-t.Ranks, append(n.pieces(7, recv), schedule.Step{Send: schedule.Port(0)}))
		}
	}
	others := make([]int, t.Ranks)
	for rank := range others {
		others[rank] = t.Ranks + rank
	}
	n.connect(schedule.Aggregation, storage, 3, ranks(t.Ranks), others)
	n.connect(schedule.Aggregation, schedule.Staged, 1, others, ranks(t.Ranks)) // the barrier of zero copy
	for rank := range t.Ranks {
		n.steps[rank] = append(n.steps[rank], schedule.Step{Recv: schedule.Port(0)})
		n.workers[rank].Steps++
	}
	for rank := range t.Ranks {
		n.workers[t.Ranks+rank].Steps = len(n.steps[t.Ranks+rank])
	}
	return n
}

// reduced is AllReduce by a reduction to rank 0 and a multicast from it, which
// also passes the sum on to the last rank over a connection of its own kind.
func reduced(t schedule.Task, in, out schedule.Storage) *network {
	n := &network{task: t}
	barrier := schedule.Step{Send: schedule.Port(0)}
	for rank := range t.Ranks {
		n.worker(rank, append([]schedule.Step{barrier}, n.pieces(5, schedule.Step{Input: true, Send: schedule.Port(1)})...))
	}
	root := n.pieces(5, schedule.Step{Recv: schedule.Port(1), Send: schedule.Port(0)})
	n.worker(0, append([]schedule.Step{{Recv: schedule.Port(0)}}, append(root, schedule.Step{Send: schedule.Port(1)})...))
	var readers []int
	for rank := range t.Ranks {
		readers = append(readers, t.Ranks+1+rank)
		n.worker(rank, n.pieces(5, schedule.Step{Recv: schedule.Port(0), Output: true}))
	}
	n.connect(schedule.Reduction, schedule.Staged, 1, ranks(t.Ranks), []int{t.Ranks}) // all have begun
	n.connect(schedule.Reduction, in, 2, ranks(t.Ranks), []int{t.Ranks})
	n.connect(schedule.Multicast, out, 2, []int{t.Ranks}, readers)
	n.connect(schedule.Multicast, schedule.Staged, 1, []int{t.Ranks}, ranks(t.Ranks)) // all has been read
	for rank := range t.Ranks {
		n.steps[rank] = append(n.steps[rank], schedule.Step{Recv: schedule.Port(0)})
		n.workers[rank].Steps++
	}
	return n
}

// Kinds of connections and storage that no algorithm combines give the right
// data, too.
func TestKindsAndStorages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		task := schedule.Task{
			Datatype: rapid.SampledFrom(model.Datatypes()).Draw(t, "datatype"), Redop: rapid.SampledFrom(model.Redops()).Draw(t, "operation"),
			Count: rapid.Int64Range(1, 5000).Draw(t, "count"), Ranks: rapid.IntRange(1, 6).Draw(t, "ranks"), Nodes: 1, Channels: 1,
		}
		in := rapid.SampledFrom([]schedule.Storage{schedule.Staged, schedule.InInput}).Draw(t, "from")
		out := rapid.SampledFrom([]schedule.Storage{schedule.Staged, schedule.InOutput}).Draw(t, "to")
		s := schedule.Schedule(reduced(task, in, out))
		if rapid.Bool().Draw(t, "aggregation") {
			s = aggregated(task, in)
		}
		require.NoError(t, schedule.Verify(s))
		assert.Zero(t, wrong(t, s, rapid.IntRange(1, 4).Draw(t, "hands"), rapid.Uint64().Draw(t, "seed")))
	})
}

// pair is an exchange that needs two credits.
func pair(slots int) *network {
	n := &network{task: schedule.Task{Ranks: 2, Count: 2, Nodes: 1, Channels: 1, Datatype: model.Float32}}
	var steps []schedule.Step
	for i := range int64(2) {
		steps = append(steps, schedule.Step{Input: true, Send: schedule.Port(0), Offset: i, Count: 1})
	}
	for i := range int64(2) {
		steps = append(steps, schedule.Step{Recv: schedule.Port(0), Input: true, Output: true, Offset: i, Count: 1})
	}
	n.worker(0, steps)
	n.worker(1, steps)
	n.connect(schedule.PointToPoint, schedule.Staged, slots, []int{0}, []int{1})
	n.connect(schedule.PointToPoint, schedule.Staged, slots, []int{1}, []int{0})
	return n
}

// A schedule that deadlocks ends, and the error says who waits for what.
func TestDeadlock(t *testing.T) {
	assert.Zero(t, wrong(t, pair(2), 2, 0))
	for slots, want := range map[int]string{
		0: "deadlock: rank 0, channel 0, ring worker, step 0 of 4 waits for ever for one of 0 slots to worker [1]",
		1: "deadlock: rank 0, channel 0, ring worker, step 1 of 4 waits for ever for one of 1 slots to worker [1]",
	} {
		e, err := host.New(3).Prepare(pair(slots))
		require.NoError(t, err)
		_, err = e.Run(context.Background(), 1)
		assert.EqualError(t, err, want)
	}
	n := pair(2)
	n.steps[0][1].Send = schedule.Ports{}
	e, err := host.New(3).Prepare(n)
	require.NoError(t, err)
	_, err = e.Run(context.Background(), 1)
	assert.EqualError(t, err, "deadlock: rank 1, channel 0, ring worker, step 3 of 4 waits for ever for an item from worker [0]")
}

// A run ends when its context does.
func TestCancellation(t *testing.T) {
	s, err := builder.Build(schedule.Task{Algorithm: model.Ring, Protocol: model.LL, Datatype: model.Float16, Count: 1 << 20, Channels: 2, Nodes: 1}, 8)
	require.NoError(t, err)
	e, err := host.New(0).Prepare(s)
	require.NoError(t, err)
	ctx, stop := context.WithTimeoutCause(context.Background(), 20*time.Millisecond, errors.New("too slow"))
	defer stop()
	_, err = e.Run(ctx, 1<<30)
	assert.EqualError(t, err, "given up: too slow")
	_, err = e.Run(ctx, 1)
	assert.EqualError(t, err, "given up: too slow")
	m, err := backend.Measure(context.Background(), e, s.Task(), backend.Method{Check: true})
	require.NoError(t, err)
	assert.Zero(t, m.Wrong, "after a run that was given up")
}

// Schedules that Verify refuses are errors, not panics.
func TestUnverifiedSchedules(t *testing.T) {
	for want, change := range map[string]func(*network){
		"rank 0, channel 0, ring worker, step 0 of 4 names connection 9 of 2: verify the schedule":                             func(n *network) { n.workers[0].Out = []int{9} },
		"rank 0, channel 0, ring worker, step 0 of 4 names connection 1, which does not name it: verify the schedule":          func(n *network) { n.workers[0].Out = []int{1} },
		"rank 0, channel 0, ring worker, step 0 of 4: elements 7 to 8 are not in rank 0's buffer: verify the schedule":         func(n *network) { n.steps[0][0].Offset = 7 },
		"rank 1, channel 0, ring worker, step 2 of 4: wants 1 elements and was sent 2: verify the schedule":                    func(n *network) { n.steps[0][0].Count = 2 },
		"rank 0, channel 0, ring worker, step 0 of 4: has neither input nor items: verify the schedule":                        func(n *network) { n.steps[0][0].Input = false },
		"rank 0, channel 0, ring worker, step 0 of 4: uses ports {0 0} in and {1 2} out, and has 1 and 1: verify the schedule": func(n *network) { n.steps[0][0].Send = schedule.Port(1) },
		"rank 0, channel 0, ring worker, step 3 of 4: receives and sends blocks: verify the schedule":                          func(n *network) { n.steps[0][3].Stride, n.steps[0][3].Send = 1, schedule.Port(0) },
		"allreduce of 1024 TiB on 2 ranks needs 4194304.0 GiB of memory for inputs and outputs, and this machine has":          func(n *network) { n.task.Count = 1 << 48 },
	} {
		n := pair(2)
		change(n)
		e, err := host.New(2).Prepare(n)
		if err == nil {
			_, err = e.Run(context.Background(), 1)
		}
		assert.ErrorContains(t, err, want)
	}
}

// Reads and writes stay within the buffers.
func TestBounds(t *testing.T) {
	e, err := host.New(1).Prepare(pair(2))
	require.NoError(t, err)
	require.NoError(t, e.Write(1, backend.Input, 4, make([]byte, 4)))
	assert.EqualError(t, e.Write(1, backend.Input, 5, make([]byte, 4)), "bytes 5 to 9 of rank 1's buffer, which has 8")
	assert.EqualError(t, e.Read(2, backend.Output, 0, nil), "rank 2: want one of 2")
}

// The data of the case that texts on NCCL's ring work by hand: two ranks, 16
// elements, chunks of 8.
func ExampleHost() {
	s, err := builder.Build(schedule.Task{Algorithm: model.Ring, Protocol: model.LL, Datatype: model.Int8, Count: 16, Channels: 1, Nodes: 1}, 2)
	if err != nil {
		fmt.Println(err)
		return
	}
	e, err := host.New(0).Prepare(s)
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = e.Write(0, backend.Input, 0, []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15})
	_ = e.Write(1, backend.Input, 0, []byte{100, 100, 100, 100, 100, 100, 100, 100, 50, 50, 50, 50, 50, 50, 50, 50})
	if _, err := e.Run(context.Background(), 1); err != nil {
		fmt.Println(err)
	}
	sum := make([]byte, 16)
	_ = e.Read(1, backend.Output, 0, sum)
	fmt.Println(sum)
	// Output: [100 101 102 103 104 105 106 107 58 59 60 61 62 63 64 65]
}
