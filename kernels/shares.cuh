// The other collectives with flags apart from the data, for large sizes. What one
// rank sends another is its share, of any number of bytes. All ranks serve the
// peer that lies equally far on.
#pragma once
#include "direct.cuh"

// Shares are the parameters. The args' input says where the share of each rank
// begins, output where the shares go, 0 where there is none.
struct Shares {
  Args args;
  u64 bytes[maxRanks]; // of each rank's share
  u32 source;          // the rank to wait for in each round, or ranks() for none
  u32 passed;          // whether others wait for this one's rounds

  // The part of a share that this block has in a round, a stripe. All blocks are at
  // the same place of a share at the same time.
  struct Part { u64 begin, bytes; };
  DEVICE Part part(u32 round, int r) const {
    const u64 stripe = u64(args.stripe) * 16, begin = (u64(round) * gridDim.x + blockIdx.x) * stripe;
    const u64 rest = begin < bytes[r] ? bytes[r] - begin : 0;
    return {begin, rest < stripe ? rest : stripe};
  }
};
static_assert(sizeof(Shares) == 320, "package cuda lays out the same");

DEVICE void load(u32 &v, const u32 *p) { asm volatile("ld.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory"); }
DEVICE void load(Quad &v, const Quad *p) { v = load(p); }
DEVICE void load(char &v, const char *p) { v = *p; }
DEVICE void store(u32 *p, u32 v) { asm volatile("st.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory"); }
DEVICE void store(char *p, char v) { *p = v; }

// Copies whole units, and keeps a second copy unless keep is 0.
template <class Unit> DEVICE void copyUnits(const char *from, char *to, char *keep, u64 bytes) {
  const u32 units = u32(bytes / sizeof(Unit));
  ROLLED for (u32 i = threadIdx.x; i < units; i += unroll * blockDim.x) {
    Unit v[unroll];
    UNROLLED for (int u = 0; u < unroll; u++)
      if (i + u * blockDim.x < units) load(v[u], reinterpret_cast<const Unit *>(from) + i + u * blockDim.x);
    UNROLLED for (int u = 0; u < unroll; u++)
      if (i + u * blockDim.x < units) {
        store(reinterpret_cast<Unit *>(to) + i + u * blockDim.x, v[u]);
        if (keep) store(reinterpret_cast<Unit *>(keep) + i + u * blockDim.x, v[u]);
      }
  }
}

// Copies bytes in the largest units that all places are multiples of.
DEVICE void copyBytes(const char *from, char *to, char *keep, u64 bytes) {
  const u64 places = reinterpret_cast<u64>(from) | reinterpret_cast<u64>(to) | reinterpret_cast<u64>(keep);
  u64 whole = 0;
  if (places % 16 == 0) {
    whole = bytes / 16 * 16;
    copyUnits<Quad>(from, to, keep, whole);
  } else if (places % 4 == 0) {
    whole = bytes / 4 * 4;
    copyUnits<u32>(from, to, keep, whole);
  }
  copyUnits<char>(from + whole, to + whole, keep ? keep + whole : nullptr, bytes - whole);
}

// Shares go straight into the outputs: AllGather, AllToAll, SendRecv and Exchange,
// and Broadcast in two shots, in which the root deals a share to each other rank,
// which that one passes on, a round behind the root.
DEVICE void deliverShares(const Shares &s) {
  const Args &a = s.args;
  Flags flags(a);
  flags.signal(0, 1); // the own output may be written
  const int source = int(s.source);
  const bool begins = s.passed && source == ranks(); // the root of a Broadcast
  if (a.input[rank()] && !begins)
    ROLLED for (u32 round = 0; round < a.rounds; round++) {
      const auto part = s.part(round, rank());
      copyBytes(a.input[rank()] + part.begin, a.output[rank()] + part.begin, nullptr, part.bytes);
    }
  flags.await(0, 1);
  ROLLED for (u32 round = 0; round < a.rounds; round++) {
    if (source < ranks()) flags.awaitFrom(source, 0, round + 2);
    ROLLED for (int k = 1; k < ranks(); k++) {
      const char *from = a.input[peer(k)];
      if (!from) continue;
      const auto part = s.part(round, peer(k));
      char *keep = nullptr; // the root has all itself in the end
      if (begins && a.output[rank()]) keep = a.output[rank()] + (from - a.input[rank()]) + part.begin;
      copyBytes(from + part.begin, a.output[peer(k)] + part.begin, keep, part.bytes);
    }
    if (s.passed) flags.signal(0, round + 2);
  }
  flags.signal(1, a.rounds + 1);
  flags.await(1, a.rounds + 1);
  flags.close(a.rounds + 1);
}

// Reduces count buffers, in order.
template <class T, class Op, int most>
DEVICE void reduceBytes(const char *const (&from)[most], int count, char *to, u64 bytes, bool last) {
  constexpr int batch = most > 2 ? 1 : unroll;
  u64 places = reinterpret_cast<u64>(to), whole = 0;
  UNROLLED for (int r = 0; r < most; r++)
    if (r < count) places |= reinterpret_cast<u64>(from[r]);
  if (places % 16 == 0) {
    whole = bytes / 16 * 16;
    const u32 units = u32(whole / 16);
    ROLLED for (u32 i = threadIdx.x; i < units; i += batch * blockDim.x) {
      Quad v[batch][most];
      UNROLLED for (int b = 0; b < batch; b++)
        UNROLLED for (int r = 0; r < most; r++)
          if (r < count && i + b * blockDim.x < units) v[b][r] = load(packs(from[r]) + i + b * blockDim.x);
      UNROLLED for (int b = 0; b < batch; b++) {
        Reduction<T, Op> x, y;
        x.start(v[b][0].x), y.start(v[b][0].y);
        UNROLLED for (int r = 1; r < most; r++)
          if (r < count) x.add(v[b][r].x), y.add(v[b][r].y);
        if (i + b * blockDim.x < units) store(packs(to) + i + b * blockDim.x, {x.finish(last), y.finish(last)});
      }
    }
  }
  ROLLED for (u64 at = whole + threadIdx.x * sizeof(T); at < bytes; at += blockDim.x * sizeof(T)) {
    typename Number<T>::Wide sum = Number<T>::widen(*reinterpret_cast<const T *>(from[0] + at));
    UNROLLED for (int r = 1; r < most; r++)
      if (r < count) sum = Op::of(sum, Number<T>::widen(*reinterpret_cast<const T *>(from[r] + at)));
    *reinterpret_cast<T *>(to + at) = Number<T>::narrow(last ? Op::finish(sum) : sum);
  }
}

// Shares go into their owners' scratch, who reduce them with their own: ReduceScatter,
// and Reduce, of which the root owns all.
template <class T, class Op> DEVICE void collectShares(const Shares &s) {
  const Args &a = s.args;
  Flags flags(a);
  const auto slot = [&](int owner, int sender) { // none for the owner's own
    return a.region[owner] + a.inbox + u64(sender - (sender > owner)) * a.capacity * 16;
  };
  ROLLED for (u32 round = 0; round <= a.rounds; round++) { // reduces a round behind
    if (round < a.rounds) {
      ROLLED for (int k = 1; k < ranks(); k++) {
        if (!a.input[peer(k)]) continue;
        const auto part = s.part(round, peer(k));
        copyBytes(a.input[peer(k)] + part.begin, slot(peer(k), rank()) + part.begin, nullptr, part.bytes);
      }
      flags.signal(0, round + 1);
    }
    if (round == 0 || !a.output[rank()]) continue;
    flags.await(0, round);
    const auto part = s.part(round - 1, rank());
    const char *from[maxRanks];
    UNROLLED for (int r = 0; r < maxRanks; r++)
      if (r < ranks()) from[r] = (r == rank() ? a.input[r] : slot(rank(), r)) + part.begin;
    reduceBytes<T, Op>(from, ranks(), a.output[rank()] + part.begin, part.bytes, true);
  }
  flags.signal(1, a.rounds);
  flags.await(1, a.rounds);
  flags.close(a.rounds);
}

// Reduce on a chain: each rank adds its own to what its source has put into its
// scratch, round by round, and puts that into the scratch of the next; the root is
// the last.
template <class T, class Op> DEVICE void collectChain(const Shares &s) {
  const Args &a = s.args;
  Flags flags(a);
  const int source = int(s.source), next = rank() + 1 < ranks() ? rank() + 1 : 0;
  char *scratch = a.region[rank()] + a.inbox, *to = s.passed ? a.region[next] + a.inbox : a.output[rank()];
  ROLLED for (u32 round = 0; round < a.rounds; round++) {
    const auto part = s.part(round, rank());
    const char *own = a.input[rank()] + part.begin;
    if (source < ranks()) {
      flags.awaitFrom(source, 0, round + 1);
      const char *const from[2] = {scratch + part.begin, own};
      reduceBytes<T, Op>(from, 2, to + part.begin, part.bytes, !s.passed);
    } else {
      copyBytes(own, to + part.begin, nullptr, part.bytes);
    }
    if (s.passed) flags.signal(0, round + 1);
  }
  flags.signal(1, a.rounds);
  flags.await(1, a.rounds);
  flags.close(a.rounds);
}
