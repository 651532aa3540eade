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
  u32 source;          // on a chain, the rank before, or ranks() for none
  u32 passed;          // on a chain, whether there is a rank behind

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

template <class Unit> DEVICE void copyUnits(const char *from, char *to, u64 bytes) {
  const u32 units = u32(bytes / sizeof(Unit));
  ROLLED for (u32 i = threadIdx.x; i < units; i += unroll * blockDim.x) {
    Unit v[unroll];
    UNROLLED for (int u = 0; u < unroll; u++)
      if (i + u * blockDim.x < units) load(v[u], reinterpret_cast<const Unit *>(from) + i + u * blockDim.x);
    UNROLLED for (int u = 0; u < unroll; u++)
      if (i + u * blockDim.x < units) store(reinterpret_cast<Unit *>(to) + i + u * blockDim.x, v[u]);
  }
}

// Copies bytes in the largest units that all places are multiples of.
DEVICE void copyBytes(const char *from, char *to, u64 bytes) {
  const u64 places = reinterpret_cast<u64>(from) | reinterpret_cast<u64>(to);
  u64 whole = 0;
  if (places % 16 == 0) {
    whole = bytes / 16 * 16;
    copyUnits<Quad>(from, to, whole);
  } else if (places % 4 == 0) {
    whole = bytes / 4 * 4;
    copyUnits<u32>(from, to, whole);
  }
  copyUnits<char>(from + whole, to + whole, bytes - whole);
}

// Shares go straight into the outputs: AllGather, AllToAll, SendRecv and Exchange.
DEVICE void deliverShares(const Shares &s) {
  const Args &a = s.args;
  Flags flags(a);
  flags.signal(0, 1); // the own output may be written
  const auto deliver = [&](int r, u32 round) {
    if (!a.input[r]) return;
    const auto part = s.part(round, r);
    copyBytes(a.input[r] + part.begin, a.output[r] + part.begin, part.bytes);
  };
  ROLLED for (u32 round = 0; round < a.rounds; round++) deliver(rank(), round);
  flags.await(0, 1);
  ROLLED for (u32 round = 0; round < a.rounds; round++)
    ROLLED for (int k = 1; k < ranks(); k++) deliver(peer(k), round);
  flags.signal(1, 1);
  flags.await(1, 1);
  flags.close(1);
}

// Reduces a buffer of each rank, in order; a thread loads batch packs of each at a time. Of
// several blocks that share the work this is one.
template <class T, class Op, int batch>
DEVICE void reduceBytes(const char *const (&from)[maxRanks], char *to, u64 bytes, u32 block, u32 blocks) {
  u64 places = reinterpret_cast<u64>(to), whole = 0;
  UNROLLED for (int r = 0; r < maxRanks; r++)
    if (r < ranks()) places |= reinterpret_cast<u64>(from[r]);
  if (places % 16 == 0) {
    whole = bytes / 16 * 16;
    const u32 units = u32(whole / 16);
    ROLLED for (u32 i = block * batch * blockDim.x + threadIdx.x; i < units; i += blocks * batch * blockDim.x) {
      Quad v[batch][maxRanks];
      UNROLLED for (int b = 0; b < batch; b++)
        UNROLLED for (int r = 0; r < maxRanks; r++)
          if (r < ranks() && i + b * blockDim.x < units) v[b][r] = load(packs(from[r]) + i + b * blockDim.x);
      UNROLLED for (int b = 0; b < batch; b++) {
        Reduction<T, Op> x, y;
        x.start(v[b][0].x), y.start(v[b][0].y);
        UNROLLED for (int r = 1; r < maxRanks; r++)
          if (r < ranks()) x.add(v[b][r].x), y.add(v[b][r].y);
        if (i + b * blockDim.x < units) store(packs(to) + i + b * blockDim.x, {x.finish(), y.finish()});
      }
    }
  }
  ROLLED for (u64 at = whole + (block * blockDim.x + threadIdx.x) * sizeof(T); at < bytes; at += blocks * blockDim.x * sizeof(T)) {
    typename Number<T>::Wide sum = Number<T>::widen(*reinterpret_cast<const T *>(from[0] + at));
    UNROLLED for (int r = 1; r < maxRanks; r++)
      if (r < ranks()) sum = Op::of(sum, Number<T>::widen(*reinterpret_cast<const T *>(from[r] + at)));
    *reinterpret_cast<T *>(to + at) = Number<T>::narrow(Op::finish(sum));
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
        copyBytes(a.input[peer(k)] + part.begin, slot(peer(k), rank()) + part.begin, part.bytes);
      }
      flags.signal(0, round + 1);
    }
    if (round == 0 || !a.output[rank()]) continue;
    flags.await(0, round);
    const auto part = s.part(round - 1, rank());
    const char *from[maxRanks];
    UNROLLED for (int r = 0; r < maxRanks; r++)
      if (r < ranks()) from[r] = (r == rank() ? a.input[r] : slot(rank(), r)) + part.begin;
    reduceBytes<T, Op, 1>(from, a.output[rank()] + part.begin, part.bytes, 0, 1);
  }
  flags.signal(1, a.rounds);
  flags.await(1, a.rounds);
  flags.close(a.rounds);
}

// Owners load what they reduce: Reduce on two ranks, whose root sends nothing. Of the
// args, input says where the share of this rank begins on each rank.
template <class T, class Op> DEVICE void collectPull(const Shares &s) {
  const Args &a = s.args;
  Flags flags(a);
  flags.signal(0, 1); // the own input may be read
  flags.await(0, 1);
  if (a.output[rank()]) {
    const char *from[maxRanks];
    UNROLLED for (int r = 0; r < maxRanks; r++)
      if (r < ranks()) from[r] = a.input[r];
    reduceBytes<T, Op, 2>(from, a.output[rank()], s.bytes[rank()], blockIdx.x, gridDim.x); // by turns: rounds cost 4 %
  }
  flags.signal(1, 1);
  flags.await(1, 1);
  flags.close(1);
}
