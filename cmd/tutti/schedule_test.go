package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestScheduleShow(t *testing.T) {
	out, notes, code := tutti("schedule", "show", "--algo", "tree", "--gpus", "3")
	assert.Zero(t, code)
	assert.Empty(t, notes)
	assert.Equal(t, strings.TrimPrefix(`
time  rank  channel  role  step                elements  from  to
0     2     0        up    send                0-15      -     1
1     1     0        up    recvReduceSend      0-15      2     0
2     0     0        up    recvReduceCopySend  0-15      1     1
3     1     0        down  recvCopySend        0-15      0     2
4     2     0        down  recv                0-15      1     -
`, "\n"), out)
}

func TestScheduleFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	for args, want := range map[string]string{
		"show --svg ring.svg":                           "<svg",
		"export --file ring.json":                       `{"schema": "tutti.schedule/1"`,
		"export --format msccl-xml --file ring.xml":     "<algo",
		"export --algo oneshot --size 1M --file o.json": `{"schema": "tutti.schedule/1"`,
	} {
		out, notes, code := tutti(append([]string{"schedule"}, strings.Fields(args)...)...)
		assert.Zero(t, code, notes)
		assert.Empty(t, out+notes)
		text, err := os.ReadFile(args[strings.LastIndex(args, " ")+1:])
		require.NoError(t, err)
		assert.Contains(t, string(text), want)
	}
	shown, _, _ := tutti("schedule", "show")
	again, _, _ := tutti("schedule", "show", "ring.json")
	assert.Equal(t, shown, again)
}

func TestScheduleVerify(t *testing.T) {
	out, _, code := tutti("schedule", "verify", "--gpus", "4", "--proto", "ll", "--count", "1024")
	assert.Zero(t, code)
	assert.Equal(t, strings.TrimPrefix(`
allreduce by ring over ll: 4 KiB of float, out of place, 4 ranks on one node, channels at most 1
proved, for every order in which the workers may run:
  every element of every output is written once and holds each rank's data exactly once
  28 steps of 4 workers end: no deadlock with the slots that the connections have
  no step uses a port, an element or room that it does not have; nothing is left in a connection
  buffers are read before they are overwritten, and used only while their rank takes part
24 items carry 24576 bytes over 4 connections, at most 6144 bytes over one
`, "\n"), out)
}

// Whatever is wrong is told in one line, and no file is left behind.
func TestScheduleErrors(t *testing.T) {
	t.Chdir(t.TempDir())
	for args, want := range map[string]struct {
		code int
		text string
	}{
		"show --count -1":            {2, "--count -1: want 0 to 2147483647 (--size takes more)"},
		"show --size 1T":             {1, "the schedule has more than 5000 steps, too many to show: want fewer ranks, channels or elements"},
		"show --size 2T":             {2, "size of 2 TiB: want at most 1 TiB"},
		"show --size 4 --count 4":    {2, "--count and --size exclude each other: want one of them"},
		"show --algo p2p":            {2, "p2p does no allreduce: want alltoall or sendrecv or exchange"},
		"show --algo none":           {2, `--algo: unknown algorithm "none": want one of `},
		"show a.json b.json":         {2, "accepts at most 1 arg(s), received 2"},
		"show a.json":                {1, "open a.json: no such file or directory"},
		"show --svg nowhere/x.svg":   {1, "nowhere/x.svg: cannot be written: no such file or directory"},
		"show --svg x.svg --nodes 9": {1, "the schedule has more than 1500 steps, too many to show: want fewer ranks, channels or elements"},
		"export --format yaml":       {2, "--format yaml: want json or msccl-xml"},
		"export --format msccl-xml --algo twoshot --file x.xml": {1, "MSCCL cannot express the schedule: rank 0, channel 0, reduce worker: sends over 6 connections: an MSCCL thread block has one peer each way"},
		"export --nodes 128 --gpus 8 --size 1G":                 {1, "the schedule has 4192256 steps: want at most 1048576 (fewer ranks, channels or elements)"},
		"verify --nodes 256 --size 64M":                         {1, "8386560 steps of 2048 workers are too many to prove"},
	} {
		out, notes, code := tutti(append([]string{"schedule"}, strings.Fields(args)...)...)
		assert.True(t, strings.HasPrefix(notes, "tutti: "+want.text), "%s: %s", args, notes)
		assert.Equal(t, want.code, code, args)
		assert.Empty(t, out, args)
	}
	left, err := filepath.Glob("*")
	require.NoError(t, err)
	assert.Empty(t, left)
}
