package schedule

// Repeating is implemented by schedules that know where their steps repeat, so
// that an executor need not ask for each of them.
type Repeating interface {
	Schedule
	// Repeats returns until which step, not included, the steps of a worker from
	// the i-th on come round with a period, of 8 at the most: each is like the
	// one a period before, with the same ports and as many elements through each
	// of them, but from another offset.
	Repeats(w, i int) (period, until int)
}

// Repeats implements [Repeating]. What a rank does changes at few hops of a
// loop, and in AllReduce also where the blocks come to be cut short.
func (r *Ring) Repeats(w, i int) (period, until int) {
	rank, ch := r.who(w)
	p, slices := &r.parts[ch], int(r.slices)
	loop, hop := i/(r.hops()*slices), i/slices%r.hops()
	if i%slices != 0 {
		return 1, i + 1
	}
	if r.hops() == 1 {
		if loop < p.loops-1 {
			return slices, (p.loops - 1) * slices
		}
		return slices, i + slices
	}
	n, next := r.task.Ranks, r.hops()
	for _, change := range [...]int{r.hops() - 1, n, n - 1, 1} {
		if change > hop {
			next = min(next, change)
		}
	}
	if _, block := r.primitive(ch, rank, hop); len(r.parts) > 0 && p.perLoop > 1 {
		// Blocks count down, and go on from the last; those from whole on are short.
		chunk := p.chunkOf(loop)
		rest := p.count - int64(loop)*p.perLoop*p.chunk
		whole := int(min(p.perLoop, rest/chunk))
		switch {
		case block < whole && whole < n:
			next = min(next, hop+block+1)
		case block > whole:
			next = min(next, hop+block-whole)
		case block == whole:
			next = min(next, hop+1)
		}
	}
	return slices, (loop*r.hops() + next) * slices
}

// Repeats implements [Repeating]: all chunks are alike but the last.
func (r *Tree) Repeats(w, i int) (period, until int) {
	_, ch, _ := r.at(w)
	return 1, allButLast(i, int(divUp(r.parts[ch].count, r.chunk[ch])))
}

// Repeats implements [Repeating]: all loops are alike but the last.
func (r *NVLS) Repeats(w, i int) (period, until int) {
	_, ch, _ := r.at(w)
	return 1, allButLast(i, r.parts[ch].loops)
}

// allButLast returns the end of the run that the i-th of n steps is in.
func allButLast(i, n int) int {
	if i < n-1 {
		return n - 1
	}
	return n
}
