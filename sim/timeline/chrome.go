package timeline

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"

	"tutti/model/units"
)

// event is one entry of the Trace Event Format of Chrome, which Perfetto reads,
// too: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU.
type event struct {
	Name     string  `json:"name"`
	Category string  `json:"cat,omitempty"`
	Phase    string  `json:"ph"`
	Time     float64 `json:"ts"` // microseconds
	Duration float64 `json:"dur,omitempty"`
	Process  int     `json:"pid"`
	Thread   int     `json:"tid"`
	Args     any     `json:"args,omitempty"`
}

// WriteChrome writes the timeline as a trace: a process for each rank, with a
// thread for each of its workers, whose steps and waits are slices; and a process
// for the network, with a thread for each connection over it.
func (t *Timeline) WriteChrome(w io.Writer) error {
	t.sort()
	out := bufio.NewWriter(w)
	first := true
	add := func(e event) {
		text, err := json.Marshal(e)
		if err != nil {
			panic(err) // the types have a JSON form
		}
		if !first {
			_, _ = out.WriteString(",\n") // an error is kept for Flush
		}
		first = false
		_, _ = out.Write(text)
	}
	named := func(what string, process, thread int, name string) {
		add(event{Name: what, Phase: "M", Process: process, Thread: thread, Args: map[string]string{"name": name}})
	}
	_, _ = out.WriteString("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n")
	task := t.schedule.Task()
	network := task.Ranks
	for rank := range task.Ranks {
		named("process_name", rank, 0, fmt.Sprintf("rank %d", rank))
	}
	for i, s := range t.steps {
		described := t.schedule.Worker(int(s.worker))
		if i == 0 || t.steps[i-1].worker != s.worker {
			named("thread_name", described.Rank, int(s.worker), fmt.Sprintf("channel %d %v", described.Channel, described.Role))
		}
		does := t.schedule.Step(int(s.worker), int(s.number))
		if s.begin > s.from {
			add(event{Name: "wait", Category: "stall", Phase: "X", Time: s.from.Microseconds(), Duration: (s.begin - s.from).Microseconds(), Process: described.Rank, Thread: int(s.worker)})
		}
		add(event{
			Name: name(does), Category: "step", Phase: "X", Time: s.begin.Microseconds(), Duration: (s.end - s.begin).Microseconds(),
			Process: described.Rank, Thread: int(s.worker),
			Args: map[string]int64{"step": int64(s.number), "offset": does.Offset, "bytes": int64(units.Bytes(does.Total()) * task.Datatype.Size())},
		})
	}
	if len(t.items) > 0 {
		named("process_name", network, 0, "network")
	}
	for i, m := range t.items {
		if i == 0 || t.items[i-1].connection != m.connection {
			c := t.schedule.Connection(int(m.connection))
			named("thread_name", network, int(m.connection), fmt.Sprintf("rank %d > rank %d, channel %d",
				t.schedule.Worker(c.From[0]).Rank, t.schedule.Worker(c.To[0]).Rank, t.schedule.Worker(c.From[0]).Channel))
		}
		add(event{Name: "item", Category: "network", Phase: "X", Time: m.begin.Microseconds(), Duration: (m.end - m.begin).Microseconds(), Process: network, Thread: int(m.connection)})
	}
	_, _ = out.WriteString("\n]}\n")
	return out.Flush()
}
