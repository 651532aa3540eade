package file_test

import (
	"bytes"
	"context"
	"encoding/xml"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"tutti/backend"
	"tutti/backend/host"
	"tutti/model"
	"tutti/model/schedule"
	"tutti/model/schedule/file"
	"tutti/model/schedule/scheduletest"
)

var builder scheduletest.Builder

// JSON reads back equal, and what was read is right and runs.
func TestJSONReadsBackEqual(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		task := rapid.Custom(func(t *rapid.T) schedule.Task {
			algorithm := rapid.SampledFrom(model.Algorithms()).Draw(t, "algorithm")
			task := schedule.Task{
				Algorithm:  algorithm,
				Collective: rapid.SampledFrom(algorithm.Collectives()).Draw(t, "collective"),
				Protocol:   rapid.SampledFrom(algorithm.Protocols()).Draw(t, "protocol"),
				Datatype:   rapid.SampledFrom(model.Datatypes()).Draw(t, "datatype"),
				Redop:      rapid.SampledFrom(model.Redops()).Draw(t, "operation"),
				Count:      rapid.Int64Range(0, 9000).Draw(t, "count"),
				InPlace:    rapid.Bool().Draw(t, "in place"),
				Channels:   rapid.IntRange(1, 3).Draw(t, "channels"),
				Nodes:      rapid.IntRange(1, 3).Draw(t, "nodes"),
			}
			task.Ranks = task.Nodes * rapid.IntRange(1, 5).Draw(t, "GPUs")
			return task
		}).Filter(scheduletest.Possible).Draw(t, "task")
		s, err := builder.Build(task, task.Ranks/task.Nodes)
		require.NoError(t, err)
		var text bytes.Buffer
		require.NoError(t, file.WriteJSON(&text, s))
		read, err := file.ReadJSON(&text)
		require.NoError(t, err)
		equal(t, s, read)

		require.NoError(t, schedule.Verify(read))
		e, err := host.New(2).Prepare(read)
		require.NoError(t, err)
		m, err := backend.Measure(context.Background(), e, read.Task(), backend.Method{Check: true})
		require.NoError(t, err)
		assert.Zero(t, m.Wrong)
	})
}

// equal fails unless two schedules are the same, step by step.
func equal(t require.TestingT, want, got schedule.Schedule) {
	require.Equal(t, want.Task(), got.Task())
	require.Equal(t, want.Workers(), got.Workers())
	require.Equal(t, want.Connections(), got.Connections())
	for c := range want.Connections() {
		require.Equal(t, want.Connection(c), got.Connection(c))
	}
	for w := range want.Workers() {
		a, b := want.Worker(w), got.Worker(w)
		require.Equal(t, a, b)
		for i := range a.Steps {
			x, y := want.Step(w, i), got.Step(w, i)
			for _, ports := range []*schedule.Ports{&x.Recv, &x.Send} { // none is none, wherever it is
				if ports.Len() == 0 {
					*ports = schedule.Ports{}
				}
			}
			require.Equal(t, x, y)
		}
	}
}

const small = `{"schema": "tutti.schedule/1",
"task": {"collective":"allreduce","algorithm":"ring","protocol":"ll","datatype":"float","redop":"sum","count":16,"channels":1,"ranks":2,"nodes":1},
"connections": [
{"from":[0],"to":[1],"slots":8,"room":8192},
{"from":[1],"to":[0],"slots":8,"room":8192}],
"workers": [
{"rank":0,"role":"ring","share":1,"in":[1],"out":[0],"steps":[{"send":[0,1],"input":true,"offset":8,"count":8},{"recv":[0,1],"send":[0,1],"input":true,"output":true,"count":8},{"recv":[0,1],"output":true,"offset":8,"count":8}]},
{"rank":1,"role":"ring","share":1,"in":[0],"out":[1],"steps":[{"send":[0,1],"input":true,"count":8},{"recv":[0,1],"send":[0,1],"input":true,"output":true,"offset":8,"count":8},{"recv":[0,1],"output":true,"count":8}]}]}
`

func ring(t *testing.T) schedule.Schedule {
	s, err := builder.Build(schedule.Task{Algorithm: model.Ring, Protocol: model.LL, Datatype: model.Float32, Count: 16, Channels: 1, Nodes: 1}, 2)
	require.NoError(t, err)
	return s
}

func TestJSON(t *testing.T) {
	var text bytes.Buffer
	require.NoError(t, file.WriteJSON(&text, ring(t)))
	assert.Equal(t, small, text.String())
}

func TestJSONErrors(t *testing.T) {
	for change, want := range map[[2]string]string{
		{small, ""}:                                   "not a schedule: the end comes too early",
		{small, "[]"}:                                 "not a schedule: json: cannot unmarshal array into Go value of type",
		{"schema", "sc"}:                              `not a schedule: json: unknown field "sc"`,
		{"tutti.schedule/1", "2"}:                     `schema is "2": want "tutti.schedule/1"`,
		{`"ring","proto`, `"butterfly","proto`}:       `task: unknown algorithm "butterfly": want one of ring`,
		{`"ranks":2`, `"ranks":0`}:                    "task: ranks is 0: want 1 to 131072",
		{`"count":16`, `"count":-1`}:                  "task: count is -1: want 0 to",
		{`"from":[1]`, `"from":[2]`}:                  "connection 1: worker is 2: want 0 to 1",
		{`"from":[1]`, `"from":[1,0]`}:                "connection 1: from workers [1 0] to [0]: want one each, or another kind",
		{`"from":[1]`, `"kind":"party","from":[1]`}:   `connection 1: unknown kind "party": want one of [pointtopoint multicast reduction aggregation]`,
		{`"rank":1`, `"rank":2`}:                      "worker 1: rank is 2: want 0 to 1",
		{`{"rank":1,"role":"ring"`, `{"role":"jest"`}: `worker 1: unknown role "jest": want one of [ring up down`,
		{`"offset":8`, `"offset":-8`}:                 "worker 0: step 0: offset is -8: want 0 to",
		{`"send":[0,1]`, `"send":[1,0]`}:              "worker 0: step 0: last port is 0: want 1 to",
	} {
		_, err := file.ReadJSON(strings.NewReader(strings.Replace(small, change[0], change[1], 1)))
		require.Error(t, err, want)
		assert.True(t, strings.HasPrefix(err.Error(), want), "%v\nwant %v", err, want)
	}
	_, err := file.Read("nowhere.json")
	assert.EqualError(t, err, "open nowhere.json: no such file or directory")
}

// Whatever a file says, reading and proving it end, and what is proved runs.
func FuzzReadJSON(f *testing.F) {
	f.Add(small)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := file.ReadJSON(strings.NewReader(text))
		if err != nil || s.Workers() > 8 || s.Task().Ranks > 8 || s.Task().Elements() > 1<<20 {
			return
		}
		if schedule.Verify(s) != nil {
			return
		}
		e, err := host.New(1).Prepare(s)
		require.NoError(t, err)
		m, err := backend.Measure(t.Context(), e, s.Task(), backend.Method{Check: true})
		require.NoError(t, err)
		require.Zero(t, m.Wrong)
		var again bytes.Buffer
		require.NoError(t, file.WriteJSON(&again, s))
	})
}

const smallXML = `<algo name="tutti_allreduce_ring_2" proto="LL" nchannels="1" nchunksperloop="2" ngpus="2" coll="allreduce" inplace="0" outofplace="1">
  <gpu id="0" i_chunks="2" o_chunks="2" s_chunks="0">
    <tb id="0" send="1" recv="1" chan="0">
      <step s="0" type="s" srcbuf="i" srcoff="1" dstbuf="i" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0"></step>
      <step s="1" type="rrcs" srcbuf="i" srcoff="0" dstbuf="o" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"></step>
      <step s="2" type="r" srcbuf="o" srcoff="1" dstbuf="o" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0"></step>
    </tb>
  </gpu>
  <gpu id="1" i_chunks="2" o_chunks="2" s_chunks="0">
    <tb id="0" send="0" recv="0" chan="0">
      <step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"></step>
      <step s="1" type="rrcs" srcbuf="i" srcoff="1" dstbuf="o" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0"></step>
      <step s="2" type="r" srcbuf="o" srcoff="0" dstbuf="o" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"></step>
    </tb>
  </gpu>
</algo>
`

func TestMSCCL(t *testing.T) {
	var text bytes.Buffer
	require.NoError(t, file.WriteMSCCL(&text, ring(t)))
	assert.Equal(t, smallXML, text.String())
}

// In MSCCL's XML, the steps of two blocks that are joined fit together, and go
// through as many chunks as the schedule does.
func TestMSCCLBlocksFitTogether(t *testing.T) {
	for _, c := range model.Ring.Collectives() {
		for gpus := 2; gpus <= 8; gpus++ {
			s, err := builder.Build(schedule.Task{Collective: c, Algorithm: model.Ring, Protocol: model.LL, Datatype: model.Float32, Count: int64(gpus) * 32, Channels: 2, Nodes: 1}, gpus)
			require.NoError(t, err)
			var text bytes.Buffer
			require.NoError(t, file.WriteMSCCL(&text, s))
			var algo struct {
				GPU []struct {
					Input  int `xml:"i_chunks,attr"`
					Output int `xml:"o_chunks,attr"`
					Blocks []struct {
						Send  int `xml:"send,attr"`
						Steps []struct {
							Type   string `xml:"type,attr"`
							Offset int    `xml:"dstoff,attr"`
							Count  int    `xml:"cnt,attr"`
						} `xml:"step"`
					} `xml:"tb"`
				} `xml:"gpu"`
			}
			require.NoError(t, xml.Unmarshal(text.Bytes(), &algo))
			require.Len(t, algo.GPU, gpus)
			sends, recvs := 0, 0
			for _, g := range algo.GPU {
				for _, b := range g.Blocks {
					for _, step := range b.Steps {
						if strings.HasSuffix(step.Type, "s") {
							sends += step.Count
							assert.GreaterOrEqual(t, b.Send, 0)
						}
						if strings.HasPrefix(step.Type, "r") {
							recvs += step.Count
						}
						assert.LessOrEqual(t, step.Offset+step.Count, max(g.Input, g.Output))
					}
				}
			}
			assert.Equal(t, sends, recvs)
			assert.Positive(t, sends)
		}
	}
}

// What MSCCL has no words for is told.
func TestMSCCLErrors(t *testing.T) {
	for want, task := range map[string]schedule.Task{
		"rank 0, channel 0, up worker: sends over 2":                                                               {Algorithm: model.Tree, Nodes: 4},
		"rank 0, channel 0, scatter worker: sends over 4 connections: an MSCCL thread block has one peer each way": {Algorithm: model.NVLS, Nodes: 1},
		"it has no exchange": {Algorithm: model.P2P, Collective: model.Exchange, Nodes: 1},
		"rank 0, channel 0, ring worker: 448 steps: MSCCL takes at most 256 in a thread block":         {Algorithm: model.Ring, Nodes: 1, Count: 1 << 21},
		"rank 0, channel 0, ring worker: step 0: 8192 chunks of 1 elements: MSCCL moves at most 72 at": {Algorithm: model.Ring, Nodes: 1, Protocol: model.Simple, Count: 65537},
	} {
		if task.Count == 0 {
			task.Count = 64
		}
		if !slices.Contains(task.Algorithm.Protocols(), task.Protocol) {
			task.Protocol = model.Simple
		}
		task.Datatype, task.Channels = model.Float32, 1
		s, err := builder.Build(task, 4)
		require.NoError(t, err)
		assert.ErrorContains(t, file.WriteMSCCL(&bytes.Buffer{}, s), "MSCCL cannot express the schedule: "+want)
	}
}
