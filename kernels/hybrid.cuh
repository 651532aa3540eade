// The kernels' part in collectives by copy engines: these deliver data as it is, or
// scatter pieces of the input to their owners, which reduce them, and gather the results.
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
// output, once every rank has come here with its stream; and pushes the result into the
// outputs of all.
template <class T, class Op, bool push> DEVICE void combine(const Args &a) {
  Flags flags(a);
  flags.signal(0, 1);
  flags.await(0, 1);
  constexpr int some = 2;
  const u32 begin = a.stripeBegin(), end = begin + a.stripeUnits(a.units), threads = blockDim.x;
  Quad *own = packs(a.output[rank()]), *next = packs(a.output[peer(1)]);
  ROLLED for (u32 i = begin + threadIdx.x; i < end; i += some * threads) {
    Quad v[some][maxRanks];
    UNROLLED for (int u = 0; u < some; u++)
      UNROLLED for (int r = 0; r < maxRanks; r++)
        if (r < ranks() && i + u * threads < end) v[u][r] = load(packs(a.input[r]) + i + u * threads);
    UNROLLED for (int u = 0; u < some; u++) {
      Reduction<T, Op> x, y;
      x.start(v[u][0].x), y.start(v[u][0].y);
      UNROLLED for (int r = 1; r < maxRanks; r++)
        if (r < ranks()) x.add(v[u][r].x), y.add(v[u][r].y);
      if (i + u * threads >= end) continue;
      const Quad result = {x.finish(), y.finish()};
      store(own + i + u * threads, result);
      if (push) store(next + i + u * threads, result);
    }
  }
  if (push) {
    ROLLED for (int k = 2; k < ranks(); k++) copyPacks(own, packs(a.output[peer(k)]), begin, end);
    flags.signal(1, 1);
    flags.await(1, 1);
  }
  flags.close(1);
}
