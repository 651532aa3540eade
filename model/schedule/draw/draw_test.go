package draw_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tutti/model"
	"tutti/model/schedule"
	"tutti/model/schedule/draw"
	"tutti/topo"
	"tutti/topo/search"
)

// build makes a schedule on DGX H100s.
func build(t *testing.T, task schedule.Task, gpus int) schedule.Schedule {
	machine, err := topo.Open("dgx-h100")
	require.NoError(t, err)
	c, err := topo.NewCluster(machine, task.Nodes, gpus, topo.RailOptimised)
	require.NoError(t, err)
	task.Ranks, task.Channels, task.Datatype = c.Ranks(), 1, model.Float32
	s, err := schedule.New(task, c, search.All(c))
	require.NoError(t, err)
	return s
}

func text(t *testing.T, s schedule.Schedule) string {
	timeline, err := draw.NewTimeline(s, draw.MaxText)
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, timeline.WriteText(&b))
	return b.String()
}

func TestText(t *testing.T) {
	assert.Equal(t, strings.TrimPrefix(`
time  rank  channel  role  step                elements  from  to
0     0     0        ring  send                8-15      -     1
      1     0        ring  send                0-7       -     0
1     0     0        ring  recvReduceCopySend  0-7       1     1
      1     0        ring  recvReduceCopySend  8-15      0     0
2     0     0        ring  recv                8-15      1     -
      1     0        ring  recv                0-7       0     -
`, "\n"), text(t, build(t, schedule.Task{Algorithm: model.Ring, Protocol: model.LL, Count: 16, Nodes: 1}, 2)))

	assert.Equal(t, strings.TrimPrefix(`
time  rank  channel  role     step            elements    from   to
0     0     0        scatter  send            0-12287     -      0 1 2
      1     0        scatter  send            0-12287     -      0 1 2
      2     0        scatter  send            0-12287     -      0 1 2
1     0     0        reduce   recvReduceSend  0-4095      0 1 2  0 1 2
      1     0        reduce   recvReduceSend  4096-8191   0 1 2  0 1 2
      2     0        reduce   recvReduceSend  8192-12287  0 1 2  0 1 2
2     0     0        gather   recv            0-12287     0 1 2  -
      1     0        gather   recv            0-12287     0 1 2  -
      2     0        gather   recv            0-12287     0 1 2  -
`, "\n"), text(t, build(t, schedule.Task{Algorithm: model.NVLS, Protocol: model.Simple, Count: 3 << 12, Nodes: 1}, 3)))

	assert.Equal(t, strings.TrimPrefix(`
time  rank  channel  role    step            elements  from  to
0     0     0        reduce  send            0-8       -     1 2
      1     0        reduce  send            0-8       -     0 2
      2     0        reduce  send            0-8       -     0 1
1     0     0        reduce  recvReduceCopy  0-8       1 2   -
      1     0        reduce  recvReduceCopy  0-8       0 2   -
      2     0        reduce  recvReduceCopy  0-8       0 1   -
2     0     0        reduce  signal          -         -     1 2
      1     0        reduce  signal          -         -     0 2
      2     0        reduce  signal          -         -     0 1
3     0     0        reduce  wait            -         1 2   -
      1     0        reduce  wait            -         0 2   -
      2     0        reduce  wait            -         0 1   -
`, "\n"), text(t, build(t, schedule.Task{Algorithm: model.OneShot, Protocol: model.Simple, Count: 9, Nodes: 1}, 3)))
}

// Every algorithm can be drawn: a box for each step, an arrow for each item from
// each of its writers to each of its readers, in well-formed XML.
func TestSVG(t *testing.T) {
	drawn := 0
	for _, a := range model.Algorithms() {
		machine, err := topo.Open("dgx-h100")
		require.NoError(t, err)
		nodes := 2
		if a == model.NVLS || a == model.OneShot || a == model.TwoShot {
			nodes = 1
		}
		c, err := topo.NewCluster(machine, nodes, 3, topo.RailOptimised)
		require.NoError(t, err)
		s, err := schedule.New(schedule.Task{
			Collective: a.Collectives()[0], Algorithm: a, Protocol: model.Simple, Datatype: model.Float32, Count: 3 << 12, Channels: 1, Ranks: 3 * nodes, Nodes: nodes,
		}, c, search.All(c))
		if err != nil {
			continue // this machine cannot run it
		}
		drawn++
		timeline, err := draw.NewTimeline(s, draw.MaxSVG)
		require.NoError(t, err)
		var b bytes.Buffer
		require.NoError(t, timeline.WriteSVG(&b), a)
		arrows := 0
		for _, m := range timeline.Moves {
			for _, item := range m.From {
				arrows += len(item.Senders)
			}
		}
		assert.Equal(t, arrows, strings.Count(b.String(), "<polygon"), a)
		for parser := xml.NewDecoder(&b); ; {
			if _, err := parser.Token(); errors.Is(err, io.EOF) {
				break
			} else {
				require.NoError(t, err)
			}
		}
	}
	assert.GreaterOrEqual(t, drawn, 10)
}

// What nobody could read is refused, and says what would be less.
func TestLimits(t *testing.T) {
	_, err := draw.NewTimeline(build(t, schedule.Task{Algorithm: model.Ring, Protocol: model.LL, Count: 1 << 26, Nodes: 1}, 8), draw.MaxText)
	assert.EqualError(t, err, "the schedule has more than 5000 steps, too many to show: want fewer ranks, channels or elements")
	for want, s := range map[string]schedule.Schedule{
		"the picture would have 2016 steps: want at most 1500 (fewer ranks, channels or elements)":   build(t, schedule.Task{Algorithm: model.Ring, Protocol: model.LL, Count: 32, Nodes: 4}, 8),
		"the picture would have 127 workers side by side: want at most 64 (fewer ranks or channels)": build(t, schedule.Task{Algorithm: model.Tree, Protocol: model.LL, Count: 64, Nodes: 8}, 8),
		"the picture would be 175 steps long: want at most 150 (fewer ranks or elements)":            build(t, schedule.Task{Algorithm: model.Ring, Protocol: model.LL, Count: 800000, Nodes: 1}, 4),
	} {
		timeline, err := draw.NewTimeline(s, draw.MaxText)
		require.NoError(t, err)
		assert.EqualError(t, timeline.WriteSVG(io.Discard), want)
	}
}
