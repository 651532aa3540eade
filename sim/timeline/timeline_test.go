package timeline_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tutti/model"
	"tutti/model/profile"
	"tutti/model/schedule"
	"tutti/sim"
	"tutti/sim/timeline"
	"tutti/topo"
	"tutti/topo/search"
)

func record(t *testing.T) (*timeline.Timeline, schedule.Schedule, sim.Result) {
	machine, err := topo.Open("dgx-h100")
	require.NoError(t, err)
	c, err := topo.NewCluster(machine, 2, 2, topo.RailOptimised)
	require.NoError(t, err)
	s, err := schedule.New(schedule.Task{
		Algorithm: model.Ring, Protocol: model.Simple, Datatype: model.Float32, Count: 1 << 20, Channels: 1, Ranks: 4, Nodes: 2,
	}, c, search.All(c))
	require.NoError(t, err)
	line := timeline.New(s)
	r, err := sim.RunWith(s, c, profile.ForGPU(90), sim.Options{Watch: line})
	require.NoError(t, err)
	plain, err := sim.Run(s, c, profile.ForGPU(90))
	require.NoError(t, err)
	require.Equal(t, plain.Time, r.Time, "watching changes nothing")
	return line, s, r
}

// The trace is what the Trace Event Format asks for: complete events ("X") with
// a time and a duration, metadata ("M") with a name, all with a process and a
// thread. Slices of a thread do not overlap, and steps fill the whole time.
func TestChrome(t *testing.T) {
	line, s, result := record(t)
	var b bytes.Buffer
	require.NoError(t, line.WriteChrome(&b))
	var trace struct {
		DisplayTimeUnit string
		TraceEvents     []map[string]any
	}
	require.NoError(t, json.Unmarshal(b.Bytes(), &trace))
	assert.Equal(t, "ns", trace.DisplayTimeUnit)
	type thread struct{ process, thread float64 }
	ends, names, steps, last := map[thread]float64{}, map[thread]string{}, 0, 0.0
	for _, e := range trace.TraceEvents {
		at := thread{e["pid"].(float64), e["tid"].(float64)}
		switch e["ph"] {
		case "M":
			name := e["args"].(map[string]any)["name"].(string)
			require.NotEmpty(t, name)
			if e["name"] == "thread_name" {
				names[at] = name
			} else {
				require.Equal(t, "process_name", e["name"])
			}
		case "X":
			begin, duration := e["ts"].(float64), 0.0
			if e["dur"] != nil {
				duration = e["dur"].(float64)
			}
			require.NotEmpty(t, e["name"])
			require.NotEmpty(t, names[at], "a thread has its name before its events")
			require.GreaterOrEqual(t, begin, ends[at]-1e-6, "slices of a thread follow each other")
			require.GreaterOrEqual(t, duration, 0.0)
			ends[at] = begin + duration
			if e["cat"] == "step" {
				steps++
				last = max(last, ends[at])
			}
		default:
			require.Fail(t, "unknown phase", e["ph"])
		}
	}
	want := 0
	for w := range s.Workers() {
		want += s.Worker(w).Steps
	}
	assert.Equal(t, want, steps)
	assert.InDelta(t, (result.Time - result.Base).Microseconds(), last, 1e-6)
}

func TestSVG(t *testing.T) {
	line, _, _ := record(t)
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
