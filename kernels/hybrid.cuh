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

// Reduces the buffers in input, one for each rank and all of them local, into the
// own output.
template <class T, class Op> DEVICE void combine(const Args &a) {
  const u32 stride = gridDim.x * blockDim.x;
  ROLLED for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < a.units; i += unroll * stride) {
    Quad v[unroll][maxRanks];
    UNROLLED for (int u = 0; u < unroll; u++)
      UNROLLED for (int r = 0; r < maxRanks; r++)
        if (r < ranks() && i + u * stride < a.units) v[u][r] = load(packs(a.input[r]) + i + u * stride);
    UNROLLED for (int u = 0; u < unroll; u++) {
      Reduction<T, Op> x, y;
      x.start(v[u][0].x), y.start(v[u][0].y);
      UNROLLED for (int r = 1; r < maxRanks; r++)
        if (r < ranks()) x.add(v[u][r].x), y.add(v[u][r].y);
      const Quad result = {x.finish(), y.finish()};
      if (i + u * stride < a.units) store(packs(a.output[rank()]) + i + u * stride, result);
    }
  }
}
