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
	share, sent := bytes, bytes // to one rank, and to all
	switch c {
	case model.AllGather, model.ReduceScatter, model.AllToAll:
		share = bytes / int64(ranks)
		sent = share * int64(ranks-1)
	case model.Broadcast, model.Reduce:
		sent = bytes * int64(ranks-1)
	}
	lines := func(a Algorithm, perBlock int64) Launch {
		return Launch{Algorithm: a, Blocks: int(max(1, min((share+perBlock-1)/perBlock, lineBlocks))), Threads: 512, Rounds: 1}
	}
	switch reduces := c.Reduces(); {
	case share <= 16*kib:
		return lines(OneShotLL, kib)
	case c.Rooted():
		return chooseRooted(c, ranks, bytes, lines)
	case sent <= 2*mib, reduces && sent <= 6*mib:
		return lines(OneShotLL128, 2*kib)
	case c == model.ReduceScatter && (bytes < 256*mib || ranks == 2 && bytes >= 1024*mib): // within windows of 4 MiB
		return Launch{Algorithm: OneShotPush, Blocks: 132, Threads: 1024, Rounds: int(max(1, share/(4*mib)))}
	case c == model.ReduceScatter && bytes < 1024*mib:
		return Launch{Algorithm: OneShotPush, Blocks: 512, Threads: 256, Rounds: 16}
	case bytes <= 4*mib:
		return Launch{Algorithm: OneShotPush, Blocks: 32, Threads: 512, Rounds: 1}
	case bytes <= 8*mib:
		return Launch{Algorithm: OneShotPush, Blocks: 64, Threads: 512, Rounds: 1}
	case bytes <= 32*mib:
		return Launch{Algorithm: OneShotPush, Blocks: 132, Threads: 512, Rounds: 1}
	case bytes <= 64*mib:
		return Launch{Algorithm: OneShotPush, Blocks: 132, Threads: 512, Rounds: 4}
	case !reduces:
		return Launch{Algorithm: OneShotCopy, Blocks: 1, Threads: 32, Rounds: 1}
	case bytes < 512*mib:
		return Launch{Algorithm: OneShotPush, Blocks: 132, Threads: 512, Rounds: 16}
	case c == model.ReduceScatter && ranks > 2 && share%packBytes == 0:
		return Launch{Algorithm: OneShotCopy, Blocks: 132, Threads: 512, Rounds: 4}
	default:
		return Launch{Algorithm: OneShotPush, Blocks: 132, Threads: 512, Rounds: 64}
	}
}

// chooseRooted is ChooseFor of Broadcast and Reduce: on more than two ranks, two hops are
// soon better than one, and then a chain is.
func chooseRooted(c model.Collective, ranks int, bytes int64, lines func(Algorithm, int64) Launch) Launch {
	const kib, mib = 1 << 10, 1 << 20
	rounds := func(blocks, stripe int64) int { return int((bytes + blocks*stripe - 1) / (blocks * stripe)) }
	switch reduces := c.Reduces(); {
	case ranks == 2 && bytes <= 4*mib, bytes <= 128*kib, reduces && bytes <= 512*kib:
		return lines(OneShotLL128, 2*kib)
	case bytes <= 4*mib:
		return lines(TwoShotLL128, 8*kib)
	case ranks == 2 && reduces && bytes >= 64*mib:
		return Launch{Algorithm: OneShotPull, Blocks: 264, Threads: 512, Rounds: 1}
	case ranks == 2 && !reduces && bytes >= 128*mib:
		return Launch{Algorithm: OneShotCopy, Blocks: 1, Threads: 32, Rounds: 1}
	case ranks == 2 || bytes < 16*mib:
		return Launch{Algorithm: RingPush, Blocks: 132, Threads: 544, Rounds: rounds(132, 16*kib)}
	default:
		return Launch{Algorithm: RingPush, Blocks: 132, Threads: 544, Rounds: rounds(132, 32*kib)}
	}
}

// usualCollective are good launches of other collectives than AllReduce where the
// size is not known.
var usualCollective = []Launch{
	{Algorithm: OneShotLL, Blocks: 64, Threads: 512, Rounds: 1},
	{Algorithm: OneShotLL128, Blocks: 64, Threads: 512, Rounds: 1},
	{Algorithm: OneShotPush, Blocks: 132, Threads: 512, Rounds: 4},
	{Algorithm: TwoShotLL128, Blocks: 128, Threads: 512, Rounds: 1},
}
