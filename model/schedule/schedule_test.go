package schedule_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"tutti/model"
	"tutti/model/schedule"
	"tutti/model/schedule/scheduletest"
	"tutti/topo"
	"tutti/topo/search"
)

// machines remembers those that were made.
var machines = map[int]*topo.System{}

// machine returns a machine of n GPUs on an NVSwitch, each beside a port.
func machine(n int) *topo.System {
	if machines[n] == nil {
		machines[n] = newMachine(n)
	}
	return machines[n]
}

func newMachine(n int) *topo.System {
	var b strings.Builder
	b.WriteString(`<system version="1"><cpu numaid="0" arch="arm64">`)
	for i := range n {
		fmt.Fprintf(&b, `<pci busid="a%d" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16">
			<pci busid="b%d" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16"><gpu dev="%d" sm="90"><nvlink count="18" tclass="0x068000"/></gpu></pci>
			<pci busid="c%d" class="0x020700" link_speed="32.0 GT/s PCIe" link_width="16"><nic><net name="n%d" dev="%d" speed="400000" gdr="1" coll="1"/></nic></pci></pci>`, i, i, i, i, i, i)
	}
	b.WriteString(`</cpu></system>`)
	s, err := topo.ReadXML(strings.NewReader(b.String()), fmt.Sprintf("%d GPUs", n))
	if err != nil {
		panic(err)
	}
	return s
}

// graphs remembers what was found for the machine of so many GPUs, alone and
// among others: further nodes change nothing.
var graphs = map[[2]int]search.Graphs{}

// allReduce is a call of float32 on nodes machines of perNode GPUs.
func allReduce(a model.Algorithm, p model.Protocol, nodes, perNode, channels int, count int64) schedule.Task {
	return schedule.Task{
		Collective: model.AllReduce, Algorithm: a, Protocol: p, Datatype: model.Float32,
		Count: count, Channels: channels, Ranks: nodes * perNode, Nodes: nodes,
	}
}

// build makes the schedule of a task.
func build(t schedule.Task) (schedule.Schedule, error) {
	c, err := topo.NewCluster(machine(t.Ranks/t.Nodes), t.Nodes, 0, topo.RailOptimised)
	if err != nil {
		return nil, err
	}
	key := [2]int{c.RanksPerNode(), min(c.Nodes, 2)}
	if _, found := graphs[key]; !found {
		graphs[key] = search.Find(c, search.Options{CollNet: true})
	}
	return schedule.New(t, c, graphs[key])
}

// must is build for tasks that have a schedule.
func must(t schedule.Task) schedule.Schedule {
	s, err := build(t)
	if err != nil {
		panic(err)
	}
	return s
}

// everyForm calls f for each combination of collective, algorithm and protocol.
func everyForm(f func(schedule.Task)) {
	for _, a := range model.Algorithms() {
		for _, c := range a.Collectives() {
			for _, p := range a.Protocols() {
				f(schedule.Task{Collective: c, Algorithm: a, Protocol: p, Datatype: model.Float32})
			}
		}
	}
}

// Every schedule is right for 1 to 17 ranks, and some numbers up to 33, on each
// division into nodes, for counts of nothing to several loops, with one channel to
// four, from any root, in place and out of place.
func TestSchedulesAreRight(t *testing.T) {
	counts := []int64{0, 1, 7, 1009, 65537, 1<<20 + 7}
	many := []int{20, 25, 27, 31, 32, 33}
	cases := 0
	everyForm(func(task schedule.Task) {
		for task.Ranks = 1; task.Ranks <= 33; task.Ranks++ {
			for task.Nodes = 1; task.Nodes <= task.Ranks; task.Nodes++ {
				task.InPlace = false
				few := task.Nodes <= 3 || task.Ranks/task.Nodes <= 2
				if task.Ranks%task.Nodes != 0 || !few || task.Ranks > 17 && !slices.Contains(many, task.Ranks) || !scheduletest.Possible(task) {
					continue
				}
				// Whatever else there is to choose takes turns.
				cases++
				task.Count, task.Channels, task.Root = counts[cases%len(counts)], 1+cases%4, cases%task.Ranks
				task.InPlace = cases/2%2 == 0 && task.CanOverlap()
				s, err := build(task)
				require.NoError(t, err, "%+v", task)
				require.NoError(t, schedule.Verify(s), "%+v", task)
			}
		}
	})
	t.Log(cases, "schedules")
}

// A schedule takes no memory for its ranks: here are 131,072 of them.
func TestLargeSchedulesAreFree(t *testing.T) {
	for _, a := range []model.Algorithm{model.Ring, model.SimpleRing, model.Tree, model.NVLSTree, model.Hierarchical} {
		s := must(allReduce(a, model.Simple, 16384, 8, 16, 1<<28))
		assert.Less(t, testing.AllocsPerRun(10, func() { must(s.Task()) }), 10000., "%v: to make", a)
		last := s.Workers() - 4
		require.Positive(t, s.Worker(last).Steps)
		assert.Zero(t, testing.AllocsPerRun(10, func() { s.Step(last, s.Worker(last).Steps-1) })-testing.AllocsPerRun(10, func() { s.Worker(last) }), "%v: for a step", a)
	}
}

// One NVLink domain may have more GPUs than NVLS has heads.
func TestLargeDomainsAreRight(t *testing.T) {
	for _, a := range []model.Algorithm{model.Ring, model.Tree, model.NVLS, model.OneShot, model.TwoShot} {
		require.NoError(t, schedule.Verify(must(allReduce(a, model.Simple, 1, 72, 2, 72*2011+1))), a.String())
	}
}

func TestRandomSchedulesAreRight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		task := rapid.Custom(func(t *rapid.T) schedule.Task {
			algorithm := rapid.SampledFrom(model.Algorithms()).Draw(t, "algorithm")
			task := schedule.Task{
				Algorithm:  algorithm,
				Collective: rapid.SampledFrom(algorithm.Collectives()).Draw(t, "collective"),
				Protocol:   rapid.SampledFrom(algorithm.Protocols()).Draw(t, "protocol"),
				Datatype:   rapid.SampledFrom([]model.Datatype{model.Float32, model.Int8, model.Float64}).Draw(t, "datatype"),
				Count:      rapid.OneOf(rapid.Int64Range(0, 70), rapid.Int64Range(0, 1<<20)).Draw(t, "count"),
				Channels:   rapid.IntRange(1, 4).Draw(t, "channels"),
				Nodes:      rapid.IntRange(1, 6).Draw(t, "nodes"),
			}
			task.Ranks = task.Nodes * rapid.IntRange(1, 9).Draw(t, "GPUs")
			task.Root = rapid.IntRange(0, task.Ranks-1).Draw(t, "root")
			return task
		}).Filter(scheduletest.Possible).Draw(t, "task")
		require.NoError(t, schedule.Verify(must(task)))
	})
}

// On machines of different shape a schedule is right, or plainly refused: one that
// has GPUs, or switches, pass on data to those of the same number.
func TestSchedulesOfMixturesAreRight(t *testing.T) {
	reducing := topo.RailOptimised
	reducing.Levels = slices.Clone(reducing.Levels)
	for i := range reducing.Levels {
		reducing.Levels[i].Reduces = true
	}
	alike := []model.Algorithm{model.RailRing, model.Hierarchical, model.CollNet, model.CollNetChain}
	found := map[string]search.Graphs{} // by kinds of machines
	rapid.Check(t, func(t *rapid.T) {
		var parts []topo.Part
		for _, n := range rapid.SliceOfN(rapid.SampledFrom([]int{3, 4, 6}), 2, 4).Draw(t, "GPUs") {
			parts = append(parts, topo.Part{Machine: machine(n), Nodes: rapid.IntRange(1, 3).Draw(t, "nodes")})
		}
		c, err := topo.NewMixedCluster(parts, 0, reducing)
		require.NoError(t, err)
		key := ""
		for _, m := range c.Machines() {
			key += m.Name
		}
		if _, known := found[key]; !known {
			found[key] = search.Find(c, search.Options{CollNet: true, SHARP: true})
		}
		a := rapid.SampledFrom(model.Algorithms()).Draw(t, "algorithm")
		task := schedule.Task{
			Algorithm:  a,
			Collective: rapid.SampledFrom(a.Collectives()).Draw(t, "collective"),
			Protocol:   rapid.SampledFrom(a.Protocols()).Draw(t, "protocol"),
			Datatype:   model.Float32,
			Count:      rapid.OneOf(rapid.Int64Range(0, 70), rapid.Int64Range(0, 1<<18)).Draw(t, "count"),
			Channels:   rapid.IntRange(1, 4).Draw(t, "channels"),
			Ranks:      c.Ranks(), Nodes: c.Nodes, Root: rapid.IntRange(0, c.Ranks()-1).Draw(t, "root"),
		}
		s, err := schedule.New(task, c, found[key])
		if err == nil {
			require.NoError(t, schedule.Verify(s))
			return
		}
		require.Contains(t, append(alike, model.NVLS, model.OneShot, model.TwoShot), a, err)
		if slices.Contains(alike, a) {
			require.ErrorContains(t, err, c.Differs())
		}
	})
}

// broken changes one thing about a schedule.
type broken struct {
	schedule.Schedule
	step       func(w, i int, s *schedule.Step)
	connection func(c int, described *schedule.Connection)
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
	if b.connection != nil {
		b.connection(c, &described)
	}
	return described
}

// Whatever is wrong with a schedule, the verifier says where.
func TestVerifierFindsFaults(t *testing.T) {
	ring := must(allReduce(model.Ring, model.LL, 1, 4, 1, 400))
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
		"output twice": {broken{Schedule: must(allReduce(model.Ring, model.Simple, 1, 1, 1, 1<<20)), step: at(0, 1, func(s *schedule.Step) { s.Offset-- })},
			"rank 0, channel 0, ring worker, step 1 of 4: writes element 262143 of rank 0's output a second time"},
		"output forgotten": {broken{Schedule: ring, step: at(0, 4, func(s *schedule.Step) { s.Output = false })},
			"rank 0: nobody writes elements 300 to 400 of the output"},
		"out of bounds": {broken{Schedule: ring, step: at(0, 1, func(s *schedule.Step) { s.Count += 1000 })},
			"rank 0, channel 0, ring worker, step 1 of 7: elements 200 to 1300 are out of bounds"},
		"unknown port": {broken{Schedule: ring, step: at(0, 1, func(s *schedule.Step) { s.Send = schedule.Port(1) })},
			"rank 0, channel 0, ring worker, step 1 of 7: uses ports {0 1} in and {1 2} out, and has 1 and 1"},
		"too large an item": {broken{Schedule: ring, connection: func(_ int, c *schedule.Connection) { c.Room = 99 }},
			"rank 0, channel 0, ring worker, step 0 of 7: puts 100 elements where there is room for 99"},
		"not in the input": {broken{Schedule: must(of(model.Ring, model.LL, model.Broadcast)), step: at(1, 0, func(s *schedule.Step) { s.Input = true })},
			"rank 1, channel 0, ring worker, step 0 of 1: elements 0 to 100 are not in the rank's input"},
		"in place, and read by others": {inPlace{must(allReduce(model.OneShot, model.Simple, 1, 3, 1, 100))},
			"may read elements 0 to 100 of rank 0's buffer after they are written, in place"},
		"no barrier at the end": {broken{Schedule: must(of(model.OneShot, model.Simple, model.Broadcast)), connection: func(_ int, c *schedule.Connection) { c.Slots = 2 }},
			"may read rank 0's input after the rank returns"},
		"no barrier at the start": {rude{},
			"rank 0, channel 0, ring worker, step 0 of 1: may write to rank 1's output before the rank begins"},
		"no credit": {broken{Schedule: ring, connection: func(c int, described *schedule.Connection) { described.Slots = min(c, 1) }},
			"rank 0, channel 0, ring worker, step 0 of 7: waits for ever: deadlock"},
		"one credit too few": {broken{Schedule: exchange{}, connection: func(_ int, c *schedule.Connection) { c.Slots = 1 }},
			"rank 0, channel 0, ring worker, step 1 of 4: waits for ever: deadlock"},
	} {
		err := schedule.Verify(c.s)
		require.Error(t, err, name)
		assert.Contains(t, err.Error(), c.want, name)
	}
	require.NoError(t, schedule.Verify(exchange{}))
}

// of is a call of 100 elements on three ranks.
func of(a model.Algorithm, p model.Protocol, c model.Collective) schedule.Task {
	t := allReduce(a, p, 1, 3, 1, 100)
	t.Collective = c
	return t
}

// inPlace claims that a schedule is right in place.
type inPlace struct{ schedule.Schedule }

func (s inPlace) Task() schedule.Task {
	t := s.Schedule.Task()
	t.InPlace = true
	return t
}

// rude is a Broadcast whose root writes to the other rank's output unasked.
type rude struct{}

func (rude) Task() schedule.Task {
	return schedule.Task{Collective: model.Broadcast, Ranks: 2, Count: 1, InPlace: true}
}
func (rude) Workers() int     { return 2 }
func (rude) Connections() int { return 1 }
func (rude) Worker(w int) schedule.Worker {
	return [...]schedule.Worker{{Steps: 1, Out: []int{0}}, {Rank: 1, Steps: 1, In: []int{0}}}[w]
}
func (rude) Connection(int) schedule.Connection {
	return schedule.Connection{From: []int{0}, To: []int{1}, Slots: 1, Room: 1, Storage: schedule.InOutput}
}
func (rude) Step(w, _ int) schedule.Step {
	return [...]schedule.Step{{Send: schedule.Port(0), Input: true, Count: 1}, {Recv: schedule.Port(0), Output: true, Count: 1}}[w]
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

// Two ranks share 16 elements in chunks of 8, the case that texts on NCCL work by
// hand: each chunk is reduced by one rank and handed back by it. Rank 0 has A0 to
// A15, rank 1 has B0 to B15.
func ExampleRing() {
	s := must(allReduce(model.Ring, model.LL, 1, 2, 1, 16))
	type item = [2]bool // whose data it holds
	var fifo, output [2][]item
	for rank := range output {
		output[rank] = make([]item, 2) // by chunk
	}
	text := func(chunk int, i item) string {
		names := []string{}
		for rank, name := range "AB" {
			if i[rank] {
				names = append(names, fmt.Sprintf("%c%d…%c%d", name, 8*chunk, name, 8*chunk+7))
			}
		}
		return cmp.Or(strings.Join(names, " + "), "-")
	}
	for i := range s.Worker(0).Steps {
		for rank := range 2 {
			step := s.Step(rank, i)
			chunk := int(step.Offset) / 8
			value, did := item{}, []string{}
			if step.Recv.Len() > 0 {
				value, fifo[1-rank] = fifo[1-rank][0], fifo[1-rank][1:]
				did = append(did, "recv")
			}
			if step.Input {
				value[rank] = true
				if len(did) > 0 {
					did = append(did, "reduce")
				}
			}
			if step.Output {
				output[rank][chunk] = value
				did = append(did, "copy")
			}
			if step.Send.Len() > 0 {
				fifo[rank] = append(fifo[rank], value)
				did = append(did, "send")
			}
			fmt.Printf("step %d, rank %d: %-21s %-20s output: %s, %s\n", i, rank, strings.Join(did, " "), text(chunk, value), text(0, output[rank][0]), text(1, output[rank][1]))
		}
	}
	// Output:
	// step 0, rank 0: send                  A8…A15               output: -, -
	// step 0, rank 1: send                  B0…B7                output: -, -
	// step 1, rank 0: recv reduce copy send A0…A7 + B0…B7        output: A0…A7 + B0…B7, -
	// step 1, rank 1: recv reduce copy send A8…A15 + B8…B15      output: -, A8…A15 + B8…B15
	// step 2, rank 0: recv copy             A8…A15 + B8…B15      output: A0…A7 + B0…B7, A8…A15 + B8…B15
	// step 2, rank 1: recv copy             A0…A7 + B0…B7        output: A0…A7 + B0…B7, A8…A15 + B8…B15
}

// Schedules move what their descriptions say, whatever the size: out of a rank
// of n, in buffers.
func TestTraffic(t *testing.T) {
	const count, n = 1 << 20, 16
	for a, want := range map[model.Algorithm]float64{
		model.Ring: 2 * 15. / 16, model.RailRing: 2 * 15. / 16, model.TwoShot: 2 * 15. / 16, model.OneShot: 15,
		model.SimpleRing: 2 * 15. / 16, model.Tree: 2 * 15. / 16,
	} {
		s := must(allReduce(a, model.Simple, 1, n, 4, count))
		var total int64
		for _, elements := range schedule.Traffic(s) {
			total += elements
		}
		assert.InEpsilon(t, want*n*count, total, 1e-3, a.String())
	}
	s := must(allReduce(model.Hierarchical, model.Simple, 4, 4, 2, count))
	var network int64
	for c, elements := range schedule.Traffic(s) {
		if s.Connection(c).OutNET >= 0 {
			network += elements
		}
	}
	assert.InEpsilon(t, 2*3./4/4*n*count, network, 1e-3, "of a fourth of the data, 2(N-1)/N leaves each rank's port")
}
