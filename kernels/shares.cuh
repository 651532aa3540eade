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
  u32 source;          // whose shares are passed on: a rank, or ranks() for nobody's
  u32 padding;

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

// Shares go straight into the outputs: AllGather, AllToAll, SendRecv, Exchange, and
// Broadcast in two shots, in which the source deals a share to each other rank, and
// these pass their shares on, round by round behind it.
DEVICE void deliverShares(const Shares &s) {
  const Args &a = s.args;
  Flags flags(a);
  flags.signal(0, 1); // the own output may be written
  const int source = int(s.source);
  if (a.input[rank()] && source != rank())
    ROLLED for (u32 round = 0; round < a.rounds; round++) {
      const auto part = s.part(round, rank());
      copyBytes(a.input[rank()] + part.begin, a.output[rank()] + part.begin, nullptr, part.bytes);
    }
  flags.await(0, 1);
  ROLLED for (u32 round = 0; round < a.rounds; round++) {
    if (source < ranks() && source != rank()) flags.awaitFrom(source, 0, round + 2);
    ROLLED for (int k = 1; k < ranks(); k++) {
      const char *from = a.input[peer(k)];
      if (!from) continue;
      const auto part = s.part(round, peer(k));
      char *keep = nullptr; // the source has all itself in the end
      if (source == rank() && a.output[rank()]) keep = a.output[rank()] + (from - a.input[rank()]) + part.begin;
      copyBytes(from + part.begin, a.output[peer(k)] + part.begin, keep, part.bytes);
    }
    if (source == rank()) flags.signal(0, round + 2);
  }
  flags.signal(1, a.rounds + 1);
  flags.await(1, a.rounds + 1);
  flags.close(a.rounds + 1);
}

// Shares go into their owners' scratch, who reduce them with their own: to
// ReduceScatter; and to Reduce, where all but the root own a share and put the
// result into the root's output. They do so when it would be the root's turn to
// get a share, so that here too no two ranks serve the same.
template <class T, class Op> DEVICE void collectShares(const Shares &s) {
  const Args &a = s.args;
  Flags flags(a);
  const auto slot = [&](int owner, int sender) { // none for the owner's own
    return a.region[owner] + a.inbox + u64(sender - (sender > owner)) * a.capacity * 16;
  };
  const auto combine = [&](u32 round) {
    const auto part = s.part(round, rank());
    const char *own = a.input[rank()] + part.begin, *from[maxRanks];
    UNROLLED for (int r = 0; r < maxRanks; r++)
      if (r < ranks()) from[r] = r == rank() ? own : slot(rank(), r) + part.begin;
    char *to = a.output[rank()] + part.begin;
    u64 whole = 0;
    if ((reinterpret_cast<u64>(own) | reinterpret_cast<u64>(to)) % 16 == 0) {
      whole = part.bytes / 16 * 16;
      ROLLED for (u64 at = threadIdx.x * 16; at < whole; at += blockDim.x * 16) {
        Quad v[maxRanks];
        UNROLLED for (int r = 0; r < maxRanks; r++)
          if (r < ranks()) v[r] = load(packs(from[r] + at));
        Reduction<T, Op> x, y;
        x.start(v[0].x), y.start(v[0].y);
        UNROLLED for (int r = 1; r < maxRanks; r++)
          if (r < ranks()) x.add(v[r].x), y.add(v[r].y);
        store(packs(to + at), {x.finish(), y.finish()});
      }
    }
    ROLLED for (u64 at = whole + threadIdx.x * sizeof(T); at < part.bytes; at += blockDim.x * sizeof(T)) {
      typename Number<T>::Wide sum = Number<T>::widen(*reinterpret_cast<const T *>(from[0] + at));
      UNROLLED for (int r = 1; r < maxRanks; r++)
        if (r < ranks()) sum = Op::of(sum, Number<T>::widen(*reinterpret_cast<const T *>(from[r] + at)));
      *reinterpret_cast<T *>(to + at) = Number<T>::narrow(Op::finish(sum));
    }
  };
  ROLLED for (u32 round = 0; round <= a.rounds; round++) {
    bool due = round > 0 && a.output[rank()];
    ROLLED for (int k = 1; k <= ranks(); k++) {
      if (k < ranks() && a.input[peer(k)]) {
        if (round == a.rounds) continue;
        const auto part = s.part(round, peer(k));
        copyBytes(a.input[peer(k)] + part.begin, slot(peer(k), rank()) + part.begin, nullptr, part.bytes);
      } else if (due) {
        flags.await(0, round);
        combine(round - 1);
        due = false;
      }
    }
    if (round < a.rounds) flags.signal(0, round + 1);
  }
  flags.signal(1, a.rounds);
  flags.await(1, a.rounds);
  flags.close(a.rounds);
}
