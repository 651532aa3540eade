// What the wires carry: stores to peers, loads from them, bulk copies, and flags.
#pragma once
#include "direct.cuh"

// Stores units packs of the own input into the output of each of rounds peers.
// Blocks take peers in turn, so that all are served at once.
DEVICE void probeStores(const Args &a) {
  const u32 group = blockIdx.x / a.rounds, groups = gridDim.x / a.rounds;
  const Quad *from = packs(a.input[rank()]);
  Quad *to = packs(a.output[peer(1 + blockIdx.x % a.rounds)]);
  const u32 stride = groups * blockDim.x;
  ROLLED for (u32 i = group * blockDim.x + threadIdx.x; i < a.units; i += unroll * stride) {
    Quad v[unroll];
    UNROLLED for (int u = 0; u < unroll; u++)
      if (i + u * stride < a.units) v[u] = load(from + i + u * stride);
    UNROLLED for (int u = 0; u < unroll; u++)
      if (i + u * stride < a.units) store(to + i + u * stride, v[u]);
  }
}

// Loads units packs from the input of each of rounds peers.
DEVICE void probeLoads(const Args &a) {
  const u32 group = blockIdx.x / a.rounds, groups = gridDim.x / a.rounds;
  const Quad *from = packs(a.input[peer(1 + blockIdx.x % a.rounds)]);
  const u32 stride = groups * blockDim.x;
  Quad sum = {};
  ROLLED for (u32 i = group * blockDim.x + threadIdx.x; i < a.units; i += unroll * stride) {
    UNROLLED for (int u = 0; u < unroll; u++)
      if (i + u * stride < a.units) {
        const Quad v = load(from + i + u * stride);
        sum.x ^= v.x, sum.y ^= v.y;
      }
  }
  if (sum.x == 1 && sum.y == 2) store(packs(a.output[rank()]), sum); // so that the loads are not in vain
}

// As probeStores by bulk copies through shared memory (TMA), chunk bytes each, which
// one thread of a block queues.
DEVICE void probeBulk(const Args &a) {
  constexpr u32 room = 40 << 10, most = 8;
  __shared__ __attribute__((aligned(128))) char tiles[room];
  __shared__ u64 full[most];
  if (threadIdx.x > 0) return;
  const u32 tile = a.chunk, stages = lower(most, room / tile);
  const u32 group = blockIdx.x / a.rounds, groups = gridDim.x / a.rounds;
  const char *from = a.input[rank()];
  char *to = a.output[peer(1 + blockIdx.x % a.rounds)];
  const u32 all = (a.units * 16 + tile - 1) / tile, mine = group < all ? (all - group + groups - 1) / groups : 0;
  const u32 shared = inShared(tiles), barriers = inShared(full);
  Patience patience(a);
  const auto begin = [&](u32 n) { return u64(group + n * groups) * tile; };
  const auto bytes = [&](u32 n) { return u32(begin(n) + tile <= u64(a.units) * 16 ? tile : u64(a.units) * 16 - begin(n)); };
  const auto fetch = [&](u32 n) {
    const u32 stage = n % stages;
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barriers + stage * 8), "r"(bytes(n)) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 ::"r"(shared + stage * tile), "l"(from + begin(n)), "r"(bytes(n)), "r"(barriers + stage * 8) : "memory");
  };
  for (u32 stage = 0; stage < stages; stage++) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barriers + stage * 8) : "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  for (u32 n = 0; n + 1 < stages && n < mine; n++) fetch(n);
  for (u32 n = 0; n < mine; n++) {
    u32 ready = 0;
    while (!ready && patience.more())
      asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                   : "=r"(ready) : "r"(barriers + n % stages * 8), "r"(n / stages % 2) : "memory");
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
                 ::"l"(to + begin(n)), "r"(shared + n % stages * tile), "r"(bytes(n)) : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory"); // the tile before has left
    if (n + stages - 1 < mine) fetch(n + stages - 1);
  }
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

// Sends a flag to and fro between the first rank and the one of number units,
// rounds times.
DEVICE void probeFlags(const Args &a) {
  const int other = rank() == 0 ? int(a.units) : 0;
  Patience patience(a);
  const u32 base = a.control(rank()).epoch[maxBlocks - 1];
  a.control(rank()).epoch[maxBlocks - 1] = base + a.rounds;
  if (rank() != 0 && rank() != int(a.units)) return;
  const u32 *in = &a.control(rank()).flag[1][maxBlocks - 1][other];
  u32 *out = &a.control(other).flag[1][maxBlocks - 1][rank()];
  ROLLED for (u32 i = 1; i <= a.rounds; i++) {
    if (rank() == 0) putRelaxed(out, base + i);
    while (getRelaxed(in) != base + i && patience.more()) {
    }
    if (rank() != 0) putRelaxed(out, base + i);
  }
}
