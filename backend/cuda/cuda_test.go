package cuda

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
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
	assert.EqualValues(t, 464, unsafe.Sizeof(averageMove{}))
	assert.EqualValues(t, 600, unsafe.Sizeof(lineMove{}))
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
			Algorithm: Algorithm(rapid.IntRange(0, int(TwoShotPush)).Draw(t, "algorithm")),
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

// Pieces of the hybrids follow one another through the whole buffer, and those of a
// chunk lie in its owner's scratch as one.
func TestPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ranks := rapid.IntRange(2, maxRanks).Draw(t, "ranks")
		packs := uint64(rapid.Int64Range(int64(ranks), 1<<24).Draw(t, "packs"))
		c := &Comm{layout: newLayout(ranks, int64(packs*packBytes)+1<<20)}
		for range ranks {
			c.ranks = append(c.ranks, &rank{region: 1 << 40})
		}
		launch := Launch{Algorithm: Hybrid, Blocks: 132, Threads: 512, Rounds: rapid.IntRange(1, maxPieces).Draw(t, "pieces")}
		require.NoError(t, c.fitsHybrid(launch, packs))
		h := hybrid{Comm: c, launch: launch, packs: packs}
		next := driver.Pointer(0)
		for owner := range ranks {
			slot := h.slot(owner, ranks-1, 0)
			for k := range launch.Rounds {
				offset, bytes := h.piece(owner, k)
				require.Equal(t, next, offset)
				require.Equal(t, slot, h.slot(owner, ranks-1, k))
				next, slot = offset+driver.Pointer(bytes), slot+driver.Pointer(bytes)
			}
			require.LessOrEqual(t, slot, c.ranks[owner].region+driver.Pointer(c.layout.bytes))
		}
		require.EqualValues(t, packs*packBytes, next)
	})
}

// Buffers that kernels cannot work on are refused before anything is queued.
func TestValidate(t *testing.T) {
	gpus := []*driver.GPU{{Index: 0}, {Index: 1}}
	c := &Comm{ranks: []*rank{{gpu: gpus[0]}, {gpu: gpus[1]}}}
	streams := []*driver.Stream{{GPU: gpus[0]}, {GPU: gpus[1]}}
	whole := []driver.Pointer{4096, 8192}
	for want, call := range map[string]Call{
		"1 inputs, 2 outputs and 2 streams: want one of each for 2 ranks":                      {Input: whole[:1], Output: whole},
		"count -1: want 0 or more":                                                             {Input: whole, Output: whole, Count: -1},
		"rank 1 has a buffer at 0x2004: want an address that is a multiple of 16 and is not 0": {Input: whole, Output: []driver.Pointer{4096, 8196}},
		"rank 0 has a buffer at 0x0: want an address that is a multiple of 16 and is not 0":    {Input: []driver.Pointer{0, 8192}, Output: whole},
	} {
		assert.EqualError(t, c.validate(call, streams), want)
	}
	streams[0], streams[1] = streams[1], streams[0]
	assert.EqualError(t, c.validate(Call{Input: whole, Output: whole}, streams), "rank 0 has a stream of GPU 1: want GPU 0")
}

// What is chosen for a size also fits it.
func TestChoose(t *testing.T) {
	for ranks := 2; ranks <= maxRanks; ranks++ {
		l := newLayout(ranks, 512<<20)
		for bytes := int64(1); bytes <= 256<<20; bytes = bytes*3/2 + 1 {
			launch := Choose(ranks, bytes)
			if launch.Algorithm.hybrid() {
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
// calls, as the kernels do.
func TestPrograms(t *testing.T) {
	machine, err := topo.Open("h200x4")
	require.NoError(t, err)
	cluster, err := topo.NewCluster(machine, 1, 0, topo.RailOptimised)
	require.NoError(t, err)
	graphs := search.All(cluster)
	ran := map[model.Protocol]int{}
	for collective := model.AllReduce; collective <= model.Exchange; collective++ {
		for _, algorithm := range model.Algorithms() {
			for _, protocol := range model.Protocols() {
				for variant := range 4 {
					task := schedule.Task{
						Collective: collective, Algorithm: algorithm, Protocol: protocol, Datatype: model.Float64, Redop: model.Sum,
						Count: 1001, InPlace: variant&1 > 0, Channels: 2, Ranks: 4, Nodes: 1,
					}
					if variant&2 > 0 {
						task.Redop = model.Avg
					}
					s, err := schedule.New(task, cluster, graphs)
					if err != nil || schedule.Verify(s) != nil || protocol != model.Simple && !staged(s) || task.Redop == model.Avg && !collective.Reduces() {
						continue // the cluster cannot run it
					}
					ran[protocol]++
					t.Run(fmt.Sprintf("%v/%v/%v/%v/%v", collective, algorithm, protocol, task.Redop, task.InPlace), func(t *testing.T) { emulate(t, s) })
				}
			}
		}
	}
	for _, p := range model.Protocols() {
		assert.Greater(t, ran[p], 20, p)
	}
}

// spaceOfAll is used again by the next program.
var spaceOfAll = make([]byte, 16)

// emulate runs a program of float64 sums or averages.
func emulate(t *testing.T, s schedule.Schedule) {
	task := s.Task()
	x := &execution{Work: Work{Buffers: Buffers{Call: task}}, program: program{schedule: s, task: task}}
	space := spaceOfAll[:16] // no place is at 0
	require.NoError(t, x.place(func(_ int, bytes int64) (driver.Pointer, error) {
		at := len(space)
		space = slices.Grow(space, int(bytes)+32)[:at+int(bytes+15)/16*16+16]
		clear(space[at:])
		return driver.Pointer(at), nil
	}))
	spaceOfAll = space
	all, err := x.transfers()
	require.NoError(t, err)
	data := backend.NewData(task, 1)
	require.NoError(t, data.Fill(emulated{x, space}))
	for call := range uint32(1 + btoi(!task.InPlace)) {
		next := make([]int, len(all))
		for progress := true; progress; {
			progress = false
			for w := range all {
				for next[w] < len(all[w]) && flat(space).try(task, &all[w][next[w]], call) {
					next[w]++
					progress = true
				}
			}
		}
		for w := range all {
			require.Equal(t, len(all[w]), next[w], "worker %d is stuck in call %d", w, call)
		}
	}
	wrong, err := data.Check(emulated{x, space})
	require.NoError(t, err)
	assert.Zero(t, wrong)
}

// flat is the memory of all GPUs.
type flat []byte

func (e flat) float(at driver.Pointer) float64 {
	return math.Float64frombits(binary.LittleEndian.Uint64(e[at:]))
}

func (e flat) set(at driver.Pointer, v float64) {
	binary.LittleEndian.PutUint64(e[at:], math.Float64bits(v))
}

func (e flat) counter(at driver.Pointer) *uint32 { return (*uint32)(unsafe.Pointer(&e[at])) }

// try carries out a move as the kernel of the protocol does, unless it must wait.
func (e flat) try(task schedule.Task, t *transfer, call uint32) bool {
	average := 1.0
	if task.Redop == model.Avg && task.Collective.Reduces() {
		average = float64(task.Ranks)
	}
	if task.Protocol != model.Simple {
		m := t.inLines()
		return e.tryLines(&m, call, int64(wordsPerLine[task.Protocol]), average)
	}
	m := t.apart()
	for _, c := range m.wait[:m.waits] {
		if int32(*e.counter(c.flag)-(c.before+call*c.each)) < 0 {
			return false
		}
	}
	for i := driver.Pointer(0); i < driver.Pointer(m.bytes); i += 8 {
		sum := e.float(m.source[0] + i)
		for _, from := range m.source[1:m.sources] {
			sum += e.float(from + i)
		}
		if m.finish > 0 {
			sum /= average
		}
		for _, to := range m.target[:m.targets] {
			e.set(to+i, sum)
		}
	}
	for _, c := range m.post[:m.posts] {
		*e.counter(c.flag) = c.before + call*c.each
	}
	return true
}

// tryLines is try over LL and LL128: of a line's 512 bytes, the last four are its
// flag here, and its words come first.
func (e flat) tryLines(m *lineMove, call uint32, words int64, average float64) bool {
	lines := (int64(m.bytes) + 8*words - 1) / (8 * words)
	flag := func(l line, i int64) *uint32 { return e.counter(l.at + driver.Pointer((i+1)*lineBytes-4)) }
	place := func(l line, word int64) driver.Pointer {
		if l.taken == 0 {
			return l.at + driver.Pointer(8*word)
		}
		return l.at + driver.Pointer(word/words*lineBytes+word%words*8)
	}
	for _, l := range m.target[:m.targets] {
		if l.taken != 0 && int32(*e.counter(l.taken)-(l.item+call*l.each-l.behind)) < 0 {
			return false
		}
	}
	for _, l := range m.source[:m.sources] {
		for i := range lines {
			if l.taken != 0 && *flag(l, i) != l.item+call*l.each {
				return false
			}
		}
	}
	for word := range int64(m.bytes) / 8 {
		sum := e.float(place(m.source[0], word))
		for _, l := range m.source[1:m.sources] {
			sum += e.float(place(l, word))
		}
		if m.finish > 0 {
			sum /= average
		}
		for _, l := range m.target[:m.targets] {
			e.set(place(l, word), sum)
		}
	}
	for _, l := range m.target[:m.targets] {
		for i := range lines {
			if l.taken != 0 {
				*flag(l, i) = l.item + call*l.each
			}
		}
	}
	for _, l := range m.source[:m.sources] {
		if l.taken != 0 {
			*e.counter(l.taken) = l.item + call*l.each
		}
	}
	return true
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

// What is chosen for a collective fits the call, whatever the count, and does it.
func TestChooseFor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		task := schedule.Task{
			Collective: model.Collective(rapid.IntRange(int(model.AllGather), int(model.Exchange)).Draw(t, "collective")),
			Datatype:   rapid.SampledFrom(model.Datatypes()).Draw(t, "datatype"), Ranks: rapid.IntRange(2, maxRanks).Draw(t, "ranks"), Nodes: 1,
		}
		size := units.Bytes(1) << rapid.IntRange(4, 32).Draw(t, "power")
		task = task.Sized(size + units.Bytes(rapid.Int64Range(0, int64(size)-1).Draw(t, "more")))
		l := ChooseFor(task.Collective, task.Ranks, int64(task.Bytes()))
		assert.True(t, l.Algorithm.does(task.Collective))
		assert.Contains(t, l.Algorithm.String(), l.Algorithm.Shots().String())
		_, err := newLayout(task.Ranks, int64(task.Bytes()+units.MiB)).fitCollective(l, task)
		assert.NoError(t, err, "%v of %v on %d ranks", task.Collective, task.Bytes(), task.Ranks)
	})
}

// Blocks of a chain run at once on a GPU that stands for several ranks.
func TestTogether(t *testing.T) {
	one, two := &driver.GPU{Multiprocessors: 132}, &driver.GPU{Multiprocessors: 132}
	chain := Launch{Algorithm: RingPush, Blocks: 132, Threads: 544, Rounds: 5}
	alone := &Comm{ranks: []*rank{{gpu: one}, {gpu: two}}}
	assert.Equal(t, chain, alone.together(chain))
	shared := &Comm{ranks: []*rank{{gpu: one}, {gpu: one}, {gpu: one}}}
	chain.Blocks, chain.Rounds = 33, 20
	assert.Equal(t, chain, shared.together(Launch{Algorithm: RingPush, Blocks: 132, Threads: 544, Rounds: 5}))
}
