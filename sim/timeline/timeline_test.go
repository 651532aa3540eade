package timeline_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tutti/model"
	"tutti/model/profile"
	"tutti/model/schedule"
	"tutti/model/units"
	"tutti/sim"
	"tutti/sim/timeline"
	"tutti/topo"
	"tutti/topo/search"
)

// record simulates a ring over two machines of two GPUs, with a straggler and a
// link that is slow for a while.
func record(t *testing.T) (*timeline.Timeline, schedule.Schedule, sim.Result, *topo.Cluster) {
	machine, err := topo.Open("dgx-h100")
	require.NoError(t, err)
	c, err := topo.NewCluster(machine, 2, 2, topo.RailOptimised)
	require.NoError(t, err)
	s, err := schedule.New(schedule.Task{
		Algorithm: model.Ring, Protocol: model.Simple, Datatype: model.Float32, Count: 1 << 20, Channels: 1, Ranks: 4, Nodes: 2,
	}, c, search.All(c))
	require.NoError(t, err)
	o := sim.Options{
		Stragglers: []sim.Straggler{{Rank: 1, Delay: 10 * units.Microsecond, Slow: 2}},
		Faults:     []sim.Fault{{Link: "node 0 NET", Rate: .5, At: 100 * units.Microsecond}, {Link: "node 0 NET", Rate: 1, At: 200 * units.Microsecond}},
	}
	plain, err := sim.RunWith(s, c, profile.ForGPU(90), o)
	require.NoError(t, err)
	line := timeline.New(s, c, o)
	o.Watch = line
	r, err := sim.RunWith(s, c, profile.ForGPU(90), o)
	require.NoError(t, err)
	require.Equal(t, plain.Time, r.Time, "watching changes nothing")
	line.End(r)
	return line, s, r, c
}

// event is what the Trace Event Format has; a field that it does not know is an
// error.
type event struct {
	Name string          `json:"name"`
	Cat  string          `json:"cat"`
	Ph   string          `json:"ph"`
	Ts   *float64        `json:"ts"`
	Dur  *float64        `json:"dur"`
	Pid  *int            `json:"pid"`
	Tid  *int            `json:"tid"`
	Args json.RawMessage `json:"args"`
}

// The trace is what the Trace Event Format asks for: complete events ("X") with
// a time and a duration, counters ("C") with numbers, in the order of time,
// metadata ("M") with a name, all with a process and a thread that have names.
// Slices of a thread do not overlap; and a link's rate, over time, makes its bytes.
func TestChrome(t *testing.T) {
	line, s, result, c := record(t)
	var b bytes.Buffer
	require.NoError(t, line.WriteChrome(&b))
	var trace struct {
		DisplayTimeUnit string
		TraceEvents     []event
	}
	in := json.NewDecoder(&b)
	in.DisallowUnknownFields()
	require.NoError(t, in.Decode(&trace))
	assert.Equal(t, "ns", trace.DisplayTimeUnit)
	type thread struct{ process, thread int }
	type counter struct{ at, rate, bytes float64 }
	ends, names, processes, steps, last := map[thread]float64{}, map[thread]string{}, map[int]string{}, 0, 0.0
	counters, kinds := map[string]counter{}, map[string]int{}
	for _, e := range trace.TraceEvents {
		require.NotEmpty(t, e.Name)
		at := thread{*e.Pid, *e.Tid}
		kinds[e.Cat]++
		switch e.Ph {
		case "M":
			var args struct{ Name string }
			require.NoError(t, json.Unmarshal(e.Args, &args))
			require.NotEmpty(t, args.Name)
			if e.Name == "thread_name" {
				names[at] = args.Name
			} else {
				require.Equal(t, "process_name", e.Name)
				processes[*e.Pid] = args.Name
			}
		case "X":
			require.NotEmpty(t, names[at], "a thread has its name before its events")
			require.NotEmpty(t, processes[*e.Pid])
			require.GreaterOrEqual(t, *e.Ts, ends[at]-1e-6, "slices of a thread follow each other")
			require.GreaterOrEqual(t, *e.Dur, 0.0)
			ends[at] = *e.Ts + *e.Dur
			if e.Cat == "step" {
				steps++
				last = max(last, ends[at])
			}
		case "C":
			require.NotEmpty(t, processes[*e.Pid])
			var args map[string]float64
			require.NoError(t, json.Unmarshal(e.Args, &args))
			require.Len(t, args, 1)
			before := counters[e.Name]
			require.GreaterOrEqual(t, *e.Ts, before.at)
			require.GreaterOrEqual(t, args["GB/s"], 0.)
			counters[e.Name] = counter{*e.Ts, args["GB/s"], before.bytes + before.rate*1e3*(*e.Ts-before.at)}
		default:
			require.Fail(t, "unknown phase", e.Ph)
		}
	}
	want := 0
	for w := range s.Workers() {
		want += s.Worker(w).Steps
	}
	assert.Equal(t, want, steps)
	assert.InDelta(t, (result.Time - result.Base).Microseconds(), last, 1e-6)
	assert.Equal(t, 3, kinds["trouble"], "a fault, and a rank that is late, and slow")
	assert.Positive(t, kinds["stall"])
	bytes := map[string]float64{}
	for l := range result.EachLoad {
		bytes[c.LinkName(l.Link)] = float64(l.Bytes)
	}
	require.NotEmpty(t, counters)
	for name, k := range counters {
		link, _, _ := strings.Cut(name, ", and ")
		assert.InEpsilon(t, bytes[link], k.bytes, 1e-3, name)
		assert.Zero(t, k.rate, name)
	}
}

func TestSVG(t *testing.T) {
	line, _, _, _ := record(t)
	var b bytes.Buffer
	require.NoError(t, line.WriteSVG(&b))
	for d := xml.NewDecoder(&b); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else {
			require.NoError(t, err)
		}
	}
}
