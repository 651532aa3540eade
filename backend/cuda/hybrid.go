package cuda

import (
	"errors"
	"fmt"

	"tutti/backend/cuda/driver"
)

// The kernels of the hybrid.
const (
	combineKernel = "hybrid_combine"
	barrierKernel = "hybrid_barrier"
)

// commonKernels are those of kernels/common.cu.
var commonKernels = []string{barrierKernel, storesKernel, loadsKernel, bulkKernel, flagsKernel}

// maxPieces is how many pieces the hybrid cuts a chunk into at the most.
const maxPieces = 64

// lanes are what a rank has beside its stream for the hybrid: one for reductions.
type lanes struct {
	reduce             *driver.Stream
	scattered, reduced [maxPieces]*driver.Event
	copies             []*driver.Stream // of the probe, by peer
	begun              *driver.Event
	done               []*driver.Event
}

// openLanes makes the streams and events of every rank, once.
func (c *Comm) openLanes() error {
	for _, r := range c.ranks {
		if r.lanes != nil {
			continue
		}
		l := &lanes{copies: make([]*driver.Stream, len(c.ranks)), done: make([]*driver.Event, len(c.ranks))}
		r.lanes = l
		var err error
		event := func(to **driver.Event) {
			if err == nil {
				*to, err = r.gpu.NewEvent(false)
			}
		}
		stream := func(to **driver.Stream) {
			if err == nil {
				*to, err = r.gpu.NewStream()
			}
		}
		stream(&l.reduce)
		event(&l.begun)
		for k := range l.reduced {
			event(&l.scattered[k])
			event(&l.reduced[k])
		}
		for k := range l.copies {
			stream(&l.copies[k])
			event(&l.done[k])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *lanes) close() error {
	if l == nil {
		return nil
	}
	var errs []error
	events := append(append(l.reduced[:], l.scattered[:]...), l.begun)
	for _, e := range append(events, l.done...) {
		if e != nil {
			errs = append(errs, e.Destroy())
		}
	}
	for _, s := range append(l.copies, l.reduce) {
		if s != nil {
			errs = append(errs, s.Destroy())
		}
	}
	return errors.Join(errs...)
}

// hybrid is the two-shot with copy engines for what needs no arithmetic: they carry
// 256 bytes a packet over NVLink, stores of kernels 128. Each rank's chunk goes in
// pieces: peers copy theirs into its scratch, and a kernel reduces them into its output
// while the next piece is copied. Copies take the result to all (Hybrid), or the kernel
// stores it to all (HybridPush): stores carry less than copies, but begin and end sooner.
//
// Each rank has one copy under way at a time, and all ranks copy to the one that
// lies equally far on: on 4x H200 two copies into the same GPU took more than
// twice as long as one.
func (c *Comm) hybrid(call Call, launch Launch, modules []*module, streams []*driver.Stream, without int) error {
	if err := c.openLanes(); err != nil {
		return err
	}
	if err := c.fitsHybrid(launch, call.bytes()/packBytes); err != nil {
		return err
	}
	h := c.newHybrid(call, launch)
	h.modules = modules
	for rank, s := range streams {
		if rank != without {
			h.queueRank(rank, s)
		}
	}
	if h.err != nil {
		return h.err
	}
	if tail := int64(call.bytes() % packBytes); tail > 0 {
		return c.allReduce(call.tail(tail), tailLaunch, streams, without)
	}
	return nil
}

// newHybrid returns what queues a call once it has its modules.
func (c *Comm) newHybrid(call Call, launch Launch) *hybrid {
	for _, r := range c.ranks { // blocks wait for their peers', so all must run at once
		launch.Blocks = min(launch.Blocks, max(1, r.gpu.Multiprocessors/c.sharing(r.gpu)))
	}
	return &hybrid{Comm: c, call: call, launch: launch, packs: call.bytes() / packBytes}
}

// fitsHybrid says why a launch does not suit so many packs.
func (c *Comm) fitsHybrid(launch Launch, packs uint64) error {
	n, bytes := uint64(len(c.ranks)), packs*packBytes
	if packs < n {
		return fmt.Errorf("%v: %d bytes are too few for %d ranks: want at least %d", launch.Algorithm, bytes, n, n*packBytes)
	}
	if largest := (packs + n - 1) / n; largest > uint64(c.layout.scratchPacks) {
		return fmt.Errorf("%v: %d bytes do not fit the scratch memory of %d bytes", launch.Algorithm, bytes, uint64(c.layout.scratchPacks)*n*packBytes)
	}
	if launch.Rounds < 1 || launch.Rounds > maxPieces {
		return fmt.Errorf("%v: %d pieces: want 1 to %d", launch.Algorithm, launch.Rounds, maxPieces)
	}
	if launch.Blocks < 1 {
		return fmt.Errorf("%v: %d blocks: want at least 1", launch.Algorithm, launch.Blocks)
	}
	return nil
}

// hybrid queues one call.
type hybrid struct {
	*Comm
	queue
	call    Call
	launch  Launch
	modules []*module
	packs   uint64
}

// piece returns the bytes of the k-th piece of a rank's chunk.
func (h *hybrid) piece(owner, k int) (offset driver.Pointer, bytes int64) {
	n, pieces := uint64(len(h.ranks)), uint64(h.launch.Rounds)
	from, to := h.packs*uint64(owner)/n, h.packs*(uint64(owner)+1)/n
	a, b := from+(to-from)*uint64(k)/pieces, from+(to-from)*uint64(k+1)/pieces
	return driver.Pointer(a * packBytes), int64(b-a) * packBytes
}

// slot returns where a sender's k-th piece lies in its owner's scratch.
func (h *hybrid) slot(owner, sender, k int) driver.Pointer {
	begin, _ := h.piece(owner, 0)
	at, _ := h.piece(owner, k)
	return h.ranks[owner].region + driver.Pointer(h.layout.scratch) +
		driver.Pointer(sender)*driver.Pointer(h.layout.scratchPacks)*packBytes + at - begin
}

func (h *hybrid) queueRank(rank int, s *driver.Stream) {
	lanes := h.ranks[rank].lanes
	for k := range h.launch.Rounds {
		h.scatter(rank, k, s)
		h.record(s, lanes.scattered[k])
		h.wait(lanes.reduce, lanes.scattered[k])
		h.combine(rank, k, lanes.reduce)
		h.record(lanes.reduce, lanes.reduced[k])
	}
	for k := range h.launch.Rounds {
		h.wait(s, lanes.reduced[k])
		if h.launch.Algorithm == Hybrid {
			h.gather(rank, k, s)
		}
	}
	if h.launch.Algorithm != HybridPush {
		h.barrier(rank, s)
	}
}

// scatter copies the k-th piece of every peer's chunk to the peer.
func (h *hybrid) scatter(rank, k int, s *driver.Stream) {
	for hop := 1; hop < len(h.ranks); hop++ {
		peer := (rank + hop) % len(h.ranks)
		offset, bytes := h.piece(peer, k)
		h.copy(s, h.slot(peer, rank, k), h.call.Input[rank]+offset, bytes)
	}
}

// gather copies the k-th piece of the own result to every peer.
func (h *hybrid) gather(rank, k int, s *driver.Stream) {
	offset, bytes := h.piece(rank, k)
	for hop := 1; hop < len(h.ranks); hop++ {
		peer := (rank + hop) % len(h.ranks)
		h.copy(s, h.call.Output[peer]+offset, h.call.Output[rank]+offset, bytes)
	}
}

// barrier ends a call once all ranks have copied their results.
func (h *hybrid) barrier(rank int, s *driver.Stream) {
	r := h.ranks[rank]
	a := h.args(h.call, rank)
	h.do(func() error { return s.Launch(r.common.kernels[barrierKernel], 1, 32, a.pointer()) })
}

// combine reduces the k-th piece of the own chunk once all ranks have copied theirs.
func (h *hybrid) combine(rank, k int, s *driver.Stream) {
	a := h.args(h.call, rank)
	offset, bytes := h.piece(rank, k)
	a.bytes, a.units = uint64(bytes), uint32(bytes/packBytes)
	a.stripe = (a.units + uint32(h.launch.Blocks) - 1) / uint32(h.launch.Blocks)
	for r := range h.ranks {
		a.output[r] += offset
		if a.input[r] += offset; r != rank {
			a.input[r] = h.slot(rank, r, k)
		}
	}
	kernel := h.modules[rank].kernels[h.launch.kernels(0)[0]]
	h.do(func() error { return s.Launch(kernel, h.launch.Blocks, h.launch.Threads, a.pointer()) })
}

// queue queues work until the first error, and keeps that.
type queue struct{ err error }

func (q *queue) do(f func() error) {
	if q.err == nil {
		q.err = f()
	}
}

func (q *queue) wait(s *driver.Stream, e *driver.Event) {
	q.do(func() error { return s.Wait(e) })
}

func (q *queue) record(s *driver.Stream, e *driver.Event) {
	q.do(func() error { return s.Record(e) })
}

func (q *queue) copy(s *driver.Stream, to, from driver.Pointer, bytes int64) {
	q.do(func() error { return s.Copy(to, from, bytes) })
}
