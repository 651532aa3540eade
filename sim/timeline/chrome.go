package timeline

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"

	"tutti/model/units"
)

// event is one entry of the Trace Event Format of Chrome, which Perfetto reads,
// too: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU.
type event struct {
	Name     string   `json:"name"`
	Category string   `json:"cat,omitempty"`
	Phase    string   `json:"ph"`
	Time     float64  `json:"ts"` // microseconds
	Duration *float64 `json:"dur,omitempty"`
	Process  int      `json:"pid"`
	Thread   int      `json:"tid"`
	Args     any      `json:"args,omitempty"`
}

// What the phases are called there.
const (
	complete = "X" // a slice of a thread, with its duration
	counter  = "C"
	metadata = "M"
)

// trace writes events.
type trace struct {
	out   *bufio.Writer
	begun bool
}

func (t *trace) add(e event) {
	text, err := json.Marshal(e)
	if err != nil {
		panic(err) // the types have a JSON form
	}
	if t.begun {
		_, _ = t.out.WriteString(",\n") // an error is kept for Flush
	}
	t.begun = true
	_, _ = t.out.Write(text)
}

// named names a process or a thread.
func (t *trace) named(what string, process, thread int, name string) {
	t.add(event{Name: what, Phase: metadata, Process: process, Thread: thread, Args: map[string]string{"name": name}})
}

// slice adds a slice of a thread.
func (t *trace) slice(process, thread int, category, name string, from, to units.Time, args any) {
	duration := (to - from).Microseconds()
	t.add(event{Name: name, Category: category, Phase: complete, Time: from.Microseconds(), Duration: &duration, Process: process, Thread: thread, Args: args})
}

// WriteChrome writes the timeline, which has ended, as a trace: a process for each
// rank, with a thread for each of its workers, whose steps and waits are slices; one
// for the network, with a thread for each connection over it; one for the links,
// with a counter of the rate of each, or of those that carry the same; and one for
// faults. The links with the most items have counters, as many as there is room for
// beside the steps.
func (t *Timeline) WriteChrome(w io.Writer) error {
	out := &trace{out: bufio.NewWriter(w)}
	_, _ = out.out.WriteString("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n")
	ranks := t.schedule.Task().Ranks
	t.writeSteps(out)
	t.writeItems(out, ranks)
	t.writeRates(out, ranks+1)
	t.writeTrouble(out, ranks+2)
	_, _ = out.out.WriteString("\n]}\n")
	return out.out.Flush()
}

func (t *Timeline) writeSteps(out *trace) {
	task := t.schedule.Task()
	for rank := range task.Ranks {
		out.named("process_name", rank, 0, fmt.Sprintf("rank %d", rank))
	}
	for i, s := range t.steps {
		described := t.schedule.Worker(int(s.worker))
		if i == 0 || t.steps[i-1].worker != s.worker {
			out.named("thread_name", described.Rank, int(s.worker), fmt.Sprintf("channel %d %v", described.Channel, described.Role))
		}
		if s.begin > s.from {
			category := "stall"
			if t.stalls[i].why == onItself {
				category = "overhead"
			}
			out.slice(described.Rank, int(s.worker), category, t.words(t.stalls[i]), s.from, s.begin, nil)
		}
		does := t.schedule.Step(int(s.worker), int(s.number))
		out.slice(described.Rank, int(s.worker), "step", name(does), s.begin, s.end,
			map[string]int64{"step": int64(s.number), "offset": does.Offset, "bytes": int64(units.Bytes(does.Total()) * task.Datatype.Size())})
	}
}

func (t *Timeline) writeItems(out *trace, process int) {
	if len(t.items) > 0 {
		out.named("process_name", process, 0, "network")
	}
	number := 0
	for i, m := range t.items {
		if number++; i == 0 || t.items[i-1].connection != m.connection {
			number = 0
			c := t.schedule.Connection(int(m.connection))
			out.named("thread_name", process, int(m.connection), fmt.Sprintf("rank %d > rank %d, channel %d",
				t.schedule.Worker(c.From[0]).Rank, t.schedule.Worker(c.To[0]).Rank, t.schedule.Worker(c.From[0]).Channel))
		}
		out.slice(process, int(m.connection), "network", "item", m.begin, m.end, map[string]int64{"bytes": int64(t.passages[m.connection].bytes[number])})
	}
}

func (t *Timeline) writeRates(out *trace, process int) {
	if len(t.tracks) == 0 {
		return
	}
	name := "links"
	if len(t.tracks) < t.of {
		name = fmt.Sprintf("links, %d of %d", len(t.tracks), t.of)
	}
	out.named("process_name", process, 0, name)
	for _, k := range t.tracks {
		for _, p := range k.points {
			rate := math.Round(float64(p.rate/units.GBps)*1000) / 1000
			out.add(event{Name: k.name, Category: "link", Phase: counter, Time: p.at.Microseconds(), Process: process, Args: map[string]float64{"GB/s": rate}})
		}
	}
}

// writeTrouble gives each fault a thread of its own, and each straggler one beside
// its rank's workers.
func (t *Timeline) writeTrouble(out *trace, process int) {
	faults := false
	for i, k := range t.trouble {
		at, thread := process, t.schedule.Workers()+i
		if k.rank >= 0 {
			at = k.rank
			out.named("thread_name", at, thread, "straggler")
		} else {
			if !faults {
				out.named("process_name", process, 0, "faults")
			}
			faults = true
			out.named("thread_name", at, thread, "fault")
		}
		out.slice(at, thread, "trouble", k.name, k.begin, k.end, nil)
	}
}
