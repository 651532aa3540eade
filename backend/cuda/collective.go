package cuda

import (
	"fmt"
	"slices"

	"tutti/backend/cuda/driver"
	"tutti/model"
	"tutti/model/schedule"
)

// The kernels of kernels/lines.cuh and kernels/shares.cuh: those that deliver data
// as it is, and those that collect it from all ranks to reduce it.
var (
	deliverKernels = []string{OneShotLL: "deliver_ll", OneShotLL128: "deliver_ll128", TwoShotLL128: "relay_ll128", OneShotPush: "deliver_push", RingPush: "deliver_chain"}
	collectKernels = []string{OneShotLL: "collect_ll", OneShotLL128: "collect_ll128", TwoShotLL128: "collect_twice_ll128", OneShotPush: "collect_push", OneShotPull: "collect_pull", RingPush: "collect_chain"}
)

// kernelOf returns the kernel that an algorithm has for a collective, if it has one.
func kernelOf(c model.Collective, a Algorithm) string {
	names := deliverKernels
	if c.Reduces() {
		names = collectKernels
	}
	if int(a) >= len(names) {
		return ""
	}
	return names[a]
}

// streamKernel is what OneShotPush has for a ReduceScatter of whole packs.
const streamKernel = "collect_stream"

// streams tells whether that kernel carries out the call.
func (x *collective) streams() bool {
	whole := x.task.Count*int64(x.task.Datatype.Size())%packBytes == 0 &&
		!slices.ContainsFunc(slices.Concat(x.input, x.output), func(p driver.Pointer) bool { return p%packBytes != 0 })
	return whole && x.launch.Algorithm == OneShotPush && x.task.Collective == model.ReduceScatter && x.launch.Threads%64 == 0
}

// kernel returns the name of the kernel that carries out the call, if one does.
func (x *collective) kernel() string {
	if x.streams() {
		return streamKernel
	}
	return kernelOf(x.task.Collective, x.launch.Algorithm)
}

// does tells whether an algorithm carries out a collective other than AllReduce.
func (a Algorithm) does(c model.Collective) bool {
	switch a {
	case OneShotLL, OneShotLL128, OneShotPush:
		return true
	case TwoShotLL128, RingPush:
		return c.Rooted()
	case OneShotPull:
		return c.Reduces()
	case OneShotCopy:
		return c != model.Reduce
	default:
		return false
	}
}

// collective is a call of any collective but AllReduce, cut up for a launch.
type collective struct {
	*Comm
	task    schedule.Task
	launch  Launch
	shape   shape
	input   []driver.Pointer
	output  []driver.Pointer
	shares  [maxRanks][maxRanks]share // by sender and receiver
	modules []*module                 // of each rank, with the kernel
	hybrid  *hybrid                   // of ReduceScatter by copy engines
}

// fitCollective cuts the call of a task up for a launch. The error says why the
// launch does not suit.
func (l layout) fitCollective(launch Launch, t schedule.Task) (s shape, err error) {
	a, bytes, n := launch.Algorithm, uint64(t.Count)*uint64(t.Datatype.Size()), uint64(t.Ranks)
	if !a.does(t.Collective) {
		return s, fmt.Errorf("%v does no %v", a, t.Collective)
	}
	s = shape{bytesPerUnit: packBytes, inbox: l.scratch, capacity: uint32(uint64(l.scratchPacks) * n / (n - 1))}
	limit := maxBlocks
	switch {
	case a.Protocol() == model.LL:
		s.inbox, s.capacity, limit = l.ll, l.llLines, lineBlocks
	case a.Protocol() == model.LL128:
		s.inbox, s.capacity, limit = l.ll128, l.ll128Lines, lineBlocks
	case a == RingPush:
		s.inbox, s.capacity, limit = l.slots, slotBytes/packBytes, slotBlocks
	}
	if words := wordsPerLine[a.Protocol()]; words > 0 {
		s.bytesPerUnit = words * 8
	}
	units := (bytes + s.bytesPerUnit - 1) / s.bytesPerUnit
	if units >= 1<<32 {
		return s, fmt.Errorf("%v: %d bytes are too many for one call", a, bytes)
	}
	if s.units = uint32(units); a.Shots() == model.TwoShot { // of an owner: all but the root are
		s.chunk, s.extra = uint32(units/(n-1)), uint32(units%(n-1))
		units = (units + n - 2) / (n - 1)
	}
	switch {
	case a == TwoShotLL128 && s.chunk == 0: // or calls run ahead, as in [layout.fit]
		return s, fmt.Errorf("%v: %d bytes are too few for %d ranks", a, bytes, n)
	case launch.Blocks < 1 || launch.Blocks > limit:
		return s, fmt.Errorf("%v: %d blocks: want 1 to %d", a, launch.Blocks, limit)
	case a == OneShotCopy && t.Collective.Reduces() && bytes%packBytes != 0:
		return s, fmt.Errorf("%v: blocks of %d bytes: want a multiple of %d", a, bytes, packBytes)
	case a == RingPush && launch.Threads < 64:
		return s, fmt.Errorf("%v: %d threads: want at least 64, as a warp tells the others' progress", a, launch.Threads)
	case launch.Threads < 32 || launch.Threads > a.maxThreads() || launch.Threads%32 != 0:
		return s, fmt.Errorf("%v: %d threads: want a multiple of 32 up to %d", a, launch.Threads, a.maxThreads())
	}
	parts := uint64(launch.Blocks)
	if a.Protocol() == model.Simple {
		parts *= uint64(max(1, launch.Rounds))
	}
	s.stripe = uint32((units + parts - 1) / parts)
	s.blocks = min(launch.Blocks, int((uint32(units)+s.stripe-1)/max(1, s.stripe)))
	held := s.stripe // units in a slot
	switch {
	case a.Protocol() != model.Simple, a == RingPush:
	case a == OneShotPull, !t.Collective.Reduces():
		held = 0
	default: // all that is reduced
		held = uint32(units)
	}
	if held > s.capacity {
		return s, fmt.Errorf("%v: %d bytes do not fit the inboxes of %d blocks", a, bytes, launch.Blocks)
	}
	return s, nil
}

// together makes a launch of a chain one whose blocks all run at once, one on a
// multiprocessor, also where a GPU stands for several ranks, which wait for one another.
func (c *Comm) together(l Launch) Launch {
	for _, r := range c.ranks {
		for l.Algorithm == RingPush && l.Blocks > max(1, r.gpu.Multiprocessors/c.sharing(r.gpu)) {
			l.Blocks, l.Rounds = (l.Blocks+1)/2, 2*l.Rounds
		}
	}
	return l
}

// newCollective makes a call ready. Loading its kernels is left to [collective.load].
func (c *Comm) newCollective(t schedule.Task, launch Launch, input, output []driver.Pointer) (x *collective, err error) {
	x = &collective{Comm: c, task: t, launch: launch, input: input, output: output}
	if x.shape, err = c.layout.fitCollective(launch, t); err != nil {
		return nil, err
	}
	switch launch.Algorithm.Shots() {
	case model.OneShot:
		x.deal()
	case model.Ring:
		x.dealRing()
	}
	if launch.Algorithm == OneShotCopy && t.Collective.Reduces() {
		err = x.prepareHybrid()
	}
	return x, err
}

// load makes the kernel ready on all ranks.
func (x *collective) load() (err error) {
	name := x.kernel()
	switch {
	case x.hybrid != nil:
		x.hybrid.modules, err = x.Comm.load(x.task.Datatype, x.task.Redop, x.launch.kernels(0)[0])
	case x.task.Collective.Reduces():
		x.modules, err = x.Comm.load(x.task.Datatype, x.task.Redop, name)
	case x.launch.Algorithm != OneShotCopy:
		x.modules, err = x.loadCommon(name)
	}
	return err
}

// queue queues the call on a stream of each rank, but for a rank that is left out.
func (x *collective) queue(streams []*driver.Stream, without int) error {
	if x.task.Count == 0 {
		return nil
	}
	if x.launch.Algorithm == OneShotCopy {
		return x.queueCopies(streams, without)
	}
	name := x.kernel()
	for i, r := range x.ranks {
		if i == without {
			continue
		}
		if err := streams[i].LaunchOverlapped(x.modules[i].kernels[name], x.shape.blocks, x.launch.Threads, x.parameters(i)); err != nil {
			return fmt.Errorf("rank %d of %d on GPU %d: %w", i, len(x.ranks), r.gpu.Index, err)
		}
	}
	return nil
}

// queueCopies has the copy engines move the shares, as [hybrid] does: all ranks
// serve the one that lies equally far on.
func (x *collective) queueCopies(streams []*driver.Stream, without int) error {
	if err := x.openLanes(); err != nil {
		return err
	}
	none := make([]driver.Pointer, len(x.ranks))
	h := hybrid{Comm: x.Comm, call: Call{Input: none, Output: none}}
	if x.hybrid != nil {
		h = *x.hybrid
	}
	for rank, s := range streams {
		switch {
		case rank == without:
		case x.hybrid != nil:
			h.queueRank(rank, s)
		default:
			x.queueRank(&h, rank, s)
		}
	}
	return h.err
}

// queueRank has a rank's shares copied, its own beside the others.
func (x *collective) queueRank(h *hybrid, rank int, s *driver.Stream) {
	lanes, own := x.ranks[rank].lanes, x.shares[rank][rank]
	keeps := own.from != own.to // there is one, and not in place
	h.barrier(rank, s)          // all outputs may be written
	if keeps {
		h.record(s, lanes.begun)
		h.wait(lanes.reduce, lanes.begun)
		h.copy(lanes.reduce, own.to, own.from, int64(own.bytes))
		h.record(lanes.reduce, lanes.reduced[0])
	}
	for hop := 1; hop < len(x.ranks); hop++ {
		if share := x.shares[rank][(rank+hop)%len(x.ranks)]; share.bytes > 0 {
			h.copy(s, share.to, share.from, int64(share.bytes))
		}
	}
	if keeps {
		h.wait(s, lanes.reduced[0])
	}
	h.barrier(rank, s)
}

// prepareHybrid makes ReduceScatter by copy engines ready: the first half of such
// an AllReduce, with each rank's result at the beginning of its output.
func (x *collective) prepareHybrid() error {
	block := driver.Pointer(x.task.Count * int64(x.task.Datatype.Size()))
	call := Call{Input: x.input, Output: slices.Clone(x.output), Count: x.task.Count * int64(x.task.Ranks), Datatype: x.task.Datatype, Redop: x.task.Redop}
	for rank := range call.Output {
		call.Output[rank] -= driver.Pointer(rank) * block
	}
	x.hybrid = x.newHybrid(call, x.launch)
	return x.fitsHybrid(x.launch, x.hybrid.packs)
}
