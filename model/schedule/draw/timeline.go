// Package draw shows schedules to people: who sends what to whom at each step,
// as text or as a picture.
package draw

import (
	"cmp"
	"fmt"
	"slices"

	"tutti/model/schedule"
)

// Timeline is a schedule with an instant for each step: the earliest, if every
// step takes one instant and waits for its items and slots.
type Timeline struct {
	Task schedule.Task
	// Lanes are the workers that have steps, by rank and channel.
	Lanes []Lane
	// Moves are the steps, by time and lane.
	Moves []Move
	// Times is how many instants there are.
	Times int
}

// Lane is a worker.
type Lane struct {
	schedule.Worker
	Number int
}

// Move is a step.
type Move struct {
	schedule.Step
	// Lane is an index of Timeline.Lanes.
	Lane, Time int
	// From are the items that the step takes, by port.
	From []Item
	// To are the lanes that its items go to, by port.
	To [][]int
}

// Item is what a step takes from a port.
type Item struct {
	Kind          schedule.Kind
	Offset, Count int64
	Senders       []Sender
}

// Sender is a step that put an item, or its part of one.
type Sender struct{ Lane, Time int }

// NewTimeline runs a schedule, instant by instant. It fails for more than the
// given number of steps, and for a schedule that deadlocks.
func NewTimeline(s schedule.Schedule, most int) (*Timeline, error) {
	b := &builder{Schedule: s, timeline: &Timeline{Task: s.Task()}, fifos: make([]fifo, s.Connections()), lanes: make([]int, s.Workers())}
	total := 0
	for number := range s.Workers() {
		w := s.Worker(number)
		if total += w.Steps; total > most {
			return nil, fmt.Errorf("the schedule has more than %d steps, too many to show: want fewer ranks, channels or elements", most)
		}
		if w.Steps > 0 {
			b.timeline.Lanes = append(b.timeline.Lanes, Lane{w, number})
		}
	}
	slices.SortStableFunc(b.timeline.Lanes, func(a, b Lane) int {
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Channel, b.Channel))
	})
	for i, l := range b.timeline.Lanes {
		b.lanes[l.Number] = i
	}
	for c := range b.fifos {
		b.fifos[c].Connection = s.Connection(c)
	}
	return b.run(total)
}

// fifo is a connection and the items that it ever had.
type fifo struct {
	schedule.Connection
	items []transit
}

type transit struct {
	senders []Sender
	takes   int // so far
}

type builder struct {
	schedule.Schedule
	timeline *Timeline
	fifos    []fifo
	lanes    []int // by worker
}

// run goes from instant to instant: what is ready at the beginning of one is
// done in it.
func (b *builder) run(total int) (*Timeline, error) {
	t := b.timeline
	next := make([]int, len(t.Lanes))
	received, sent := make([]map[int]int, len(t.Lanes)), make([]map[int]int, len(t.Lanes)) // items by port
	for i := range t.Lanes {
		received[i], sent[i] = map[int]int{}, map[int]int{}
	}
	for len(t.Moves) < total {
		begun := len(t.Moves)
		for i, l := range t.Lanes {
			if next[i] == l.Steps {
				continue
			}
			step := b.Step(l.Number, next[i])
			if b.ready(l, &step, received[i], sent[i]) {
				t.Moves = append(t.Moves, b.move(i, l, step, received[i]))
			}
		}
		for _, m := range t.Moves[begun:] {
			b.finish(m, received[m.Lane], sent[m.Lane])
			next[m.Lane]++
		}
		if len(t.Moves) == begun {
			for i, l := range t.Lanes {
				if next[i] < l.Steps {
					return nil, fmt.Errorf("rank %d, channel %d, %v worker waits for ever at step %d: deadlock", l.Rank, l.Channel, l.Role, next[i])
				}
			}
		}
		t.Times++
	}
	return t, nil
}

func (b *builder) ready(l Lane, s *schedule.Step, received, sent map[int]int) bool {
	for port := range s.Recv.All() {
		f := &b.fifos[l.In[port]]
		if i := received[port]; i >= len(f.items) || len(f.items[i].senders) < len(f.From) {
			return false
		}
	}
	for port := range s.Send.All() {
		f := &b.fifos[l.Out[port]]
		if before := sent[port] - f.Slots; f.Slots < 1 || before >= 0 && f.items[before].takes < len(f.To) {
			return false
		}
	}
	return true
}

// move describes a step that is ready.
func (b *builder) move(lane int, l Lane, s schedule.Step, received map[int]int) Move {
	m := Move{Step: s, Lane: lane, Time: b.timeline.Times}
	for port := range s.Recv.All() {
		f := &b.fifos[l.In[port]]
		offset, count := s.Range(port)
		m.From = append(m.From, Item{f.Kind, offset, count, f.items[received[port]].senders})
	}
	for port := range s.Send.All() {
		var to []int
		for _, w := range b.fifos[l.Out[port]].To {
			to = append(to, b.lanes[w])
		}
		m.To = append(m.To, to)
	}
	return m
}

// finish moves the items of a step.
func (b *builder) finish(m Move, received, sent map[int]int) {
	l := b.timeline.Lanes[m.Lane]
	for port := range m.Recv.All() {
		b.fifos[l.In[port]].items[received[port]].takes++
		received[port]++
	}
	for port := range m.Send.All() {
		f := &b.fifos[l.Out[port]]
		if sent[port] == len(f.items) {
			f.items = append(f.items, transit{})
		}
		item := &f.items[sent[port]]
		item.senders = append(item.senders, Sender{m.Lane, m.Time})
		sent[port]++
	}
}

// Verb names what a step does, in NCCL's words: send, recvReduceSend, …
func (m Move) Verb() string {
	recv, send := m.Recv.Len() > 0, m.Send.Len() > 0
	sources := 0
	for _, item := range m.From {
		sources = max(sources, len(item.Senders))
	}
	if m.Stride == 0 {
		sources = max(sources, len(m.From))
	}
	reduce := recv && (m.Input || sources > 1)
	switch {
	case !recv && !send && m.Output:
		return "copy"
	case !recv && !send:
		return "nothing"
	case recv && !send && !m.Output:
		return "wait"
	case !recv && m.total() == 0:
		return "signal"
	}
	var verb string
	for _, part := range []struct {
		name string
		has  bool
	}{{"recv", recv}, {"reduce", reduce}, {"copy", m.Output && (send || reduce)}, {"send", send}} {
		if !part.has {
			continue
		}
		if verb != "" {
			part.name = string(part.name[0]-'a'+'A') + part.name[1:]
		}
		verb += part.name
	}
	return verb
}

func (m Move) total() (count int64) {
	for _, r := range m.ranges() {
		count += r[1] - r[0]
	}
	return count
}

// ranges lists the elements that the step is about: first, and one after the
// last.
func (m Move) ranges() (list [][2]int64) {
	if m.Stride == 0 {
		return [][2]int64{{m.Offset, m.Offset + m.Count}}
	}
	for _, ports := range []schedule.Ports{m.Recv, m.Send} {
		for port := range ports.All() {
			offset, count := m.Range(port)
			list = append(list, [2]int64{offset, offset + count})
		}
	}
	return list
}
