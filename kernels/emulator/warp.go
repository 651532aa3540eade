package emulator

import "fmt"

// warp is 32 threads. Of its lanes, those that are at the same instruction run it
// together.
type warp struct {
	machine *Machine
	block   *block
	first   int // thread
	lanes   [32]lane
	waits   bool // at a barrier of the block
	freed   bool // from there
}

// lane is a thread.
type lane struct {
	*warp
	thread    int
	at        int // the next instruction; -1 at the end
	registers []uint64
	err       error
}

func newWarp(m *Machine, b *block, first int) *warp {
	w := &warp{machine: m, block: b, first: first}
	registers := make([]uint64, 32*b.grid.kernel.registers)
	for i := range w.lanes {
		w.lanes[i] = lane{warp: w, thread: first + i, registers: registers[i*b.grid.kernel.registers:][:b.grid.kernel.registers]}
	}
	b.warps = append(b.warps, w)
	return w
}

// where returns the instruction that the warp is at.
func (w *warp) where() string {
	at, _ := w.next()
	if at < 0 {
		return "its end"
	}
	return w.block.grid.kernel.code[at].text
}

// next returns the first instruction that a lane is at or, now and then, the last,
// so that lanes which wait for others of the warp do not keep these from going on.
func (w *warp) next() (at int, all bool) {
	at, all = -1, true
	last := w.machine.random.IntN(4) == 0
	for i := range w.lanes {
		switch here := w.lanes[i].at; {
		case here < 0 || here == at:
		case at < 0:
			at = here
		default:
			all = false
			if here < at != last {
				at = here
			}
		}
	}
	return at, all
}

// run goes through so many instructions, unless the warp has to wait before.
func (w *warp) run(instructions int) (done bool, err error) {
	code := w.block.grid.kernel.code
	for range instructions {
		if w.waits && !w.freed {
			return false, nil
		}
		at, all := w.next()
		if at < 0 {
			w.block.grid.running--
			w.block.running--
			w.block.release()
			return true, nil
		}
		i := &code[at]
		switch i.kind {
		case barrier:
			if !all {
				continue
			}
			if !w.waits && !w.arrive(i) {
				w.waits = true
				w.block.release()
				continue
			}
			w.waits, w.freed = false, false
			w.block.release()
		case meeting, vote:
			if !all {
				continue
			}
			if i.kind == vote {
				w.vote(at, i)
			}
		case turn:
			if before := w.block.grid.before; before != nil && before.running > 0 {
				return false, nil
			}
		}
		for l := range w.lanes {
			if w.lanes[l].at == at {
				w.lanes[l].step(i)
				if err := w.lanes[l].err; err != nil {
					return false, fmt.Errorf("%s: %w", i.text, err)
				}
			}
		}
	}
	return false, nil
}

// arrive notes that a warp has come to a barrier, and tells whether it goes on.
func (w *warp) arrive(i *instruction) bool {
	var one *lane // all that run are here
	for l := range w.lanes {
		if w.lanes[l].at >= 0 {
			one = &w.lanes[l]
		}
	}
	g := &w.block.barriers[i.value(one)%16]
	if g.here++; i.count != nil {
		g.want = int(i.count(one)) / 32
	}
	if !i.arrives {
		g.waiting = append(g.waiting, w)
	}
	return i.arrives
}

// release frees the warps of a block from barriers to which all have come.
func (b *block) release() {
	for i := range b.barriers {
		g := &b.barriers[i]
		if g.here == 0 || g.here < g.want || g.want == 0 && g.here < b.running {
			continue
		}
		for _, w := range g.waiting {
			w.freed = true
		}
		*g = gathering{}
	}
}

// vote puts into all lanes whether a predicate holds in all of them.
func (w *warp) vote(at int, i *instruction) {
	holds := uint64(1)
	for l := range w.lanes {
		if w.lanes[l].at == at {
			holds &= i.value(&w.lanes[l])
		}
	}
	for l := range w.lanes {
		if w.lanes[l].at == at {
			w.lanes[l].registers[i.into] = holds
		}
	}
}

// step runs an instruction of one lane.
func (l *lane) step(i *instruction) {
	l.at++
	if i.guard >= 0 && (l.registers[i.guard] != 0) == i.negated {
		return
	}
	switch i.kind {
	case branch:
		l.at = i.target
	case end:
		l.at = -1
	case plain:
		i.run(l)
	}
}
