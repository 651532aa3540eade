package bench

import (
	"slices"

	"tutti/backend/cuda"
	"tutti/model"
	"tutti/model/schedule"
	"tutti/model/units"
)

// collectiveLaunches returns the launches that are worth trying for a collective
// other than AllReduce, by what a rank sends another. Those that do not carry it
// out, or do not fit, are for the caller to leave out.
func collectiveLaunches(t schedule.Task) (list []cuda.Launch) {
	share := units.Bytes(t.Count) * t.Datatype.Size()
	add := func(a cuda.Algorithm, threads, rounds int, blocks ...int) {
		for _, b := range blocks {
			if l := (cuda.Launch{Algorithm: a, Blocks: b, Threads: threads, Rounds: rounds}); !slices.Contains(list, l) {
				list = append(list, l)
			}
		}
	}
	if share <= 64*units.KiB {
		for _, perBlock := range []units.Bytes{512, units.KiB, 4 * units.KiB} {
			add(cuda.OneShotLL, 512, 1, int(min(64, (share+perBlock-1)/perBlock)))
		}
	}
	if share >= 4*units.KiB && share <= 8*units.MiB {
		for _, perBlock := range []units.Bytes{2 * units.KiB, 8 * units.KiB, 32 * units.KiB} {
			add(cuda.OneShotLL128, 512, 1, int(min(128, (share+perBlock-1)/perBlock)))
		}
	}
	if t.Collective.Rooted() && t.Bytes() >= 64*units.KiB && t.Bytes() <= 32*units.MiB {
		add(cuda.TwoShotLL128, 512, 1, 16, 32, 64, 128)
	}
	if t.Bytes() < 256*units.KiB {
		return list
	}
	a := cuda.OneShotPush
	switch {
	case t.Collective.Rooted():
		for _, window := range []units.Bytes{4 * units.KiB, 8 * units.KiB, 16 * units.KiB, 32 * units.KiB} { // of a block in a round
			for _, blocks := range []int{66, 132} {
				all := units.Bytes(blocks) * window
				add(cuda.RingPush, 288, int((t.Bytes()+all-1)/all), blocks)
				add(cuda.RingPush, 544, int((t.Bytes()+all-1)/all), blocks)
			}
		}
	case t.Bytes() <= 4*units.MiB:
		add(a, 512, 1, 16, 32, 64, 128)
		add(a, 512, 4, 32, 64)
	case t.Bytes() <= 32*units.MiB:
		add(a, 512, 1, 64, 132)
		add(a, 512, 4, 64, 132)
		add(a, 1024, 4, 64)
		add(a, 256, 4, 264)
		add(a, 256, 16, 264)
	default:
		add(a, 512, 4, 132)
		add(a, 512, 16, 64, 132, 264)
		add(a, 512, 64, 132, 264)
		add(a, 256, 16, 264, 512)
	}
	if t.Collective == model.ReduceScatter {
		for _, window := range []units.Bytes{2 * units.MiB, 4 * units.MiB, 8 * units.MiB} {
			add(cuda.OneShotPush, 1024, int(max(1, share/window)), 132)
		}
	}
	if t.Collective.Reduces() && t.Ranks == 2 {
		add(cuda.OneShotPull, 512, 1, 66, 132, 264)
	}
	if t.Bytes() >= 16*units.MiB {
		for _, pieces := range []int{1, 4, 8} {
			add(cuda.OneShotCopy, 512, pieces, 132)
			if !t.Collective.Reduces() {
				break
			}
		}
	}
	return list
}
