package sim_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"tutti/model"
	"tutti/model/profile"
	"tutti/model/schedule"
	"tutti/model/tuning"
	"tutti/model/units"
	"tutti/sim"
	"tutti/topo"
	"tutti/topo/search"
)

// world is a cluster with what is needed to simulate an AllReduce on it.
type world struct {
	cluster *topo.Cluster
	graphs  search.Graphs
	tuned   *tuning.Model
}

func newWorld(t require.TestingT, machine string, nodes, gpus int) world {
	m, err := topo.Open(machine)
	require.NoError(t, err)
	c, err := topo.NewCluster(m, nodes, gpus, topo.RailOptimised)
	require.NoError(t, err)
	return newWorldOn(c)
}

func newWorldOn(c *topo.Cluster) world {
	g := graphsOf(c)
	return world{c, g, tuning.New(c, g)}
}

// found remembers graphs: neither the fabric nor further nodes change them.
var found = map[string]search.Graphs{}

func graphsOf(c *topo.Cluster) search.Graphs {
	key := fmt.Sprint(c.RanksPerNode(), c.Nodes > 1)
	for _, m := range c.Machines() {
		key += " " + m.Name
	}
	if _, known := found[key]; !known {
		found[key] = search.All(c)
	}
	return found[key]
}

// schedule makes an AllReduce of float32 on as many channels as NCCL uses.
func (w world) schedule(t require.TestingT, a model.Algorithm, p model.Protocol, size units.Bytes) schedule.Schedule {
	s, err := schedule.New(schedule.Task{
		Algorithm: a, Protocol: p, Datatype: model.Float32, Count: int64(size / 4), Channels: w.tuned.Channels(a, p, size),
		Ranks: w.cluster.Ranks(), Nodes: w.cluster.Nodes,
	}, w.cluster, w.graphs)
	require.NoError(t, err)
	return s
}

func (w world) run(t require.TestingT, a model.Algorithm, p model.Protocol, size units.Bytes, constants *profile.Profile) sim.Result {
	r, err := sim.Run(w.schedule(t, a, p, size), w.cluster, constants)
	require.NoError(t, err)
	return r
}

// A ring AllReduce that has the fabric to itself takes 2(n-1)/n of the bytes
// over the rate of its bottleneck, plus the fill of the pipeline. The bottleneck
// is what all channels share: a GPU's NVLinks inside a machine, the NICs of a
// machine between machines.
//
// The fill, inside a machine, is what each loop over the ring adds: its 2n-1
// chunks are handled in two slices, each with the overhead of a step and the turn
// to the next, during which the channels leave the link idle since they all move
// alike; and the last slices have to arrive, and to be copied out of the buffer,
// before the next loop can begin. Between machines the NICs
// go on during all that.
func TestRingEqualsClosedForm(t *testing.T) {
	const size = units.GiB
	for _, c := range []struct{ nodes, gpus int }{{1, 2}, {1, 4}, {1, 8}, {8, 8}} {
		w := newWorld(t, "dgx-h100", c.nodes, c.gpus)
		n := w.cluster.Ranks()
		bottleneck := 361.2 * units.GBps // of NVLink, as measured
		if c.nodes > 1 {
			bottleneck = 8 * 48 * units.GBps
		}
		transfer := units.FromMicroseconds(2 * float64(n-1) / float64(n) * float64(size) / float64(bottleneck) * 1e6)

		wires := profile.ForGPU(90) // wires alone: steps and handovers cost nothing
		clear(wires.Overhead[:])
		clear(wires.Handover[:])
		clear(wires.Turn[:])
		clear(wires.Ramp[:])
		wires.Copy[model.Ring][model.Simple] = 1e6 * units.GBps
		base := wires.Base[model.Ring][model.Simple]
		assertClose(t, base+transfer, w.run(t, model.Ring, model.Simple, size, wires).Time, .01, "%d ranks, wires alone", n)

		real := profile.ForGPU(90)
		fill := units.Time(0)
		if c.nodes == 1 {
			channels := w.tuned.MaxChannels(model.Ring)
			loops := math.Ceil(float64(size) / float64(channels*n) / float64(2*units.MiB))
			overhead := real.Overhead[model.Simple]
			arrival := 2*real.Latency[topo.LinkNVL] + real.Handover[profile.HopNVLink][model.Ring][model.Simple]
			fill = units.Time(loops) * (units.Time(2*(2*n-1))*(overhead+real.Turn[model.Ring][model.Simple]) + arrival)
			rate := real.Copy[model.Ring][model.Simple] * profile.Streams / 2 // from the buffer to the output
			fill += units.FromMicroseconds(float64(size) / float64(channels*n) / float64(rate) * 1e6)
		}
		assertClose(t, base+transfer+fill, w.run(t, model.Ring, model.Simple, size, real).Time, .01, "%d ranks", n)
	}
}

// assertClose compares times to a relative error.
func assertClose(t *testing.T, want, got units.Time, epsilon float64, format string, args ...any) {
	t.Helper()
	t.Logf(format+": want %v, got %v", append(args, want, got)...)
	assert.InEpsilon(t, float64(want), float64(got), epsilon, fmt.Sprintf(format, args...))
}

// No algorithm is faster than the bytes that each rank must at least send,
// 2(n-1)/n of them or, where the switch reduces, all of them once, at the rate
// of its links; and a second run gives the same.
func TestTimesArePossible(t *testing.T) {
	worlds := map[[2]int]world{}
	rapid.Check(t, func(t *rapid.T) {
		at := [...]int{rapid.IntRange(1, 3).Draw(t, "nodes"), rapid.IntRange(3, 8).Draw(t, "gpus")}
		w, known := worlds[at]
		if !known {
			w = newWorld(t, "dgx-h100", at[0], at[1])
			worlds[at] = w
		}
		a := rapid.SampledFrom(model.Algorithms()).Draw(t, "algorithm")
		if w.tuned.Cost(a, model.Simple) == (tuning.Cost{}) {
			return
		}
		p := rapid.SampledFrom(a.Protocols()).Draw(t, "protocol")
		size := units.Bytes(rapid.Int64Range(1, 1<<20).Draw(t, "count")) * 4
		r := w.run(t, a, p, size, profile.ForGPU(90))
		sent := float64(p.Wire(size))
		if a == model.Ring || a == model.Tree {
			sent *= 2 * float64(w.cluster.Ranks()-1) / float64(w.cluster.Ranks())
		}
		require.GreaterOrEqual(t, r.Time.Seconds(), sent/370.8e9, "not possible")
		again := w.run(t, a, p, size, profile.ForGPU(90))
		require.Equal(t, []any{r.Time, r.Events, r.Loads()}, []any{again.Time, again.Events, again.Loads()}, "a second run")
	})
}

// Rates that are doubled and latencies that are halved halve the time.
func TestTimeScales(t *testing.T) {
	w := newWorld(t, "dgx-h100", 2, 0)
	for _, a := range []model.Algorithm{model.Ring, model.Tree, model.NVLSTree} {
		slow, fast := profile.ForGPU(90), profile.ForGPU(90)
		for p := range fast.Overhead {
			fast.Overhead[p] /= 2
			for b := range fast.Base {
				fast.Copy[b][p] *= 2
				fast.Base[b][p] /= 2
				fast.Turn[b][p] /= 2
				fast.Ramp[b][p] /= 2
				for h := range fast.Handover {
					fast.Handover[h][b][p] /= 2
				}
			}
		}
		fast.LocalCopy *= 2
		for kind := range fast.Efficiency {
			fast.Efficiency[kind] *= 2
			fast.Latency[kind] /= 2
		}
		const size = 64 * units.MiB
		assertClose(t, w.run(t, a, model.Simple, size, slow).Time, 2*w.run(t, a, model.Simple, size, fast).Time, 1e-6, "%v", a)
	}
}

// stuck is a schedule whose first worker never gets a credit.
type stuck struct{ schedule.Schedule }

func (s stuck) Connection(c int) schedule.Connection {
	described := s.Schedule.Connection(c)
	if c == 0 {
		described.Slots = 0
	}
	return described
}

func TestRunErrors(t *testing.T) {
	w, other := newWorld(t, "h200x4", 1, 0), newWorld(t, "h200x4", 1, 3)
	s := w.schedule(t, model.Ring, model.LL, 64)
	_, err := sim.Run(stuck{s}, w.cluster, profile.ForGPU(90))
	assert.EqualError(t, err, "deadlock after 2.444 us: 4 of 4 workers cannot go on")
	_, err = sim.Run(s, other.cluster, profile.ForGPU(90))
	assert.EqualError(t, err, "a schedule for 4 ranks does not run on 3")
}

// Events per second of whole simulations, layout included, and what they
// allocate: 256 MiB over Simple.
func BenchmarkRun(b *testing.B) {
	for _, c := range []struct {
		a     model.Algorithm
		nodes int
		all   bool // workers, not one of those that do the same
	}{{model.Ring, 1, false}, {model.Ring, 16, false}, {model.Tree, 16, false}, {model.NVLSTree, 16, false}, {model.Ring, 16, true}, {model.NVLSTree, 16, true}} {
		b.Run(fmt.Sprintf("algo=%v/ranks=%d/all=%v", c.a, 8*c.nodes, c.all), func(b *testing.B) {
			w := newWorld(b, "dgx-h100", c.nodes, 0)
			s, constants := w.schedule(b, c.a, model.Simple, 256*units.MiB), profile.ForGPU(90)
			b.ReportAllocs()
			var events int64
			for b.Loop() {
				r, err := sim.RunWith(s, w.cluster, constants, sim.Options{NoSymmetry: c.all})
				require.NoError(b, err)
				events += r.Events
			}
			b.ReportMetric(float64(events)/b.Elapsed().Seconds()/1e6, "Mevents/s")
		})
	}
}

// ECMP tells the channels between two ports apart: they spread over the cables.
func TestECMPSpreadsChannels(t *testing.T) {
	machine, err := topo.Open("dgx-h100")
	require.NoError(t, err)
	fabric := topo.Fabric{Name: "ecmp", Routing: topo.ECMP, Levels: []topo.Level{{Nodes: 1, Switches: 1, Links: 1}, {Switches: 8, Links: 1}}}
	c, err := topo.NewCluster(machine, 2, 1, fabric)
	require.NoError(t, err)
	s, err := schedule.New(schedule.Task{
		Algorithm: model.Ring, Protocol: model.Simple, Datatype: model.Float32, Count: 1 << 20, Channels: 16, Ranks: 2, Nodes: 2,
	}, c, graphsOf(c))
	require.NoError(t, err)
	r, err := sim.Run(s, c, profile.ForGPU(90))
	require.NoError(t, err)
	cables := 0
	for _, l := range r.Loads() {
		if l.Link >= c.Tiers()[1].First {
			cables += l.Like
		}
	}
	assert.Greater(t, cables, 16, "of 32, both ways from both leaves")
}
