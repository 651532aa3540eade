package cuda

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"tutti/backend"
	"tutti/backend/cuda/driver"
	"tutti/kernels"
	"tutti/kernels/emulator"
	"tutti/model"
	"tutti/model/schedule"
	"tutti/model/units"
	"tutti/topo"
	"tutti/topo/search"
)

// The hot kernels' own PTX, emulated on the CPU: calls of all collectives, back to
// back, that differ in whatever can differ, give what the reference says.
func TestKernels(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newEmulatedHost(t, rapid.IntRange(2, 4).Draw(t, "ranks"), rapid.Uint64().Draw(t, "seed"))
		var calls []*emulatedCall
		for range rapid.IntRange(1, 6).Draw(t, "calls") {
			task, launch := h.draw(t)
			if c := h.queue(t, task, launch); c != nil {
				calls = append(calls, c)
			}
		}
		require.NoError(t, h.machine.Run())
		for _, c := range calls {
			wrong, err := c.data.Check(c)
			require.NoError(t, err)
			require.Zero(t, wrong, "%s", c.what)
		}
	})
}

// Where a rank does not take part, every kernel of the others ends by the clock, and
// says what it waited for.
func TestKernelsGiveUp(t *testing.T) {
	for collective := model.AllReduce; collective <= model.Exchange; collective++ {
		for _, a := range able(collective) {
			h := newEmulatedHost(t, 3, 1)
			h.options.Timeout, h.absent, h.faults = 3000, 1, h.machine.Alloc(8*3)
			task := schedule.Task{Collective: collective, Datatype: model.Float32, Count: 360, Ranks: 3, Nodes: 1}
			require.NotNil(t, h.queue(t, task, Launch{Algorithm: a, Blocks: 2, Threads: 64, Rounds: 2}), "%v by %v", collective, a)
			require.NoError(t, h.machine.Run(), "%v by %v", collective, a)
			told := 0
			for _, rank := range []int{0, 2} {
				assert.NotZero(t, h.machine.Bytes(uint64(h.ranks[rank].region))[0], "rank %d of %v by %v goes on", rank, collective, a)
				told += int(h.machine.Bytes(h.faults)[8*rank+7])
			}
			assert.NotZero(t, told, "%v by %v", collective, a)
		}
	}
}

// emulatedHost is a communicator in the memory of a machine that is emulated.
type emulatedHost struct {
	*Comm
	machine *emulator.Machine
	absent  int    // a rank that takes no part, or none
	faults  uint64 // memory of a word for each rank, where a rank is absent
}

func newEmulatedHost(t require.TestingT, ranks int, seed uint64) *emulatedHost {
	h := &emulatedHost{Comm: &Comm{options: Options{Timeout: time.Hour}}, machine: emulator.New(seed), absent: none}
	// Small slots, so that they are full.
	const blocks, lines = 3, 3
	h.layout = layout{ll: align, llLines: lines, ll128Lines: lines, scratchPacks: 1 << 10}
	require.Less(t, controlBytes, align)
	h.layout.ll128 = h.layout.ll + blocks*4*uint64(ranks)*lines*lineBytes
	h.layout.slots = h.layout.ll128 + blocks*4*uint64(ranks)*lines*lineBytes
	h.layout.scratch = h.layout.slots + blocks*slotsEach*slotBytes
	h.layout.bytes = int64(h.layout.scratch) + int64(ranks)*int64(h.layout.scratchPacks)*packBytes
	for range ranks {
		h.ranks = append(h.ranks, &rank{region: driver.Pointer(h.machine.Alloc(int(h.layout.bytes))), fault: &driver.Host{}})
	}
	return h
}

// datatypesOf are those with which each operation is tested: of every kind.
var datatypesOf = map[model.Redop]model.Datatype{model.Sum: model.Float32, model.Avg: model.Float16, model.Max: model.Int64}

// able lists the algorithms that carry out a collective by kernels alone.
func able(c model.Collective) []Algorithm {
	if c == model.AllReduce {
		return []Algorithm{OneShotLL, OneShotLL128, TwoShotLL, TwoShotLL128, TwoShotPush}
	}
	all := []Algorithm{OneShotLL, OneShotLL128, TwoShotLL128, OneShotPush, OneShotPull, RingPush}
	return slices.DeleteFunc(all, func(a Algorithm) bool { return !a.does(c) })
}

// draw makes up a call, and a launch that may suit it.
func (h *emulatedHost) draw(t *rapid.T) (schedule.Task, Launch) {
	task := schedule.Task{
		Collective: model.Collective(rapid.IntRange(0, int(model.Exchange)).Draw(t, "collective")),
		Redop:      rapid.SampledFrom([]model.Redop{model.Sum, model.Avg, model.Max}).Draw(t, "op"),
		Count:      rapid.OneOf(rapid.Int64Range(1, 20), rapid.Int64Range(1, 3000)).Draw(t, "count"),
		Ranks:      len(h.ranks), Nodes: 1, Root: rapid.IntRange(0, len(h.ranks)-1).Draw(t, "root"),
	}
	task.Datatype = datatypesOf[task.Redop]
	if !task.Collective.Reduces() {
		task.Datatype = rapid.SampledFrom(model.Datatypes()).Draw(t, "datatype")
	}
	if rapid.Bool().Draw(t, "aligned") {
		task.Count = (task.Count + 15) / 16 * 16
	}
	task.InPlace = task.CanOverlap() && rapid.Bool().Draw(t, "in place")
	launch := Launch{
		Algorithm: rapid.SampledFrom(able(task.Collective)).Draw(t, "algorithm"),
		Blocks:    rapid.IntRange(1, 3).Draw(t, "blocks"), Threads: 32 * rapid.IntRange(1, 4).Draw(t, "warps"),
		Rounds: rapid.IntRange(1, 3).Draw(t, "rounds"),
	}
	if launch.Algorithm == RingPush { // through more slots than there are
		launch.Rounds *= slotsEach / 2
	}
	return task, launch
}

// emulatedCall is a call with its memory.
type emulatedCall struct {
	Buffers
	machine *emulator.Machine
	data    *backend.Data
	what    string
}

// queue queues a call on all ranks, or returns nil if the launch does not suit.
func (h *emulatedHost) queue(t require.TestingT, task schedule.Task, l Launch) *emulatedCall {
	c := &emulatedCall{Buffers: Buffers{Call: task}, machine: h.machine, data: backend.NewData(task, rand.Uint64()), what: fmt.Sprintf("%+v by %v", task, l)}
	require.NoError(t, c.Place(func(_ int, bytes int64) (driver.Pointer, error) {
		return driver.Pointer(h.machine.Alloc(int(bytes))), nil
	}))
	input, output := c.Side(backend.Input), c.Side(backend.Output)
	if task.Collective == model.AllReduce {
		call := Call{Input: input, Output: output, Count: task.Count, Datatype: task.Datatype, Redop: task.Redop}
		if l.Algorithm.hybrid() || !h.queueAllReduce(t, call, l) {
			return nil
		}
	} else {
		x, err := h.newCollective(task, l, input, output)
		if err != nil {
			return nil
		}
		for rank := range h.ranks {
			h.launch(t, rank, moduleOf(task), x.kernel(), x.shape.blocks, l.Threads, x.parameters(rank))
		}
	}
	require.NoError(t, c.data.Fill(c))
	return c
}

// queueAllReduce does so as [Comm.AllReduce] does.
func (h *emulatedHost) queueAllReduce(t require.TestingT, call Call, l Launch) bool {
	s, err := h.layout.fit(l, call.bytes(), len(h.ranks))
	if err != nil {
		return false
	}
	for rank := range h.ranks {
		module := moduleKey{call.Datatype, call.Redop}.name()
		h.launch(t, rank, module, l.Algorithm.String(), s.blocks, l.Threads, h.allReduceArgs(call, l, s, rank).pointer())
	}
	return s.tail == 0 || h.queueAllReduce(t, call.tail(int64(s.tail)), tailLaunch)
}

// moduleOf names the module with a collective's kernels.
func moduleOf(t schedule.Task) string {
	if !t.Collective.Reduces() {
		return "common"
	}
	return moduleKey{t.Datatype, t.Redop}.name()
}

// programs are those that were read: each rank has its own.
var programs = map[string]*emulator.Program{}

func (h *emulatedHost) launch(t require.TestingT, rank int, module, kernel string, blocks, threads int, params unsafe.Pointer) {
	key := fmt.Sprint(module, kernel, rank, len(h.ranks))
	if programs[key] == nil {
		ptx, err := kernels.PTX(module, kernel)
		require.NoError(t, err)
		programs[key], err = emulator.Parse(specialise(ptx, rank, len(h.ranks)))
		require.NoError(t, err)
	}
	size := unsafe.Sizeof(args{})
	if slices.Contains([]string{deliverKernels[OneShotPush], collectKernels[OneShotPush], collectKernels[OneShotPull], deliverKernels[RingPush], collectKernels[RingPush]}, kernel) {
		size = unsafe.Sizeof(sharesArgs{})
	} else if strings.HasPrefix(kernel, "interpreter") {
		size = unsafe.Sizeof(programArgs{})
	}
	if rank == h.absent {
		return
	}
	if h.faults != 0 {
		(*args)(params).fault = driver.Pointer(h.faults) + driver.Pointer(8*rank) // the args come first in all
	}
	require.NoError(t, h.machine.Launch(rank, programs[key], kernel, blocks, threads, unsafe.Slice((*byte)(params), size)))
}

func (c *emulatedCall) Write(rank int, side backend.Side, at units.Bytes, data []byte) error {
	p, err := c.part(rank, side, at, len(data))
	copy(c.machine.Bytes(uint64(p)), data)
	return err
}

func (c *emulatedCall) Read(rank int, side backend.Side, at units.Bytes, into []byte) error {
	p, err := c.part(rank, side, at, len(into))
	copy(into, c.machine.Bytes(uint64(p)))
	return err
}

func (c *emulatedCall) Repeat(rank int, side backend.Side, pattern []byte) error {
	for at, all := int64(0), c.bytes(rank, side); at < all; at += int64(len(pattern)) {
		if err := c.Write(rank, side, units.Bytes(at), pattern[:min(int64(len(pattern)), all-at)]); err != nil {
			return err
		}
	}
	return nil
}

func (c *emulatedCall) Run(context.Context, int) (units.Time, error) { return 0, c.machine.Run() }
func (c *emulatedCall) Close() error                                 { return nil }

// The interpreter's PTX gives what the schedule means too, call after call.
func TestInterpreter(t *testing.T) {
	machine, err := topo.Open("h200x4")
	require.NoError(t, err)
	cluster, err := topo.NewCluster(machine, 1, 0, topo.RailOptimised)
	require.NoError(t, err)
	graphs := search.All(cluster)
	rapid.Check(t, func(t *rapid.T) {
		algorithm := rapid.SampledFrom([]model.Algorithm{model.Ring, model.Tree, model.OneShot, model.TwoShot, model.P2P, model.SimpleRing}).Draw(t, "algorithm")
		task := schedule.Task{
			Collective: rapid.SampledFrom(algorithm.Collectives()).Draw(t, "collective"), Algorithm: algorithm,
			Protocol: rapid.SampledFrom(model.Protocols()).Draw(t, "protocol"),
			Redop:    rapid.SampledFrom([]model.Redop{model.Sum, model.Avg, model.Max}).Draw(t, "op"),
			Count:    rapid.OneOf(rapid.Int64Range(1, 400), rapid.Int64Range(1, 2000)).Draw(t, "count"), Root: rapid.IntRange(0, 3).Draw(t, "root"),
			Channels: rapid.IntRange(1, 2).Draw(t, "channels"), Ranks: 4, Nodes: 1,
		}
		task.InPlace = task.CanOverlap() && rapid.Bool().Draw(t, "in place")
		if task.Datatype = datatypesOf[task.Redop]; !task.Collective.Reduces() {
			task.Redop = model.Sum
			task.Datatype = model.Float32
		}
		s, err := schedule.New(task, cluster, graphs)
		require.NoError(t, err)
		if task.Protocol != model.Simple && !staged(s) {
			return
		}
		h := newEmulatedHost(t, task.Ranks, rapid.Uint64().Draw(t, "seed"))
		alloc := func(_ int, bytes int64) (driver.Pointer, error) {
			return driver.Pointer(h.machine.Alloc(int((bytes + 15) / 16 * 16))), nil
		}
		x := &execution{Work: Work{Buffers: Buffers{Call: task}}, program: program{schedule: s, task: task}}
		require.NoError(t, x.place(alloc))
		all, err := x.transfers()
		require.NoError(t, err)
		put := func(data []byte) driver.Pointer {
			p := h.machine.Alloc(len(data))
			copy(h.machine.Bytes(p), data)
			return driver.Pointer(p)
		}
		workers := make([][]workerRecord, task.Ranks)
		for w, transfers := range all {
			if len(transfers) > 0 {
				rank := s.Worker(w).Rank
				workers[rank] = append(workers[rank], workerRecord{moves: put(encode(task, transfers)), count: uint32(len(transfers))})
			}
		}
		calls := 1
		if !task.InPlace {
			calls = 2
		}
		none := make([]driver.Pointer, task.Ranks)
		for rank, list := range workers {
			if len(list) == 0 {
				continue
			}
			table := put(raw(list))
			for range calls {
				a := &programArgs{workers: table, args: *h.Comm.args(Call{Input: none, Output: none, Datatype: task.Datatype}, rank)}
				module := moduleKey{task.Datatype, task.Redop}.name()
				h.launch(t, rank, module, interpreters[task.Protocol].kernel, len(list), 96, unsafe.Pointer(a))
			}
		}
		c := &emulatedCall{Buffers: x.Buffers, machine: h.machine, data: backend.NewData(task, 1)}
		require.NoError(t, c.data.Fill(c))
		require.NoError(t, h.machine.Run())
		wrong, err := c.data.Check(c)
		require.NoError(t, err)
		require.Zero(t, wrong, "%+v", task)
	})
}
