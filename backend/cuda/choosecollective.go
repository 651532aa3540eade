package cuda

import "tutti/model"

// ChooseFor returns the launch that was quickest for a collective of the given
// bytes, the larger of a rank's two buffers, in sweeps on 2 and 4 H200s
// (experiments/collectives).
func ChooseFor(c model.Collective, ranks int, bytes int64) Launch {
	if c == model.AllReduce {
		return Choose(ranks, bytes)
	}
	const kib, mib = 1 << 10, 1 << 20
	share := bytes
	if c == model.AllGather || c == model.ReduceScatter || c == model.AllToAll {
		share = bytes / int64(ranks)
	}
	blocks := func(perBlock int64, most int) int {
		return int(max(1, min((share+perBlock-1)/perBlock, int64(most))))
	}
	push := OneShotPush
	if c.Rooted() && ranks > 2 {
		push = TwoShotPush
	}
	switch {
	case share <= 16*kib:
		return Launch{Algorithm: OneShotLL, Blocks: blocks(kib, 64), Threads: 512, Rounds: 1}
	case share <= 256*kib:
		return Launch{Algorithm: OneShotLL128, Blocks: blocks(4*kib, 64), Threads: 512, Rounds: 1}
	case bytes <= 16*mib:
		return Launch{Algorithm: push, Blocks: 64, Threads: 512, Rounds: 2}
	case bytes <= 128*mib || c.Rooted():
		return Launch{Algorithm: push, Blocks: 132, Threads: 512, Rounds: 8}
	default:
		return Launch{Algorithm: OneShotCopy, Blocks: 132, Threads: 512, Rounds: 4}
	}
}

// usualCollective are good launches of other collectives than AllReduce where the
// size is not known.
var usualCollective = []Launch{
	{Algorithm: OneShotLL, Blocks: 64, Threads: 512, Rounds: 1},
	{Algorithm: OneShotLL128, Blocks: 64, Threads: 512, Rounds: 1},
	{Algorithm: OneShotPush, Blocks: 132, Threads: 512, Rounds: 8},
	{Algorithm: TwoShotPush, Blocks: 132, Threads: 512, Rounds: 8},
}
