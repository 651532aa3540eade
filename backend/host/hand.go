package host

import (
	"fmt"
	"slices"

	"tutti/backend"
	"tutti/model/schedule"
)

// hand is a goroutine that carries out steps.
type hand struct {
	*execution
	ready   []int32 // workers that the step has made ready
	sources [][]byte
	moved   int64 // bytes read and written in this run
}

// work carries out steps until no worker can go on.
func (h *hand) work(number int) {
	h.moved = 0
	for {
		id, ok := h.crew.next(number, h.ready)
		h.ready = h.ready[:0]
		if !ok {
			return
		}
		h.advance(&h.workers[id])
	}
}

// advance takes a worker on until it has made others ready, who go first, or has
// to wait.
func (h *hand) advance(w *worker) {
	for w.next < w.Steps && !h.stop.Load() {
		s := h.schedule.Step(w.number, w.next)
		if s.Recv.From < 0 || s.Recv.To > len(w.In) || s.Send.From < 0 || s.Send.To > len(w.Out) {
			h.giveUp(fmt.Errorf("%v: uses ports %v in and %v out, and has %d and %d: verify the schedule", w, s.Recv, s.Send, len(w.In), len(w.Out)))
			return
		}
		if c, missing := h.missing(w, &s); missing {
			if w.state.CompareAndSwap(busy, int32(c)) {
				return // another hand may have the worker already
			}
			w.state.Store(busy)
			continue
		}
		if err := h.step(w, &s); err != nil {
			h.giveUp(fmt.Errorf("%v: %w: verify the schedule", w, err))
			return
		}
		w.next++
		if len(h.ready) > 0 {
			if w.next < w.Steps {
				h.ready = slices.Insert(h.ready, 0, int32(w.number))
			}
			return
		}
	}
}

// missing returns the connection, if any, that a step has to wait for: for an
// item or a slot.
func (h *hand) missing(w *worker, s *schedule.Step) (connection int, missing bool) {
	for port := range s.Recv.All() {
		if c := w.In[port]; !h.connections[c].has(w.received[port]) {
			return c, true
		}
	}
	for port := range s.Send.All() {
		if c := w.Out[port]; !h.connections[c].takes(w.sent[port]) {
			return c, true
		}
	}
	return 0, false
}

// step carries out a step that has all it needs.
func (h *hand) step(w *worker, s *schedule.Step) error {
	if err := h.data(w, s); err != nil {
		return err
	}
	for port := range s.Recv.All() {
		if c := w.In[port]; h.connections[c].take(w.received[port], &h.pool) {
			h.call(h.connections[c].From, c)
		}
		w.received[port]++
	}
	for port := range s.Send.All() {
		if c := w.Out[port]; h.connections[c].commit(w.sent[port]) {
			h.call(h.connections[c].To, c)
		}
		w.sent[port]++
	}
	return nil
}

// call makes workers ready that wait for a connection.
func (h *hand) call(workers []int, connection int) {
	for _, id := range workers {
		state := &h.workers[id].state
		for {
			now := state.Load()
			if now == int32(connection) && state.CompareAndSwap(now, busy) {
				h.ready = append(h.ready, int32(id))
				break
			}
			if now != int32(connection) && (now != busy || state.CompareAndSwap(busy, called)) {
				break
			}
		}
	}
}

// data moves what a step moves: port by port where each has a block of its own.
func (h *hand) data(w *worker, s *schedule.Step) error {
	if s.Stride == 0 {
		return h.move(w, s, s.Offset, s.Count, s.Recv, s.Send)
	}
	if s.Recv.Len() > 0 && s.Send.Len() > 0 {
		return fmt.Errorf("receives and sends blocks")
	}
	for port := range s.Recv.All() {
		offset, count := s.Range(port)
		if err := h.move(w, s, offset, count, schedule.Port(port), schedule.Ports{}); err != nil {
			return err
		}
	}
	for port := range s.Send.All() {
		offset, count := s.Range(port)
		if err := h.move(w, s, offset, count, schedule.Ports{}, schedule.Port(port)); err != nil {
			return err
		}
	}
	return nil
}

// move takes a range of elements from the input and the items of inbound ports,
// and puts it into the output and outbound ports.
func (h *hand) move(w *worker, s *schedule.Step, offset, count int64, recv, send schedule.Ports) error {
	value, err := h.gather(w, s, offset, count, recv)
	if err != nil {
		return err
	}
	arrived := value.memory != nil && recv.Len() > 0 && h.connections[w.In[recv.From]].Storage == schedule.InOutput
	if s.Output && !arrived && (s.Stride == 0 || recv.Len() > 0) {
		if err := h.output(w.Rank, offset, count, &value); err != nil {
			return err
		}
	}
	// What was put into an output need not be copied into slots.
	for port := range send.All() {
		if c := &h.connections[w.Out[port]]; c.Storage == schedule.InOutput {
			for _, to := range c.To {
				if err := h.output(h.workers[to].Rank, offset, count, &value); err != nil {
					return err
				}
			}
		}
	}
	for port := range send.All() {
		c := &h.connections[w.Out[port]]
		put := &c.slot(w.sent[port]).views[w.writer[port]]
		switch {
		case c.Storage == schedule.InInput:
			put.memory, err = h.memory(w.Rank, backend.Input, offset, count)
			put.stays, put.divided = h.inputStays, false
			if err != nil {
				return err
			}
		case value.stays || c.Storage == schedule.InOutput:
			*put = value
		default:
			*put = view{memory: h.pool.get(count * h.size), pooled: true, divided: value.divided}
			h.write(put.memory, false)
		}
	}
	return nil
}

// gather lists the sources of a step. The value tells of the only one; of
// several, whether an average is done.
func (h *hand) gather(w *worker, s *schedule.Step, offset, count int64, recv schedule.Ports) (value view, err error) {
	h.sources = h.sources[:0]
	if s.Input {
		if value.memory, err = h.memory(w.Rank, backend.Input, offset, count); err != nil {
			return value, err
		}
		value.stays = h.inputStays
		h.sources = append(h.sources, value.memory)
	}
	for port := range recv.All() {
		c := &h.connections[w.In[port]]
		for _, v := range c.slot(w.received[port]).views {
			if int64(len(v.memory)) != count*h.size {
				return value, fmt.Errorf("wants %d elements and was sent %d", count, int64(len(v.memory))/h.size)
			}
			if c.Storage == schedule.InOutput {
				if v.memory, err = h.memory(w.Rank, backend.Output, offset, count); err != nil {
					return value, err
				}
			}
			value = view{memory: v.memory, stays: v.stays, divided: v.divided}
			h.sources = append(h.sources, v.memory)
		}
	}
	if len(h.sources) != 1 {
		value.stays = count == 0
	}
	if len(h.sources) == 0 && count > 0 && (s.Output || s.Send.Len() > 0) {
		return value, fmt.Errorf("has neither input nor items")
	}
	return value, nil
}

// output puts the value into a rank's output, from where it can be passed on.
func (h *hand) output(rank int, offset, count int64, value *view) error {
	to, err := h.memory(rank, backend.Output, offset, count)
	if err != nil || count == 0 {
		return err
	}
	h.write(to, h.average && !value.divided)
	*value = view{memory: to, stays: true, divided: true}
	return nil
}

// write folds the sources into memory, which is the source from then on.
func (h *hand) write(to []byte, finish bool) {
	if len(to) > 0 && (finish || len(h.sources) > 1 || &to[0] != &h.sources[0][0]) {
		h.moved += int64(len(to)) * int64(len(h.sources)+1)
		h.fold(to, h.sources, finish)
	}
	h.sources = append(h.sources[:0], to)
}

// memory returns a range of elements in a rank's buffer.
func (h *hand) memory(rank int, side backend.Side, offset, count int64) ([]byte, error) {
	if count == 0 {
		return nil, nil
	}
	at, rest := side.Of(h.task, rank).At(offset)
	if count < 0 || count > rest {
		return nil, fmt.Errorf("elements %d to %d are not in rank %d's buffer", offset, offset+count, rank)
	}
	return h.buffers[rank][side][at*h.size : (at+count)*h.size], nil
}
