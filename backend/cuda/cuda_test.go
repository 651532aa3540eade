package cuda

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"tutti/backend"
	"tutti/backend/cuda/driver"
	"tutti/model"
	"tutti/model/schedule"
	"tutti/model/units"
	"tutti/topo"
	"tutti/topo/search"
)

// The structs are laid out as the static_asserts of the kernels say.
func TestLayouts(t *testing.T) {
	assert.EqualValues(t, 248, unsafe.Sizeof(args{}))
	assert.EqualValues(t, 456, unsafe.Sizeof(move{}))
	assert.EqualValues(t, 16, unsafe.Sizeof(workerRecord{}))
	assert.EqualValues(t, 34944, controlBytes)
	for ranks := 2; ranks <= maxRanks; ranks++ {
		l := newLayout(ranks, 64<<20)
		assert.Less(t, uint64(controlBytes), l.ll)
		assert.Less(t, l.ll, l.ll128)
		assert.Less(t, l.ll128, l.scratch)
	}
}

// Whatever fits, every unit is of one block and one rank, and slots hold it; and
// every rank has something from every other.
func TestFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ranks := rapid.IntRange(2, maxRanks).Draw(t, "ranks")
		launch := Launch{
			Algorithm: Algorithm(rapid.IntRange(0, int(TwoShotPull)).Draw(t, "algorithm")),
			Blocks:    rapid.IntRange(1, 300).Draw(t, "blocks"), Threads: 512, Rounds: 1,
		}
		bytes := uint64(rapid.Int64Range(1, 1<<28).Draw(t, "bytes"))
		l := newLayout(ranks, 512<<20)
		s, err := l.fit(launch, bytes, ranks)
		if err != nil {
			return
		}
		assert.LessOrEqual(t, s.blocks, launch.Blocks)
		assert.GreaterOrEqual(t, uint64(s.units)*s.bytesPerUnit+s.tail, bytes)
		part := s.units
		if s.sendsToOwners {
			assert.Positive(t, s.chunk)
			assert.Equal(t, s.units, s.chunk*uint32(ranks)+s.extra)
			part = s.chunk + min(1, s.extra)
		}
		assert.GreaterOrEqual(t, uint64(s.stripe)*uint64(s.blocks), uint64(part))
		if launch.Algorithm.Protocol() != model.Simple {
			assert.LessOrEqual(t, s.stripe, s.capacity)
		} else if launch.Algorithm == TwoShotPush {
			assert.LessOrEqual(t, part, s.capacity)
		}
	})
}

// What is chosen for a size also fits it.
func TestChoose(t *testing.T) {
	for ranks := 2; ranks <= maxRanks; ranks++ {
		l := newLayout(ranks, 512<<20)
		for bytes := int64(1); bytes <= 256<<20; bytes = bytes*3/2 + 1 {
			launch := Choose(ranks, bytes)
			if launch.Algorithm == Hybrid {
				continue
			}
			_, err := l.fit(launch, uint64(bytes), ranks)
			assert.NoError(t, err, "%d ranks, %d bytes: %v", ranks, bytes, launch)
		}
	}
}

// Multicast is refused wherever NCCL_NVLS_ENABLE is 0, whoever asks; where it was
// not asked for; and where a GPU lacks it.
func TestMulticastLock(t *testing.T) {
	able, unable := []*driver.GPU{{Multicast: true}}, []*driver.GPU{{Multicast: true}, {Index: 1, Name: "old"}}
	for _, c := range []struct {
		asked  bool
		enable string
		gpus   []*driver.GPU
		want   string
	}{
		{true, "0", able, "NCCL_NVLS_ENABLE is 0"},
		{true, " 0 ", able, "NCCL_NVLS_ENABLE is 0"},
		{false, "0", able, "NCCL_NVLS_ENABLE is 0"},
		{false, "1", able, "must be asked for"},
		{false, "", able, "must be asked for"},
		{true, "1", unable, "GPU 1 (old) does not support it"},
	} {
		err := unlockMulticast(c.asked, c.enable, c.gpus)
		assert.ErrorIs(t, err, ErrMulticastLocked)
		assert.ErrorContains(t, err, c.want)
	}
	assert.NoError(t, unlockMulticast(true, "2", able))
	t.Setenv("NCCL_NVLS_ENABLE", "0")
	_, err := (&Comm{ranks: []*rank{{gpu: able[0]}}}).OpenNVLS(true, 1<<20)
	assert.ErrorIs(t, err, ErrMulticastLocked)
}

// The moves of every schedule do what the schedule means: here they are carried
// out one after the other in a memory that stands for that of all GPUs, for two
// calls, as the kernel does.
func TestPrograms(t *testing.T) {
	machine, err := topo.Open("h200x4")
	require.NoError(t, err)
	cluster, err := topo.NewCluster(machine, 1, 0, topo.RailOptimised)
	require.NoError(t, err)
	graphs := search.All(cluster)
	for collective := model.AllReduce; collective <= model.Exchange; collective++ {
		for _, algorithm := range model.Algorithms() {
			for _, inPlace := range []bool{false, true} {
				task := schedule.Task{
					Collective: collective, Algorithm: algorithm, Protocol: model.Simple, Datatype: model.Float64, Redop: model.Sum,
					Count: 1001, InPlace: inPlace, Channels: 2, Ranks: 4, Nodes: 1,
				}
				s, err := schedule.New(task, cluster, graphs)
				if err != nil || schedule.Verify(s) != nil {
					continue // the cluster cannot run it
				}
				t.Run(fmt.Sprintf("%v/%v/%v", collective, algorithm, inPlace), func(t *testing.T) { emulate(t, s) })
			}
		}
	}
}

// emulate runs a program of float64 sums.
func emulate(t *testing.T, s schedule.Schedule) {
	task := s.Task()
	p := &program{schedule: s, task: task}
	x := &execution{Work: Work{Buffers: Buffers{Call: task}}, program: *p}
	var space []byte
	alloc := func(bytes int64) driver.Pointer {
		at := len(space)
		space = append(space, make([]byte, (bytes+15)/16*16+16)...)
		return driver.Pointer(at)
	}
	space = make([]byte, 16) // no place is at 0
	require.NoError(t, x.place(func(_ int, bytes int64) (driver.Pointer, error) { return alloc(bytes), nil }))
	moves, err := x.moves()
	require.NoError(t, err)
	float := func(at driver.Pointer) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(space[at:])) }
	set := func(at driver.Pointer, v float64) { binary.LittleEndian.PutUint64(space[at:], math.Float64bits(v)) }
	counter := func(c count) *uint32 { return (*uint32)(unsafe.Pointer(&space[c.flag])) }

	data := backend.NewData(task, 1)
	require.NoError(t, data.Fill(emulated{x, space}))
	for call := range uint32(1 + btoi(!task.InPlace)) {
		next := make([]int, len(moves))
		for progress := true; progress; {
			progress = false
			for w := range moves {
			worker:
				for next[w] < len(moves[w]) {
					m := &moves[w][next[w]]
					for _, c := range m.wait[:m.waits] {
						if int32(*counter(c)-(c.before+call*c.each)) < 0 {
							break worker
						}
					}
					for i := driver.Pointer(0); i < driver.Pointer(m.bytes); i += 8 {
						sum := float(m.source[0] + i)
						for _, from := range m.source[1:m.sources] {
							sum += float(from + i)
						}
						for _, to := range m.target[:m.targets] {
							set(to+i, sum)
						}
					}
					for _, c := range m.post[:m.posts] {
						*counter(c) = c.before + call*c.each
					}
					next[w]++
					progress = true
				}
			}
		}
		for w := range moves {
			require.Equal(t, len(moves[w]), next[w], "worker %d is stuck in call %d", w, call)
		}
	}
	wrong, err := data.Check(emulated{x, space})
	require.NoError(t, err)
	assert.Zero(t, wrong)
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// emulated gives the check access to buffers in the emulator's memory.
type emulated struct {
	*execution
	space []byte
}

func (e emulated) Write(rank int, side backend.Side, at units.Bytes, data []byte) error {
	p, err := e.part(rank, side, at, len(data))
	copy(e.space[p:], data)
	return err
}

func (e emulated) Read(rank int, side backend.Side, at units.Bytes, into []byte) error {
	p, err := e.part(rank, side, at, len(into))
	copy(into, e.space[p:])
	return err
}

func (e emulated) Repeat(rank int, side backend.Side, pattern []byte) error {
	p, err := e.part(rank, side, 0, 0)
	for to := e.space[p:][:e.bytes(rank, side)]; len(to) > 0 && err == nil; {
		to = to[copy(to, pattern):]
	}
	return err
}
