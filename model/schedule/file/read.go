package file

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"tutti/model"
	"tutti/model/schedule"
)

// Schedule is one that was read: all of it, in memory.
type Schedule struct {
	task        schedule.Task
	workers     []schedule.Worker
	steps       [][]schedule.Step // by worker
	connections []schedule.Connection
}

// Task implements [schedule.Schedule], as do the others.
func (s *Schedule) Task() schedule.Task { return s.task }

// Workers implements [schedule.Schedule].
func (s *Schedule) Workers() int { return len(s.workers) }

// Worker implements [schedule.Schedule].
func (s *Schedule) Worker(w int) schedule.Worker { return s.workers[w] }

// Step implements [schedule.Schedule].
func (s *Schedule) Step(w, i int) schedule.Step { return s.steps[w][i] }

// Connections implements [schedule.Schedule].
func (s *Schedule) Connections() int { return len(s.connections) }

// Connection implements [schedule.Schedule].
func (s *Schedule) Connection(c int) schedule.Connection { return s.connections[c] }

// Read reads a file that [WriteJSON] wrote, or another program in the same form.
// What it says may be wrong: [schedule.Verify] tells.
func Read(path string) (*Schedule, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s, err := ReadJSON(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// ReadJSON reads what [WriteJSON] writes. It fails for anything that is not of
// the form, for unknown words and for numbers that cannot be; the error names
// the worker or connection.
func ReadJSON(r io.Reader) (*Schedule, error) {
	var j struct {
		Schema      string           `json:"schema"`
		Task        jsonTask         `json:"task"`
		Connections []jsonConnection `json:"connections"`
		Workers     []jsonWorker     `json:"workers"`
	}
	in := json.NewDecoder(r)
	in.DisallowUnknownFields()
	if err := in.Decode(&j); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = errors.New("the end comes too early")
		}
		return nil, fmt.Errorf("not a schedule: %w", err)
	}
	if j.Schema != Schema {
		return nil, fmt.Errorf("schema is %q: want %q", j.Schema, Schema)
	}
	s := &Schedule{}
	var err error
	if s.task, err = decodeTask(j.Task); err != nil {
		return nil, fmt.Errorf("task: %w", err)
	}
	for i, c := range j.Connections {
		decoded, err := decodeConnection(c, len(j.Workers))
		if err != nil {
			return nil, fmt.Errorf("connection %d: %w", i, err)
		}
		s.connections = append(s.connections, decoded)
	}
	total := 0
	for i, w := range j.Workers {
		decoded, steps, err := decodeWorker(w, s.task)
		if err != nil {
			return nil, fmt.Errorf("worker %d: %w", i, err)
		}
		if total += len(steps); total > MaxSteps {
			return nil, fmt.Errorf("more than %d steps", MaxSteps)
		}
		s.workers, s.steps = append(s.workers, decoded), append(s.steps, steps)
	}
	return s, nil
}

// Bounds on numbers, so that sums and products of them fit.
const (
	maxRanks    = 1 << 17
	maxElements = 1 << 40
	maxPorts    = 1 << 20
)

// within fails for a number that is out of its range.
func within(what string, n, least, most int64) error {
	if n < least || n > most {
		return fmt.Errorf("%s is %d: want %d to %d", what, n, least, most)
	}
	return nil
}

func decodeTask(j jsonTask) (t schedule.Task, err error) {
	var errs [5]error
	t.Collective, errs[0] = model.ParseCollective(j.Collective)
	t.Algorithm, errs[1] = model.ParseAlgorithm(j.Algorithm)
	t.Protocol, errs[2] = model.ParseProtocol(j.Protocol)
	t.Datatype, errs[3] = model.ParseDatatype(j.Datatype)
	t.Redop, errs[4] = model.ParseRedop(j.Redop)
	t.Count, t.Root, t.InPlace, t.Channels, t.Ranks, t.Nodes = j.Count, j.Root, j.InPlace, j.Channels, j.Ranks, j.Nodes
	if err := errors.Join(errs[:]...); err != nil {
		return t, err
	}
	if err := within("ranks", int64(t.Ranks), 1, maxRanks); err != nil {
		return t, err
	}
	err = errors.Join(
		within("nodes", int64(t.Nodes), 1, int64(t.Ranks)),
		within("root", int64(t.Root), 0, int64(t.Ranks-1)), within("channels", int64(t.Channels), 0, maxRanks),
		within("count", t.Count, 0, maxElements/int64(t.Ranks)/int64(t.Ranks)),
	)
	if err == nil && t.InPlace && !t.CanOverlap() {
		err = fmt.Errorf("%v cannot be in place", t.Collective)
	}
	return t, err
}

func decodeConnection(j jsonConnection, workers int) (c schedule.Connection, err error) {
	c = schedule.Connection{From: j.From, To: j.To, Slots: j.Slots, Room: j.Room, OutNET: -1, InNET: -1}
	kind, storage := 0, 0
	if j.Kind != "" {
		if kind = slices.Index(kinds, j.Kind); kind < 0 {
			return c, fmt.Errorf("unknown kind %q: want one of %v", j.Kind, kinds)
		}
	}
	if j.Storage != "" {
		if storage = slices.Index(storages, j.Storage); storage < 0 {
			return c, fmt.Errorf("unknown storage %q: want one of %v", j.Storage, storages)
		}
	}
	c.Kind, c.Storage = schedule.Kind(kind), schedule.Storage(storage)
	for _, ends := range [][]int{c.From, c.To} {
		for i, w := range ends {
			if err := within("worker", int64(w), 0, int64(workers-1)); err != nil {
				return c, err
			}
			if slices.Contains(ends[:i], w) {
				return c, fmt.Errorf("worker %d is named twice", w)
			}
		}
	}
	if one := len(c.From) == 1 && len(c.To) == 1; c.Kind == schedule.PointToPoint && !one && len(c.From)+len(c.To) > 0 {
		return c, fmt.Errorf("from workers %v to %v: want one each, or another kind", c.From, c.To)
	}
	if j.OutNET != nil {
		c.OutNET = *j.OutNET
	}
	if j.InNET != nil {
		c.InNET = *j.InNET
	}
	return c, errors.Join(
		within("slots", int64(c.Slots), 0, maxPorts), within("room", c.Room, 0, maxElements),
		within("out_net", int64(c.OutNET), -1, maxRanks), within("in_net", int64(c.InNET), -1, maxRanks),
	)
}

func decodeWorker(j jsonWorker, t schedule.Task) (w schedule.Worker, steps []schedule.Step, err error) {
	role := slices.Index(roles(), j.Role)
	if role < 0 {
		return w, nil, fmt.Errorf("unknown role %q: want one of %v", j.Role, roles())
	}
	w = schedule.Worker{Rank: j.Rank, Channel: j.Channel, Role: schedule.Role(role), Share: j.Share, Steps: len(j.Steps), In: j.In, Out: j.Out}
	err = errors.Join(within("rank", int64(w.Rank), 0, int64(t.Ranks-1)), within("channel", int64(w.Channel), 0, maxRanks))
	for i, step := range j.Steps {
		if err != nil {
			break
		}
		s := schedule.Step{
			Input: step.Input, Output: step.Output, Offset: step.Offset, Count: step.Count,
			Stride: step.Stride, End: step.End, Turn: step.Turn, Blocks: step.Blocks,
		}
		s.Recv, s.Send = decodePorts(step.Recv), decodePorts(step.Send)
		if err = checkStep(s); err != nil {
			err = fmt.Errorf("step %d: %w", i, err)
		}
		steps = append(steps, s)
	}
	return w, steps, err
}

func decodePorts(j *[2]int) schedule.Ports {
	if j == nil {
		return schedule.Ports{}
	}
	return schedule.Ports{From: j[0], To: j[1]}
}

func checkStep(s schedule.Step) error {
	var errs []error
	for _, ports := range []schedule.Ports{s.Recv, s.Send} {
		errs = append(errs, within("first port", int64(ports.From), 0, maxPorts), within("last port", int64(ports.To), int64(ports.From), maxPorts))
	}
	errs = append(errs,
		within("offset", s.Offset, 0, maxElements), within("count", s.Count, 0, maxElements),
		within("stride", s.Stride, 0, maxElements), within("end", s.End, 0, maxElements),
		within("turn", int64(s.Turn), 0, maxRanks), within("blocks", int64(s.Blocks), 0, maxRanks),
	)
	return errors.Join(errs...)
}
