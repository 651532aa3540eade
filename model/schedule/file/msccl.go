package file

import (
	"encoding/xml"
	"fmt"
	"io"

	"tutti/model"
	"tutti/model/schedule"
)

// The bounds of MSCCL's interpreter: MSCCL_MAX_NUM_STEPS, MSCCL_MAX_COUNT and
// MSCCL_MAX_NUM_THREAD_BLOCKS_PER_CHANNEL of msccl, src/include/msccl.h.
const (
	mscclSteps = 256
	mscclCount = 72
	mscclBlock = 32
)

type xmlAlgo struct {
	XMLName    xml.Name `xml:"algo"`
	Name       string   `xml:"name,attr"`
	Proto      string   `xml:"proto,attr"`
	Channels   int      `xml:"nchannels,attr"`
	PerLoop    int64    `xml:"nchunksperloop,attr"`
	GPUs       int      `xml:"ngpus,attr"`
	Collective string   `xml:"coll,attr"`
	InPlace    int      `xml:"inplace,attr"`
	OutOfPlace int      `xml:"outofplace,attr"`
	Root       *int     `xml:"root,attr,omitempty"`
	GPU        []xmlGPU `xml:"gpu"`
}

type xmlGPU struct {
	ID      int        `xml:"id,attr"`
	Input   int64      `xml:"i_chunks,attr"`
	Output  int64      `xml:"o_chunks,attr"`
	Scratch int64      `xml:"s_chunks,attr"`
	Blocks  []xmlBlock `xml:"tb"`
}

type xmlBlock struct {
	ID      int       `xml:"id,attr"`
	Send    int       `xml:"send,attr"`
	Recv    int       `xml:"recv,attr"`
	Channel int       `xml:"chan,attr"`
	Steps   []xmlStep `xml:"step"`
}

type xmlStep struct {
	S         int    `xml:"s,attr"`
	Type      string `xml:"type,attr"`
	From      string `xml:"srcbuf,attr"`
	FromChunk int64  `xml:"srcoff,attr"`
	To        string `xml:"dstbuf,attr"`
	ToChunk   int64  `xml:"dstoff,attr"`
	Count     int64  `xml:"cnt,attr"`
	DependsID int    `xml:"depid,attr"`
	Depends   int    `xml:"deps,attr"`
	HasDepend int    `xml:"hasdep,attr"`
}

// WriteMSCCL writes a schedule as MSCCL reads it: for each GPU its thread blocks,
// for each of these the steps on chunks of the buffers. The chunk is the largest
// number of elements that divides all that a step moves; MSCCL scales it with
// the size of a call. It fails for what MSCCL cannot express: thread blocks that
// send to several or receive from several, switches that reduce or multicast,
// buffers that others read or write in place of slots, and more steps than its
// interpreter takes. Source: msccl-tools, msccl/language/ir.py.
func WriteMSCCL(w io.Writer, s schedule.Schedule) error {
	if err := checkSize(s); err != nil {
		return err
	}
	m := &msccl{Schedule: s, task: s.Task()}
	algo, err := m.algo()
	if err != nil {
		return fmt.Errorf("MSCCL cannot express the schedule: %w", err)
	}
	out := xml.NewEncoder(w)
	out.Indent("", "  ")
	if err := out.Encode(algo); err != nil {
		return err
	}
	_, err = io.WriteString(w, "\n")
	return err
}

type msccl struct {
	schedule.Schedule
	task  schedule.Task
	chunk int64 // elements
}

// collectives are MSCCL's names.
var collectives = map[model.Collective]string{
	model.AllReduce: "allreduce", model.AllGather: "allgather", model.ReduceScatter: "reduce_scatter",
	model.Broadcast: "broadcast", model.Reduce: "reduce", model.AllToAll: "alltoall",
}

var protocols = map[model.Protocol]string{model.LL: "LL", model.LL128: "LL128", model.Simple: "Simple"}

func (m *msccl) algo() (*xmlAlgo, error) {
	t := m.task
	name, known := collectives[t.Collective]
	if !known {
		return nil, fmt.Errorf("it has no %v", t.Collective)
	}
	m.findChunk()
	a := &xmlAlgo{
		Name: fmt.Sprintf("tutti_%v_%v_%d", t.Collective, t.Algorithm, t.Ranks), Proto: protocols[t.Protocol], GPUs: t.Ranks, Collective: name, OutOfPlace: 1,
	}
	if t.InPlace {
		a.InPlace, a.OutOfPlace = 1, 0
	}
	if t.Collective.Rooted() {
		a.Root = &t.Root
	}
	for rank := range t.Ranks {
		g := xmlGPU{ID: rank, Input: t.Input(rank).Len() / m.chunk, Output: t.Output(rank).Len() / m.chunk}
		a.PerLoop = max(a.PerLoop, g.Input, g.Output)
		a.GPU = append(a.GPU, g)
	}
	links := map[[3]int]bool{} // rank, peer, channel
	for number := range m.Workers() {
		w := m.Worker(number)
		if w.Steps == 0 {
			continue
		}
		a.Channels = max(a.Channels, w.Channel+1)
		g := &a.GPU[w.Rank]
		b, err := m.block(number, w)
		if err != nil {
			return nil, fmt.Errorf("rank %d, channel %d, %v worker: %w", w.Rank, w.Channel, w.Role, err)
		}
		if link := [...]int{w.Rank, b.Send, w.Channel}; b.Send >= 0 && links[link] {
			return nil, fmt.Errorf("rank %d sends to rank %d on channel %d from two thread blocks", w.Rank, b.Send, w.Channel)
		} else if b.Send >= 0 {
			links[link] = true
		}
		if b.ID = len(g.Blocks); b.ID == mscclBlock*a.Channels {
			return nil, fmt.Errorf("rank %d has more thread blocks than MSCCL takes: %d for each channel", w.Rank, mscclBlock)
		}
		g.Blocks = append(g.Blocks, b)
	}
	return a, nil
}

// findChunk sets the largest chunk that every step is a multiple of.
func (m *msccl) findChunk() {
	divide := func(a, b int64) int64 {
		for b != 0 {
			a, b = b, a%b
		}
		return a
	}
	for w := range m.Workers() {
		for i := range m.Worker(w).Steps {
			step := m.Step(w, i)
			m.chunk = divide(m.chunk, divide(step.Offset, step.Count))
		}
	}
	m.chunk = max(1, divide(m.chunk, m.task.Count))
}

// block returns a worker's thread block.
func (m *msccl) block(number int, w schedule.Worker) (b xmlBlock, err error) {
	b = xmlBlock{Send: -1, Recv: -1, Channel: w.Channel}
	if b.Send, err = m.peer(w.Out, w.Channel, func(c schedule.Connection) []int { return c.To }); err != nil {
		return b, fmt.Errorf("sends %w", err)
	}
	if b.Recv, err = m.peer(w.In, w.Channel, func(c schedule.Connection) []int { return c.From }); err != nil {
		return b, fmt.Errorf("receives %w", err)
	}
	for i := range w.Steps {
		steps, err := m.steps(w.Rank, m.Step(number, i))
		if err != nil {
			return b, fmt.Errorf("step %d: %w", i, err)
		}
		for _, x := range steps {
			x.S = len(b.Steps)
			b.Steps = append(b.Steps, x)
		}
	}
	if len(b.Steps) > mscclSteps {
		return b, fmt.Errorf("%d steps: MSCCL takes at most %d in a thread block", len(b.Steps), mscclSteps)
	}
	return b, nil
}

// peer returns the rank at the other end of a worker's connection, or -1.
func (m *msccl) peer(ports []int, channel int, ends func(schedule.Connection) []int) (int, error) {
	if len(ports) == 0 {
		return -1, nil
	}
	if len(ports) > 1 {
		return -1, fmt.Errorf("over %d connections: an MSCCL thread block has one peer each way", len(ports))
	}
	c := m.Connection(ports[0])
	switch {
	case c.Kind != schedule.PointToPoint:
		return -1, fmt.Errorf("over a %s: MSCCL connects two thread blocks", kinds[c.Kind])
	case c.Storage != schedule.Staged:
		return -1, fmt.Errorf("without slots (%s): MSCCL has FIFOs only", storages[c.Storage])
	}
	other := m.Worker(ends(c)[0])
	if other.Channel != channel {
		return -1, fmt.Errorf("to channel %d from channel %d: an MSCCL connection has one", other.Channel, channel)
	}
	return other.Rank, nil
}

// steps returns a step in MSCCL's words. Sources are in the input, results go
// into the output. A step without elements needs no words: at the other end
// there is none either.
func (m *msccl) steps(rank int, s schedule.Step) (steps []xmlStep, err error) {
	if s.Stride != 0 {
		return nil, fmt.Errorf("several blocks at once: an MSCCL step moves one")
	}
	if s.Count == 0 {
		return nil, nil
	}
	recv, send := s.Recv.Len() > 0, s.Send.Len() > 0
	types := map[[4]bool][]string{
		{false, true, false, true}: {"s"}, {false, true, true, false}: {"cpy"}, {false, true, true, true}: {"cpy", "s"},
		{true, false, true, false}: {"r"}, {true, true, true, false}: {"rrc"},
		{true, false, true, true}: {"rcs"}, {true, true, false, true}: {"rrs"}, {true, true, true, true}: {"rrcs"},
	}[[...]bool{recv, s.Input, s.Output, send}]
	if types == nil {
		return nil, fmt.Errorf("MSCCL has no step that receives %v, takes the input %v, keeps the result %v and sends %v", recv, s.Input, s.Output, send)
	}
	count := s.Count / m.chunk
	if count > mscclCount {
		return nil, fmt.Errorf("%d chunks of %d elements: MSCCL moves at most %d at once (use a count that divides better)", count, m.chunk, mscclCount)
	}
	// MSCCL wants a place also for what a step does not read or write.
	from, to := "i", "o"
	in, _ := m.task.Input(rank).At(s.Offset)
	out, _ := m.task.Output(rank).At(s.Offset)
	if !s.Input {
		from, in = to, out
	}
	if !s.Output {
		to, out = from, in
	}
	for _, name := range types {
		steps = append(steps, xmlStep{Type: name, From: from, FromChunk: in / m.chunk, To: to, ToChunk: out / m.chunk, Count: count, DependsID: -1, Depends: -1})
	}
	return steps, nil
}
