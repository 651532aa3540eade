// The kernels' part in AllReduce by copy engines: these scatter pieces of the
// input to their owners and gather the results.
#pragma once
#include "direct.cuh"

// Waits until every rank has come here with its stream. What the copies before it
// wrote is there then.
DEVICE void barrier(const Args &a) {
  Flags flags(a);
  flags.signal(0, 1);
  flags.await(0, 1);
  flags.close(1);
}

// Reduces the buffers in input, one for each rank and all of them local, into the own
// output, once every rank has come here with its stream. The first extra blocks have
// the first chunk units and store them into the outputs of all.
template <class T, class Op> DEVICE void combine(const Args &a) {
  Flags flags(a);
  flags.signal(0, 1);
  flags.await(0, 1);
  const bool push = blockIdx.x < a.extra;
  const u32 block = push ? blockIdx.x : blockIdx.x - a.extra, blocks = push ? a.extra : gridDim.x - a.extra;
  const u32 first = push ? 0 : a.chunk, last = push ? a.chunk : a.units;
  const u32 stripe = (last - first + blocks - 1) / blocks, begin = first + block * stripe, end = lower(begin + stripe, last);
  Quad *own = packs(a.output[rank()]), *next = packs(a.output[peer(1)]);
  constexpr int some = 2;
  ROLLED for (u32 i = begin + threadIdx.x; i < end; i += some * blockDim.x) {
    Quad v[some][maxRanks];
    UNROLLED for (int u = 0; u < some; u++)
      UNROLLED for (int r = 0; r < maxRanks; r++)
        if (r < ranks() && i + u * blockDim.x < end) v[u][r] = load(packs(a.input[r]) + i + u * blockDim.x);
    UNROLLED for (int u = 0; u < some; u++) {
      Reduction<T, Op> x, y;
      x.start(v[u][0].x), y.start(v[u][0].y);
      UNROLLED for (int r = 1; r < maxRanks; r++)
        if (r < ranks()) x.add(v[u][r].x), y.add(v[u][r].y);
      const Quad result = {x.finish(), y.finish()};
      if (i + u * blockDim.x >= end) continue;
      store(own + i + u * blockDim.x, result);
      if (push) store(next + i + u * blockDim.x, result);
    }
  }
  if (push)
    ROLLED for (int k = 2; k < ranks(); k++) {
      Quad *to = packs(a.output[peer(k)]);
      ROLLED for (u32 i = begin + threadIdx.x; i < end; i += unroll * blockDim.x) {
        Quad v[unroll];
        UNROLLED for (int u = 0; u < unroll; u++)
          if (i + u * blockDim.x < end) v[u] = load(own + i + u * blockDim.x);
        UNROLLED for (int u = 0; u < unroll; u++)
          if (i + u * blockDim.x < end) store(to + i + u * blockDim.x, v[u]);
      }
    }
  if (a.rounds > 0) { // nothing comes after
    flags.signal(1, 1);
    flags.await(1, 1);
  }
  flags.close(1);
}
