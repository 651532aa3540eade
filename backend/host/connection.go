package host

import (
	"sync/atomic"

	"tutti/model/schedule"
)

// connection is a FIFO. Its counts go on from one collective to the next.
type connection struct {
	schedule.Connection
	slots []slot
	put   atomic.Int64 // items that all writers have put in
	taken atomic.Int64 // items that all readers have taken out
}

type slot struct {
	views       []view // by writer
	puts, takes atomic.Int32
}

// view is where the item of one writer lies.
type view struct {
	memory []byte
	// pooled says that the memory is the slot's own.
	pooled bool
	// stays says that the memory stays as it is to the end of the run.
	stays bool
	// divided says that an average is done.
	divided bool
}

// init makes the connection, or empties it.
func (c *connection) init(described schedule.Connection) {
	c.Connection, c.slots = described, make([]slot, max(0, described.Slots))
	for i := range c.slots {
		c.slots[i].views = make([]view, len(c.From))
	}
	c.put.Store(0)
	c.taken.Store(0)
}

// has tells whether the i-th item is there, and takes whether there is a slot
// for it.
func (c *connection) has(i int) bool   { return int64(i) < c.put.Load() }
func (c *connection) takes(i int) bool { return int64(i) < c.taken.Load()+int64(c.Slots) }

// slot returns that of the i-th item.
func (c *connection) slot(i int) *slot { return &c.slots[i%len(c.slots)] }

// commit counts a writer's part of the i-th item; it returns true if the item is
// whole now.
func (c *connection) commit(i int) bool {
	s := c.slot(i)
	if s.puts.Add(1) < int32(len(c.From)) {
		return false
	}
	s.puts.Store(0)
	c.put.Add(1)
	return true
}

// take counts a reader of the i-th item; it returns true if the slot is free
// now.
func (c *connection) take(i int, p *pool) bool {
	s := c.slot(i)
	if s.takes.Add(1) < int32(len(c.To)) {
		return false
	}
	for k := range s.views {
		if v := &s.views[k]; v.pooled {
			p.put(v.memory)
		}
		s.views[k] = view{}
	}
	s.takes.Store(0)
	c.taken.Add(1)
	return true
}
