package schedule_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"tutti/model"
	"tutti/model/schedule"
	"tutti/model/units"
)

// A ring over LL starts the threads that NCCL 2.28.3 does on 4 H200s: 96 for 64
// bytes, 128 for 4 KiB, 512 from 16 KiB on. A third of 64 KiB on five channels
// takes them twice where a quarter on four takes them once.
func TestBlock(t *testing.T) {
	task := func(ranks, channels int, size units.Bytes) schedule.Task {
		return schedule.Task{Collective: model.AllReduce, Algorithm: model.Ring, Protocol: model.LL, Datatype: model.Float32,
			Count: int64(size / 4), Channels: channels, Ranks: ranks, Nodes: 1}
	}
	for size, threads := range map[units.Bytes]units.Bytes{64: 96, 4 * units.KiB: 128, 8 * units.KiB: 256, 16 * units.KiB: 512} {
		assert.Equal(t, 8*threads, task(4, 1, size).Block().AtOnce(1), size.String())
	}
	for ranks, channels := range map[int]int{4: 4, 3: 5} {
		call := task(ranks, channels, 64*units.KiB)
		chunk, atOnce := schedule.RingShape(call).Last, call.Block().AtOnce(1)
		assert.Equal(t, 5-units.Bytes(ranks), (chunk+atOnce-1)/atOnce, "%d ranks", ranks)
	}
}

// Slots are a part of what a call touches, and what is in place counts once.
func TestFootprint(t *testing.T) {
	call := schedule.Task{Collective: model.AllReduce, Algorithm: model.Ring, Protocol: model.LL, Datatype: model.Float32,
		Count: int64(2 * units.MiB), Channels: 24, Ranks: 4, Nodes: 1}
	slots, all := call.Footprint()
	assert.Equal(t, 24*8*64*units.KiB, slots) // NCCL_LL_BUFFSIZE on each channel
	assert.Equal(t, slots+16*units.MiB, all)
	call.InPlace = true
	_, all = call.Footprint()
	assert.Equal(t, slots+8*units.MiB, all)
}
