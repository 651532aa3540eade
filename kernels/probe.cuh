// What the wires carry: plain stores to peers, loads from them, and flags.
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
