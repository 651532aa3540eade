package bench

import (
	"slices"

	"tutti/backend/cuda"
	"tutti/model/units"
)

// Launches returns the launches that are worth trying at a size, for a sweep,
// with at most the given blocks.
func Launches(bytes units.Bytes, maxBlocks int) []cuda.Launch {
	var list []cuda.Launch
	add := func(a cuda.Algorithm, blocks, threads, rounds []int) {
		for _, b := range blocks {
			for _, t := range threads {
				for _, r := range rounds {
					list = append(list, cuda.Launch{Algorithm: a, Blocks: b, Threads: t, Rounds: r})
				}
			}
		}
	}
	one := []int{1}
	blocksFor := func(perBlock units.Bytes) []int { // about as many as give each warp one line
		n := int((bytes + perBlock - 1) / perBlock)
		var blocks []int
		for _, b := range []int{n / 2, n, 2 * n} {
			if b >= 1 && b <= 128 {
				blocks = append(blocks, b)
			}
		}
		if n > 128 {
			blocks = append(blocks, 16, 64, 128)
		}
		return blocks
	}
	if bytes <= 512*units.KiB {
		for _, threads := range []int{32, 64, 256, 512} { // a warp carries 256 and 480 bytes
			add(cuda.OneShotLL, blocksFor(units.Bytes(threads*8)), []int{threads}, one)
			add(cuda.OneShotLL128, blocksFor(units.Bytes(threads*15)), []int{threads}, one)
		}
	}
	if bytes >= 2*units.KiB && bytes <= 2*units.MiB {
		add(cuda.TwoShotLL, blocksFor(16*units.KiB), []int{512}, one)
	}
	if bytes >= 4*units.KiB && bytes <= 32*units.MiB {
		add(cuda.TwoShotLL128, blocksFor(30*units.KiB), []int{512}, one)
	}
	if bytes >= 512*units.KiB && bytes <= units.GiB {
		rounds := one
		if bytes >= 8*units.MiB {
			rounds = []int{1, 2}
		}
		blocks := []int{16, 64, 132, 264}
		if bytes <= 2*units.MiB {
			blocks = []int{16, 32, 64, 132}
		}
		add(cuda.TwoShotPush, blocks, []int{512, 1024}, rounds)
		add(cuda.TwoShotPull, blocks, []int{512, 1024}, one)
	}
	if bytes >= 16*units.MiB {
		add(cuda.Hybrid, []int{64, 132}, []int{512}, []int{1, 2, 4, 8})
	}
	return slices.DeleteFunc(list, func(l cuda.Launch) bool { return l.Blocks > maxBlocks })
}
