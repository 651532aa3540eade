package schedule_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"tutti/model"
	"tutti/model/schedule"
	"tutti/model/units"
	"tutti/topo"
	"tutti/topo/search"
)

// machine returns a machine of n GPUs on an NVSwitch, each beside a port.
func machine(n int) *topo.System {
	var b strings.Builder
	b.WriteString(`<system version="1"><cpu numaid="0" arch="arm64">`)
	for i := range n {
		fmt.Fprintf(&b, `<pci busid="s%d" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16">
			<pci busid="g%d" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16"><gpu dev="%d" sm="90"><nvlink count="18" tclass="0x068000"/></gpu></pci>
			<pci busid="n%d" class="0x020700" link_speed="32.0 GT/s PCIe" link_width="16"><nic><net name="n%d" dev="%d" speed="400000"/></nic></pci></pci>`, i, i, i, i, i, i)
	}
	b.WriteString(`</cpu></system>`)
	s, err := topo.ReadXML(strings.NewReader(b.String()), fmt.Sprintf("%d GPUs", n))
	if err != nil {
		panic(err)
	}
	return s
}

// build makes an AllReduce of float32 over nodes machines of perNode GPUs.
func build(a model.Algorithm, p model.Protocol, nodes, perNode, channels int, count int64) schedule.Schedule {
	c, err := topo.NewCluster(machine(perNode), nodes, 0, topo.RailOptimised)
	if err != nil {
		panic(err)
	}
	s, err := schedule.New(schedule.Task{
		Collective: model.AllReduce, Algorithm: a, Protocol: p, Datatype: model.Float32,
		Count: count, Channels: channels, Ranks: c.Ranks(), Nodes: nodes,
	}, c, search.All(c))
	if err != nil {
		panic(err)
	}
	return s
}

// Every schedule is right for 2 to 64 ranks, whatever the division into nodes,
// the size and the channels: a few whole buffers, odd counts, next to nothing.
func TestSchedulesAreRight(t *testing.T) {
	for ranks := 2; ranks <= 64; ranks++ {
		for nodes := 1; nodes <= ranks; nodes++ {
			if ranks%nodes != 0 {
				continue
			}
			for _, a := range model.Algorithms() {
				if nvls := a == model.NVLS || a == model.NVLSTree; nvls && (ranks/nodes < 3 || (a == model.NVLS) != (nodes == 1)) {
					continue
				}
				for _, p := range a.Protocols() {
					s := build(a, p, nodes, ranks/nodes, 2, int64(ranks)*20011+1)
					require.NoError(t, schedule.Verify(s), "%v %v on %d x %d", a, p, nodes, ranks/nodes)
				}
			}
		}
	}
}

// One NVLink domain may have more GPUs than NVLS has heads, and than a worker
// has ports.
func TestLargeDomainsAreRight(t *testing.T) {
	for _, a := range []model.Algorithm{model.Ring, model.Tree, model.NVLS} {
		require.NoError(t, schedule.Verify(build(a, model.Simple, 1, 72, 2, 72*20011+1)), a.String())
	}
}

func TestRandomSchedulesAreRight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.SampledFrom(model.Algorithms()).Draw(t, "algorithm")
		p := rapid.SampledFrom(a.Protocols()).Draw(t, "protocol")
		nodes, perNode := rapid.IntRange(1, 6).Draw(t, "nodes"), rapid.IntRange(1, 9).Draw(t, "GPUs")
		switch a {
		case model.NVLS:
			nodes, perNode = 1, max(perNode, 3)
		case model.NVLSTree:
			nodes, perNode = max(nodes, 2), max(perNode, 3)
		}
		channels := rapid.IntRange(1, 4).Draw(t, "channels")
		count := rapid.OneOf(rapid.Int64Range(0, 70), rapid.Int64Range(0, 1<<22)).Draw(t, "count")
		require.NoError(t, schedule.Verify(build(a, p, nodes, perNode, channels, count)))
	})
}

// broken changes one thing about a schedule.
type broken struct {
	schedule.Schedule
	step  func(w, i int, s *schedule.Step)
	slots func(c int) int
}

func (b broken) Step(w, i int) schedule.Step {
	s := b.Schedule.Step(w, i)
	if b.step != nil {
		b.step(w, i, &s)
	}
	return s
}

func (b broken) Connection(c int) schedule.Connection {
	described := b.Schedule.Connection(c)
	if b.slots != nil {
		described.Slots = b.slots(c)
	}
	return described
}

// Whatever is wrong with a schedule, the verifier says where.
func TestVerifierFindsFaults(t *testing.T) {
	ring := build(model.Ring, model.LL, 1, 4, 1, 400)
	at := func(w, i int, change func(*schedule.Step)) func(int, int, *schedule.Step) {
		return func(worker, step int, s *schedule.Step) {
			if worker == w && step == i {
				change(s)
			}
		}
	}
	for name, c := range map[string]struct {
		s    schedule.Schedule
		want string
	}{
		"swapped chunk": {broken{Schedule: ring, step: at(1, 2, func(s *schedule.Step) { s.Offset -= 100 })},
			"rank 1, channel 0, ring worker, step 2 of 7: wants elements 100 to 200 and was sent 200 to 300"},
		"missing receive": {broken{Schedule: ring, step: at(2, 6, func(s *schedule.Step) { s.Recv = schedule.Ports{} })},
			"connection 1 from worker [1] to [2]: 1 items are left"},
		"missing send": {broken{Schedule: ring, step: at(0, 3, func(s *schedule.Step) { s.Send = schedule.Ports{} })},
			"rank 1, channel 0, ring worker, step 4 of 7: wants elements 0 to 100 and was sent 300 to 400"},
		"input added twice": {broken{Schedule: ring, step: at(3, 4, func(s *schedule.Step) { s.Input = true })},
			"rank 3, channel 0, ring worker, step 4 of 7: adds the data of rank 3 twice"},
		"input forgotten": {broken{Schedule: ring, step: at(3, 1, func(s *schedule.Step) { s.Input = false })},
			"rank 0, channel 0, ring worker, step 6 of 7: writes elements 100 to 200 of rank 0's output without the data of rank 3"},
		"output twice": {broken{Schedule: build(model.Ring, model.Simple, 1, 1, 1, 1<<20), step: at(0, 1, func(s *schedule.Step) { s.Offset-- })},
			"rank 0, channel 0, ring worker, step 1 of 4: writes element 262143 of rank 0's output a second time"},
		"output forgotten": {broken{Schedule: ring, step: at(0, 4, func(s *schedule.Step) { s.Output = false })},
			"rank 0: nobody writes elements 300 to 400 of the output"},
		"out of bounds": {broken{Schedule: ring, step: at(0, 1, func(s *schedule.Step) { s.Count += 1000 })},
			"rank 0, channel 0, ring worker, step 1 of 7: elements 200 to 1300 are out of bounds"},
		"unknown port": {broken{Schedule: ring, step: at(0, 1, func(s *schedule.Step) { s.Send = schedule.Port(1) })},
			"rank 0, channel 0, ring worker, step 1 of 7: uses ports {0 1} in and {1 2} out, and has 1 and 1"},
		"no credit": {broken{Schedule: ring, slots: func(c int) int { return min(c, 1) }},
			"rank 0, channel 0, ring worker, step 0 of 7: waits for ever: deadlock"},
		"one credit too few": {broken{Schedule: exchange{}, slots: func(int) int { return 1 }},
			"rank 0, channel 0, ring worker, step 1 of 4: waits for ever: deadlock"},
	} {
		err := schedule.Verify(c.s)
		require.Error(t, err, name)
		assert.Contains(t, err.Error(), c.want, name)
	}
	require.NoError(t, schedule.Verify(exchange{}))
}

// exchange is the AllReduce of two ranks that send both halves before they
// receive any: it needs two credits.
type exchange struct{}

func (exchange) Task() schedule.Task { return schedule.Task{Ranks: 2, Count: 2} }
func (exchange) Workers() int        { return 2 }
func (exchange) Connections() int    { return 2 }
func (exchange) Worker(w int) schedule.Worker {
	return schedule.Worker{Rank: w, Steps: 4, In: []int{1 - w}, Out: []int{w}}
}
func (exchange) Connection(c int) schedule.Connection {
	return schedule.Connection{From: []int{c}, To: []int{1 - c}, Slots: 2, Room: 1, OutNET: -1, InNET: -1}
}

func (exchange) Step(_, i int) schedule.Step {
	if i < 2 {
		return schedule.Step{Send: schedule.Port(0), Input: true, Offset: int64(i), Count: 1}
	}
	return schedule.Step{Recv: schedule.Port(0), Input: true, Output: true, Offset: int64(i - 2), Count: 1}
}

// Two ranks share 16 elements in chunks of 8, the case that texts on NCCL work
// by hand: each chunk is reduced by one rank and handed back by it.
func ExampleRing() {
	s := build(model.Ring, model.LL, 1, 2, 1, 16)
	for rank := range 2 {
		for i := range s.Worker(rank).Steps {
			step := s.Step(rank, i)
			fmt.Printf("rank %d: elements %2d to %2d  recv %v input %-5v send %v output %v\n",
				rank, step.Offset, step.Offset+step.Count, step.Recv.Len(), step.Input, step.Send.Len(), step.Output)
		}
	}
	// Output:
	// rank 0: elements  8 to 16  recv 0 input true  send 1 output false
	// rank 0: elements  0 to  8  recv 1 input true  send 1 output true
	// rank 0: elements  8 to 16  recv 1 input false send 0 output true
	// rank 1: elements  0 to  8  recv 0 input true  send 1 output false
	// rank 1: elements  8 to 16  recv 1 input true  send 1 output true
	// rank 1: elements  0 to  8  recv 1 input false send 0 output true
}

// A ring moves 2(n-1)/n of the data over every link, whatever its size.
func TestRingMovesItsShare(t *testing.T) {
	const count = 64 << 20
	s := build(model.Ring, model.Simple, 2, 8, 4, count)
	for w := range s.Workers() {
		var sent int64
		for i := range s.Worker(w).Steps {
			if step := s.Step(w, i); step.Send.Len() > 0 {
				sent += step.Count
			}
		}
		assert.InEpsilon(t, 2*15.0/16*count/4, sent, 1e-3)
	}
	assert.Equal(t, 256*units.MiB, s.Task().Bytes())
}
