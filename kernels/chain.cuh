// Broadcast and Reduce on a chain of all ranks, for large sizes. Each rank stores what
// it is brought, or what that and its own come to, into slots of the next rank, round by
// round. A slot is used again once the next rank says that it is read.
//
// Calls follow one another without a barrier: a rank goes on to the next call once its own
// part is done and all have begun this one. So the slots of a block and their counters go
// on from call to call, and are used by no other kernel.
#pragma once
#include "shares.cuh"

constexpr u32 slotBytes = 32 << 10; // what a block has in a round at the most
constexpr u32 slots = 16;           // of each block

// The last warp of a block tells others what the rest, the workers, have done: a release
// waits until all that was stored has arrived, and meanwhile the workers go on.
struct Chain {
  const Shares &s;
  const Args &a = s.args;
  Patience patience;
  const u32 lane = threadIdx.x % 32, workers = blockDim.x - 32;
  const int source = int(s.source), next = rank() + 1 < ranks() ? rank() + 1 : 0;
  const u64 through; // a barrier for each slot: all warps are through with its round
  u32 base;
  u32 came, free; // what the source and the next rank were last seen to have said

  DEVICE Chain(const Shares &shares, u64 *barriers) : s(shares), patience(shares.args), through(placeInShared(barriers)) {
    if (threadIdx.x < slots)
      asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"l"(through + threadIdx.x * 8), "r"(workers / 32) : "memory");
    awaitTurn();
    patience.over = getRelaxed(&a.control(rank()).stop);
    came = free = base = a.control(rank()).epoch[blockIdx.x];
    __syncthreads();
  }
  DEVICE char *slot(int owner, u32 round) const {
    return a.region[owner] + a.inbox + (u64(blockIdx.x) * slots + (base + round) % slots) * slotBytes;
  }
  // A warp of workers waits until the round's data has come, and until its slot is free:
  // what was in it before is read.
  DEVICE void awaitData(u32 round) {
    if (source < ranks()) await(came, counter(rank(), 0, source), round + 2);
  }
  DEVICE void awaitSlot(u32 round) {
    if (s.passed) await(free, counter(rank(), 1, next), round + 2 - slots);
  }
  DEVICE void finish(u32 round) const {
    syncWarp();
    if (lane == 0) asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"l"(through + round % slots * 8) : "memory");
  }
  // What the last warp does in a call. Counters of a call begin at 1: a rank has begun it.
  DEVICE void tell() {
    const bool other = lane < u32(ranks()) && int(lane) != rank();
    if (other) putRelaxed(counter(lane, 1, rank()), base + 1);
    ROLLED for (u32 told = 0; told < a.rounds;) {
      while (!inAllLanes(isThrough(told) || !patience.more())) {
      }
      do told++;
      while (told < a.rounds && inAllLanes(isThrough(told)));
      if (lane == 1 && source < ranks()) putRelaxed(counter(source, 1, rank()), base + told + 1);
      if (lane == 0 && s.passed) putRelease(counter(next, 0, rank()), base + told + 1);
    }
    if (other)
      while (int(getAcquire(counter(rank(), 1, lane)) - (base + 1)) < 0 && patience.more()) {
      }
    if (lane == 0) a.control(rank()).epoch[blockIdx.x] = base + a.rounds + 1;
  }

private:
  static DEVICE u64 placeInShared(const void *p) {
    u64 at;
    asm("cvta.to.shared.u64 %0, %1;" : "=l"(at) : "l"(p));
    return at;
  }
  DEVICE u32 *counter(int reader, int phase, int writer) const { return &a.control(reader).flag[phase][blockIdx.x][writer]; }
  DEVICE void await(u32 &seen, const u32 *at, u32 progress) {
    while (!inAllLanes(int(seen - (base + progress)) >= 0 || !patience.more())) seen = getAcquire(at);
  }
  // Whether all workers are through with a round.
  DEVICE bool isThrough(u32 round) const {
    u32 is;
    asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(is) : "l"(through + round % slots * 8), "r"(round / slots % 2) : "memory");
    return is;
  }
};

// Takes what was brought, the own, or both, reduced, and puts it into the next rank's
// slot, the output, or both.
template <class T, class Op, bool reduces> DEVICE void passOn(const Shares &s) {
  __shared__ u64 barriers[slots];
  Chain chain(s, barriers);
  if (threadIdx.x >= chain.workers) return chain.tell();
  const Args &a = s.args;
  const u32 thread = threadIdx.x, threads = chain.workers;
  constexpr int some = 2; // packs that a thread has under way
  const bool brought = chain.source < ranks(), passed = s.passed, owned = a.input[rank()], kept = a.output[rank()];
  ROLLED for (u32 round = 0; round < a.rounds; round++) {
    const auto part = s.part(round, rank());
    const char *own = a.input[rank()] + part.begin, *slot = chain.slot(rank(), round);
    char *next = chain.slot(chain.next, round), *keep = a.output[rank()] + part.begin;
    const bool whole = (reinterpret_cast<u64>(own) | reinterpret_cast<u64>(keep)) % 16 == 0;
    const u32 packCount = whole ? u32(part.bytes / 16) : 0;
    Quad mine[some];
    UNROLLED for (int u = 0; u < some; u++)
      if (owned && thread + u * threads < packCount) mine[u] = load(packs(own) + thread + u * threads);
    chain.awaitData(round);
    chain.awaitSlot(round);
    ROLLED for (u32 i = thread; i < packCount; i += some * threads) {
      Quad v[some];
      UNROLLED for (int u = 0; u < some; u++)
        if (brought && i + u * threads < packCount) v[u] = load(packs(slot) + i + u * threads);
      if (owned && i != thread)
        UNROLLED for (int u = 0; u < some; u++)
          if (i + u * threads < packCount) mine[u] = load(packs(own) + i + u * threads);
      UNROLLED for (int u = 0; u < some; u++) {
        if (reduces && owned && brought) {
          Reduction<T, Op> x, y;
          x.start(v[u].x), y.start(v[u].y);
          x.add(mine[u].x), y.add(mine[u].y);
          v[u] = {x.finish(!passed), y.finish(!passed)};
        } else if (owned) {
          v[u] = mine[u];
        }
        if (i + u * threads >= packCount) continue;
        if (passed) store(packs(next) + i + u * threads, v[u]);
        if (kept) store(packs(keep) + i + u * threads, v[u]);
      }
    }
    ROLLED for (u64 at = packCount * 16 + thread * sizeof(T); at < part.bytes; at += threads * sizeof(T)) {
      T v;
      if (brought) v = *reinterpret_cast<const T *>(slot + at);
      if (reduces && owned && brought) {
        const auto sum = Op::of(Number<T>::widen(v), Number<T>::widen(*reinterpret_cast<const T *>(own + at)));
        v = Number<T>::narrow(passed ? sum : Op::finish(sum));
      } else if (owned) {
        v = *reinterpret_cast<const T *>(own + at);
      }
      if (passed) *reinterpret_cast<T *>(next + at) = v;
      if (kept) *reinterpret_cast<T *>(keep + at) = v;
    }
    chain.finish(round);
  }
}
