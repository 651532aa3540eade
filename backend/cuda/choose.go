package cuda

// Choose returns the launch that was quickest for an AllReduce of the given bytes
// in sweeps on 2 and 4 H200s (experiments/hotkernels). What each rank sends, not
// the size alone, decides between one shot and two: so the borders for other
// numbers of ranks follow from these.
func Choose(ranks int, bytes int64) Launch {
	const kib, mib = 1 << 10, 1 << 20
	blocks := func(perBlock int64, most int) int {
		return int(max(1, min((bytes+perBlock-1)/perBlock, int64(most))))
	}
	sent := bytes * int64(ranks-1) // in one shot
	switch {
	case sent <= 128*kib:
		return Launch{Algorithm: OneShotLL, Blocks: blocks(kib, lineBlocks), Threads: 256, Rounds: 1}
	case sent <= 192*kib, ranks == 2 && bytes <= 512*kib:
		return Launch{Algorithm: OneShotLL128, Blocks: blocks(1920, lineBlocks), Threads: 256, Rounds: 1}
	case sent <= 768*kib:
		return Launch{Algorithm: OneShotLL128, Blocks: blocks(3840, lineBlocks), Threads: 512, Rounds: 1}
	case ranks == 2 && bytes <= 4*mib: // two shots send no less
		return Launch{Algorithm: OneShotLL128, Blocks: lineBlocks, Threads: 512, Rounds: 1}
	case bytes < mib:
		return Launch{Algorithm: TwoShotLL128, Blocks: blocks(15*kib, lineBlocks), Threads: 512, Rounds: 1}
	case bytes <= 4*mib:
		return Launch{Algorithm: TwoShotLL128, Blocks: lineBlocks, Threads: 512, Rounds: 1}
	case bytes <= 8*mib, ranks > 2 && bytes <= 16*mib:
		return Launch{Algorithm: TwoShotPush, Blocks: 64, Threads: 768, Rounds: 1}
	case bytes <= 16*mib:
		return Launch{Algorithm: TwoShotPush, Blocks: 132, Threads: 512, Rounds: 2}
	case ranks == 2 && bytes <= 128*mib:
		return Launch{Algorithm: TwoShotPush, Blocks: 132, Threads: 1024, Rounds: 1}
	case bytes <= 128*mib:
		return Launch{Algorithm: TwoShotPush, Blocks: 132, Threads: 512, Rounds: 1}
	case bytes < 128*mib*int64(ranks):
		return Launch{Algorithm: HybridPush, Blocks: 132, Threads: 512, Rounds: 1}
	default:
		return Launch{Algorithm: Hybrid, Blocks: 132, Threads: 512, Rounds: 2}
	}
}
