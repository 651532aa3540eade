// ReduceScatter in whole packs that keeps the links busy throughout: half of a block's
// threads send and never wait, the others reduce what has come.
#pragma once
#include "direct.cuh"

// Every rank puts what each other is to reduce, units packs from its input for that one
// on, into that one's scratch, and reduces what comes to it and its own into its output.
// A block has stripe packs in each round, and all blocks are at the same place of the
// buffers at the same time.
template <class T, class Op> DEVICE void collectStream(const Args &a) {
  Flags flags(a);
  const u32 crew = blockDim.x / 2, thread = threadIdx.x % crew;
  enum : u32 { sending = 1, reducing = 2 }; // barriers
  u32 begin, end;
  const auto take = [&](u32 round) {
    begin = lower((round * gridDim.x + blockIdx.x) * a.stripe, a.units);
    end = lower(begin + a.stripe, a.units);
  };
  const auto slot = [&](int owner, int sender) { // none for the owner's own
    return packs(a.region[owner] + a.inbox) + u64(sender - (sender > owner)) * a.capacity;
  };
  if (threadIdx.x < crew) {
    ROLLED for (u32 round = 0; round < a.rounds; round++) {
      take(round);
      ROLLED for (int k = 1; k < ranks(); k++) copyPacks(packs(a.input[peer(k)]), slot(peer(k), rank()), begin, end, thread, crew);
      meet(sending, crew);
      // A release waits until all has arrived; meanwhile the other warps go on.
      if (thread / 32 == round % (crew / 32)) flags.release(thread % 32, 0, round + 1);
    }
  } else {
    constexpr int most = 4;
    const u32 some = ranks() < 3 ? most : ranks() < 5 ? 2 : 1; // packs of each rank at once
    const Quad *from[maxRanks];
    UNROLLED for (int r = 0; r < maxRanks; r++)
      if (r < ranks()) from[r] = r == rank() ? packs(a.input[r]) : slot(rank(), r);
    ROLLED for (u32 round = 0; round < a.rounds; round++) {
      take(round);
      flags.acquire(thread, 0, round + 1);
      meet(reducing, crew);
      ROLLED for (u32 i = begin + thread; i < end; i += some * crew) {
        Quad v[most][maxRanks];
        UNROLLED for (int u = 0; u < most; u++)
          UNROLLED for (int r = 0; r < maxRanks; r++)
            if (u32(u) < some && r < ranks() && i + u * crew < end) v[u][r] = load(from[r] + i + u * crew);
        UNROLLED for (int u = 0; u < most; u++) {
          if (u32(u) >= some || i + u * crew >= end) continue;
          Reduction<T, Op> x, y;
          x.start(v[u][0].x), y.start(v[u][0].y);
          UNROLLED for (int r = 1; r < maxRanks; r++)
            if (r < ranks()) x.add(v[u][r].x), y.add(v[u][r].y);
          store(packs(a.output[rank()]) + i + u * crew, {x.finish(), y.finish()});
        }
      }
    }
  }
  flags.signal(1, a.rounds);
  flags.await(1, a.rounds);
  flags.close(a.rounds);
}
