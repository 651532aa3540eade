// AllReduce in whole packs of 16 bytes with flags apart from the data, for large
// sizes. What is left of a buffer after its last whole pack is the caller's to reduce
// in another way.
#pragma once
#include "comm.cuh"
#include "number.cuh"

// Flags is a block's access to the flags of its peers: one counter for each
// phase, block and sender, in the reader's memory, that only ever grows.
struct Flags {
  const Args &a;
  Patience patience;
  u32 base; // what the counters of the last call came to

  DEVICE explicit Flags(const Args &args) : a(args), patience(args) {
    awaitTurn();
    patience.over = getRelaxed(&a.control(rank()).stop);
    base = a.control(rank()).epoch[blockIdx.x];
  }
  // Says that all that this block has written so far, for phase, is complete.
  DEVICE void signal(int phase, u32 progress) {
    __syncthreads();
    release(threadIdx.x, phase, progress);
  }
  // Waits until every peer has said so.
  DEVICE void await(int phase, u32 progress) {
    acquire(threadIdx.x, phase, progress);
    __syncthreads();
  }
  // A thread's part in these: with the rank of its number, if that is another.
  DEVICE void release(int r, int phase, u32 progress) const {
    if (r < ranks() && r != rank()) putRelease(&a.control(r).flag[phase][blockIdx.x][rank()], base + progress);
  }
  DEVICE void acquire(int r, int phase, u32 progress) {
    if (r >= ranks() || r == rank()) return;
    const u32 *flag = &a.control(rank()).flag[phase][blockIdx.x][r];
    while (int(getAcquire(flag) - (base + progress)) < 0 && patience.more()) {
    }
  }
  DEVICE void close(u32 progress) {
    if (threadIdx.x == 0) a.control(rank()).epoch[blockIdx.x] = base + progress;
  }
};

constexpr int unroll = 4;

// Copies the packs from begin to end, by threads that are numbered.
DEVICE void copyPacks(const Quad *from, Quad *to, u32 begin, u32 end, u32 thread, u32 threads) {
  ROLLED for (u32 i = begin + thread; i < end; i += unroll * threads) {
    Quad v[unroll];
    UNROLLED for (int u = 0; u < unroll; u++)
      if (i + u * threads < end) v[u] = load(from + i + u * threads);
    UNROLLED for (int u = 0; u < unroll; u++)
      if (i + u * threads < end) store(to + i + u * threads, v[u]);
  }
}
// The same by all threads of the block.
DEVICE void copyPacks(const Quad *from, Quad *to, u32 begin, u32 end) { copyPacks(from, to, begin, end, threadIdx.x, blockDim.x); }

// Two-shot over peer memory: each rank puts into every other's scratch the chunk
// that the other owns, reduces its own chunk and stores the result into the outputs
// of all. Rounds overlap: a block
// scatters the next one before it reduces the last.
template <class T, class Op> DEVICE void direct(const Args &a) {
  Flags flags(a);
  const u32 step = (a.stripe + a.rounds - 1) / a.rounds;

  // The block's part of a round, as packs of a chunk.
  u32 begin, end;
  auto take = [&](u32 round, u32 all) {
    begin = a.stripeBegin() + round * step;
    end = lower(lower(begin + step, a.stripeBegin() + a.stripe), all);
  };
  // All ranks serve the peer that lies equally far on: the links carry that better
  // than stores to all at once (366 against 356 GB/s on 4x H200, experiments/hotkernels).
  auto scatter = [&](u32 round) {
    ROLLED for (int k = 1; k < ranks(); k++) {
      take(round, a.chunkUnits(peer(k)));
      copyPacks(packs(a.input[rank()]) + a.chunkBegin(peer(k)), packs(a.region[peer(k)] + a.inbox) + u64(rank()) * a.capacity, begin, end);
    }
  };

  auto gather = [&](u32 round) {
    take(round, a.chunkUnits(rank()));
    const u32 first = a.chunkBegin(rank());
    const Quad *scratch = packs(a.region[rank()] + a.inbox);
    ROLLED for (u32 i = begin + threadIdx.x; i < end; i += blockDim.x) {
      Quad v[maxRanks];
      UNROLLED for (int r = 0; r < maxRanks; r++)
        if (r < ranks())
          v[r] = load(r == rank() ? packs(a.input[r]) + first + i : scratch + u64(r) * a.capacity + i);
      Reduction<T, Op> x, y;
      x.start(v[0].x), y.start(v[0].y);
      UNROLLED for (int r = 1; r < maxRanks; r++)
        if (r < ranks()) x.add(v[r].x), y.add(v[r].y);
      const Quad result = {x.finish(), y.finish()};
      store(packs(a.output[rank()]) + first + i, result);
      store(packs(a.output[peer(1)]) + first + i, result);
    }
    ROLLED for (int k = 2; k < ranks(); k++) copyPacks(packs(a.output[rank()]) + first, packs(a.output[peer(k)]) + first, begin, end);
  };

  ROLLED for (u32 round = 0; round < a.rounds; round++) {
    scatter(round);
    flags.signal(0, round + 1);
    if (round == 0) continue;
    flags.await(0, round);
    gather(round - 1);
  }
  flags.await(0, a.rounds);
  gather(a.rounds - 1);
  flags.signal(1, a.rounds);
  flags.await(1, a.rounds);
  flags.close(a.rounds);
}

