// Package emulator runs PTX on the CPU, so that kernels can be tested without a
// GPU: the very text that a GPU's driver would compile. Kernels of one stream
// follow one another, those of several run side by side and take turns of random
// length, so that some get far ahead; so do their warps, whose lanes run in
// lockstep where they are together. An access outside of an allocation, or
// misaligned, ends it, as does a wait that is never over. Memory is sequentially
// consistent, which that of GPUs is not: missing fences go unnoticed.
package emulator

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
)

// Machine is the memory that all kernels share, and the kernels that are queued.
type Machine struct {
	// Patience is how many turns warps may take before a run is given up.
	Patience int

	random  *rand.Rand
	memory  [][]byte // by the upper half of an address, from 1 on
	streams map[int][]*grid
	steps   int
}

// New returns an empty machine. The seed decides whose turn it is.
func New(seed uint64) *Machine {
	return &Machine{Patience: 1 << 21, random: rand.New(rand.NewPCG(seed, 0)), streams: map[int][]*grid{}}
}

const addressBits = 32 // of an offset in an allocation

// Alloc takes memory, set to zero. Its address is a multiple of 2^32.
func (m *Machine) Alloc(bytes int) (address uint64) {
	m.memory = append(m.memory, make([]byte, bytes))
	return uint64(len(m.memory)) << addressBits
}

// Bytes returns the memory at an address, up to the end of the allocation, or nil
// where there is none.
func (m *Machine) Bytes(address uint64) []byte {
	i, offset := address>>addressBits, address&(1<<addressBits-1)
	if i == 0 || i > uint64(len(m.memory)) || offset > uint64(len(m.memory[i-1])) {
		return nil
	}
	return m.memory[i-1][offset:]
}

// at returns what an access touches.
func (m *Machine) at(address uint64, bytes int) ([]byte, error) {
	b := m.Bytes(address)
	switch {
	case len(b) < bytes:
		return nil, fmt.Errorf("access to %d bytes at %#x, where there are %d", bytes, address, len(b))
	case address%uint64(bytes) != 0:
		return nil, fmt.Errorf("access to %d bytes at %#x: misaligned", bytes, address)
	}
	return b[:bytes], nil
}

// grid is a kernel that was queued.
type grid struct {
	kernel  *kernel
	before  *grid // in the stream
	params  uint64
	blocks  []*block
	running int // warps
}

type block struct {
	grid            *grid
	number, threads int
	shared          uint64
	warps           []*warp
	running         int // warps
	barriers        [16]gathering
}

// Launch queues a kernel, whose parameter is the given struct's bytes, in a
// stream. Blocks have a multiple of 32 threads.
func (m *Machine) Launch(stream int, program *Program, name string, blocks, threads int, params []byte) error {
	k := program.kernels[name]
	if k == nil {
		return fmt.Errorf("no kernel %s", name)
	}
	if k.err != nil {
		return fmt.Errorf("%s: %w", name, k.err)
	}
	if threads%32 != 0 || threads > k.threads || len(params) != k.params {
		return fmt.Errorf("%s with %d threads and %d bytes of parameters: want up to %d, by 32, and %d", name, threads, len(params), k.threads, k.params)
	}
	g := &grid{kernel: k, params: m.Alloc(len(params))}
	copy(m.Bytes(g.params), params)
	for i := range blocks {
		g.blocks = append(g.blocks, &block{grid: g, number: i, threads: threads, shared: m.Alloc(k.shared), running: threads / 32})
	}
	g.running = blocks * threads / 32
	if queue := m.streams[stream]; len(queue) > 0 {
		g.before = queue[len(queue)-1]
	}
	m.streams[stream] = append(m.streams[stream], g)
	return nil
}

// Run runs all kernels that are queued. A kernel may begin while the one before it
// in the stream runs, and waits where it says so (griddepcontrol.wait).
func (m *Machine) Run() error {
	var lanes []*queue
	for _, s := range slices.Sorted(maps.Keys(m.streams)) {
		lanes = append(lanes, &queue{grids: m.streams[s]})
	}
	clear(m.streams)
	for m.steps = 0; len(lanes) > 0; {
		i := m.random.IntN(len(lanes))
		if err := lanes[i].run(m, m.random.IntN(1<<m.random.IntN(12))); err != nil {
			return err
		}
		lanes = slices.DeleteFunc(lanes, (*queue).empty)
	}
	return nil
}

// queue is the work of a stream.
type queue struct {
	grids []*grid
	begun int
	warps []*warp
}

func (q *queue) empty() bool { return len(q.warps) == 0 && q.begun == len(q.grids) }

// run gives warps so many turns.
func (q *queue) run(m *Machine, turns int) error {
	for range turns {
		for ; q.begun < len(q.grids) && (q.begun < 2 || q.grids[q.begun-2].running == 0); q.begun++ {
			for _, b := range q.grids[q.begun].blocks {
				for first := 0; first < b.threads; first += 32 {
					q.warps = append(q.warps, newWarp(m, b, first))
				}
			}
		}
		if len(q.warps) == 0 {
			return nil
		}
		i := m.random.IntN(len(q.warps))
		w := q.warps[i]
		done, err := w.run(1 + m.random.IntN(64))
		if m.steps++; err == nil && m.steps > m.Patience {
			err = fmt.Errorf("waits for ever at %s", w.where())
		}
		if err != nil {
			return fmt.Errorf("%s, block %d, threads from %d: %w", w.block.grid.kernel.name, w.block.number, w.first, err)
		}
		if done {
			q.warps[i] = q.warps[len(q.warps)-1]
			q.warps = q.warps[:len(q.warps)-1]
		}
	}
	return nil
}

// gathering is a barrier of a block: the warps that have come, and those of them that
// wait there.
type gathering struct {
	here, want int // want is 0 for all that run
	waiting    []*warp
}

func (m *Machine) load(address uint64, bytes int) (uint64, error) {
	b, err := m.at(address, bytes)
	if err != nil {
		return 0, err
	}
	var word [8]byte
	copy(word[:], b)
	return binary.LittleEndian.Uint64(word[:]), nil
}

func (m *Machine) store(address uint64, bytes int, v uint64) error {
	b, err := m.at(address, bytes)
	if err == nil {
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], v)
		copy(b, word[:bytes])
	}
	return err
}
