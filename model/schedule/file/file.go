// Package file writes schedules for other programs to read: step by step as
// JSON, which reads back equal, and as the XML of MSCCL.
//
// The JSON is one object:
//
//	{"schema": "tutti.schedule/1",
//	 "task": {"collective": "allreduce", "algorithm": "ring", …, "count": 16, …},
//	 "connections": [{"from": [0], "to": [1], "slots": 8, "room": 8192}, …],
//	 "workers": [{"rank": 0, "role": "ring", "in": [3], "out": [0],
//	              "steps": [{"send": [0, 1], "input": true, "count": 8}, …]}, …]}
//
// Workers and connections are named by their places in the lists, ports by
// theirs in "in" and "out". What stands for zero, none or false is left out; a
// connection's kind is pointtopoint and its storage staged unless it says
// otherwise. The fields are those of package schedule.
package file

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"tutti/model/schedule"
)

// Schema is the version of the JSON form, written with it.
const Schema = "tutti.schedule/1"

// MaxSteps is how many steps a schedule that is written out may have, of all
// workers together.
const MaxSteps = 1 << 20

type jsonTask struct {
	Collective string `json:"collective"`
	Algorithm  string `json:"algorithm"`
	Protocol   string `json:"protocol"`
	Datatype   string `json:"datatype"`
	Redop      string `json:"redop"`
	Count      int64  `json:"count"`
	Root       int    `json:"root,omitempty"`
	InPlace    bool   `json:"inplace,omitempty"`
	Channels   int    `json:"channels"`
	Ranks      int    `json:"ranks"`
	Nodes      int    `json:"nodes"`
}

type jsonConnection struct {
	Kind    string `json:"kind,omitempty"`
	Storage string `json:"storage,omitempty"`
	From    []int  `json:"from,omitempty"`
	To      []int  `json:"to,omitempty"`
	Slots   int    `json:"slots,omitempty"`
	Room    int64  `json:"room,omitempty"`
	// The ports between machines; null inside one.
	OutNET *int `json:"out_net,omitempty"`
	InNET  *int `json:"in_net,omitempty"`
}

type jsonWorker struct {
	Rank    int        `json:"rank"`
	Channel int        `json:"channel,omitempty"`
	Role    string     `json:"role"`
	Share   float64    `json:"share,omitempty"`
	In      []int      `json:"in,omitempty"`
	Out     []int      `json:"out,omitempty"`
	Steps   []jsonStep `json:"steps,omitempty"`
}

type jsonStep struct {
	Recv   *[2]int `json:"recv,omitempty"` // from, up to
	Send   *[2]int `json:"send,omitempty"`
	Input  bool    `json:"input,omitempty"`
	Output bool    `json:"output,omitempty"`
	Offset int64   `json:"offset,omitempty"`
	Count  int64   `json:"count,omitempty"`
	Stride int64   `json:"stride,omitempty"`
	End    int64   `json:"end,omitempty"`
	Turn   int     `json:"turn,omitempty"`
	Blocks int     `json:"blocks,omitempty"`
}

// The first of each is left out.
var (
	kinds    = []string{schedule.PointToPoint: "pointtopoint", schedule.Multicast: "multicast", schedule.Reduction: "reduction", schedule.Aggregation: "aggregation"}
	storages = []string{schedule.Staged: "staged", schedule.InInput: "ininput", schedule.InOutput: "inoutput"}
)

// WriteJSON writes a schedule, a line for each worker and connection. It fails
// for more than [MaxSteps].
func WriteJSON(w io.Writer, s schedule.Schedule) error {
	if err := checkSize(s); err != nil {
		return err
	}
	t := s.Task()
	out := &lines{to: bufio.NewWriter(w)}
	out.add(fmt.Sprintf("{\"schema\": %q,\n\"task\": ", Schema), jsonTask{
		t.Collective.String(), t.Algorithm.String(), t.Protocol.String(), t.Datatype.String(), t.Redop.String(),
		t.Count, t.Root, t.InPlace, t.Channels, t.Ranks, t.Nodes,
	})
	out.list("connections", s.Connections(), func(c int) any { return encodeConnection(s.Connection(c)) })
	out.list("workers", s.Workers(), func(w int) any { return encodeWorker(s, w) })
	out.text("}\n")
	return errors.Join(out.err, out.to.Flush())
}

// lines writes text and JSON, and keeps the first error.
type lines struct {
	to  *bufio.Writer
	err error
}

func (l *lines) text(s string) { _, _ = l.to.WriteString(s) } // an error is kept for Flush

func (l *lines) add(before string, value any) {
	text, err := json.Marshal(value)
	l.err = errors.Join(l.err, err)
	l.text(before + string(text))
}

// list writes a list of n values, a line for each.
func (l *lines) list(name string, n int, value func(int) any) {
	l.text(fmt.Sprintf(",\n%q: [", name))
	before := "\n"
	for i := range n {
		l.add(before, value(i))
		before = ",\n"
	}
	l.text("]")
}

func checkSize(s schedule.Schedule) error {
	steps := 0
	for w := range s.Workers() {
		steps += s.Worker(w).Steps
	}
	if steps > MaxSteps {
		return fmt.Errorf("the schedule has %d steps: want at most %d (fewer ranks, channels or elements)", steps, MaxSteps)
	}
	return nil
}

func encodeConnection(c schedule.Connection) jsonConnection {
	j := jsonConnection{From: c.From, To: c.To, Slots: c.Slots, Room: c.Room}
	if c.Kind != schedule.PointToPoint {
		j.Kind = kinds[c.Kind]
	}
	if c.Storage != schedule.Staged {
		j.Storage = storages[c.Storage]
	}
	if c.OutNET >= 0 {
		j.OutNET = &c.OutNET
	}
	if c.InNET >= 0 {
		j.InNET = &c.InNET
	}
	return j
}

func encodeWorker(s schedule.Schedule, number int) jsonWorker {
	w := s.Worker(number)
	j := jsonWorker{Rank: w.Rank, Channel: w.Channel, Role: w.Role.String(), Share: w.Share, In: w.In, Out: w.Out}
	for i := range w.Steps {
		step := s.Step(number, i)
		j.Steps = append(j.Steps, jsonStep{
			encodePorts(step.Recv), encodePorts(step.Send), step.Input, step.Output,
			step.Offset, step.Count, step.Stride, step.End, step.Turn, step.Blocks,
		})
	}
	return j
}

func encodePorts(p schedule.Ports) *[2]int {
	if p.Len() == 0 {
		return nil
	}
	return &[2]int{p.From, p.To}
}

// names of roles, in order.
func roles() (list []string) {
	for r := schedule.RoleRing; r <= schedule.RoleBroadcast; r++ {
		list = append(list, r.String())
	}
	return list
}
