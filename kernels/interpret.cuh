// Runs any schedule: a block is a worker, and goes through the moves that package
// cuda has made of the worker's steps.
#pragma once
#include "direct.cuh"

constexpr int maxPorts = maxRanks + 1; // a port for each peer, and a buffer of the own rank

// Wait is a counter to wait for, and Post one to set. Over all calls it has come
// to before + call * each.
struct Count {
  u32 *flag;
  u32 before, each;
};

// Move takes elements from up to maxPorts places, reduces them in that order and
// puts the result into up to maxPorts places.
struct Move {
  u64 bytes;
  const char *source[maxPorts];
  char *target[maxPorts];
  Count wait[maxPorts], post[maxPorts];
  u32 sources, targets, waits, posts;
};
static_assert(sizeof(Move) == 456, "package cuda lays out the same");

// Worker is what a block has to do, and how many calls it has served.
struct Worker {
  const Move *moves;
  u32 count, calls;
};

// Program is the parameters of the interpreter. The args' region, fault, timeout
// are used.
struct Program {
  Args args;
  Worker *workers;
};

template <class T, class Op> DEVICE void interpret(const Program &p) {
  Patience patience(p.args);
  awaitTurn();
  patience.over = getRelaxed(&p.args.control(rank()).stop);
  Worker &worker = p.workers[blockIdx.x];
  const u32 call = worker.calls, thread = threadIdx.x, threads = blockDim.x;
  __shared__ Move move;
  for (u32 m = 0; m < worker.count; m++) {
    for (u32 i = thread; i < sizeof(Move) / 8; i += threads)
      reinterpret_cast<u64 *>(&move)[i] = reinterpret_cast<const u64 *>(worker.moves + m)[i];
    __syncthreads();
    if (thread < move.waits) {
      const Count &c = move.wait[thread];
      while (int(getAcquire(c.flag) - (c.before + call * c.each)) < 0 && patience.more()) {
      }
    }
    __syncthreads();
    u64 places = move.bytes;
    for (u32 s = 0; s < move.sources; s++) places |= reinterpret_cast<u64>(move.source[s]);
    for (u32 t = 0; t < move.targets; t++) places |= reinterpret_cast<u64>(move.target[t]);
    if (places % 16 == 0) {
      const u32 packCount = u32(move.bytes / 16);
      for (u32 i = thread; i < packCount; i += unroll * threads) {
        Reduction<T, Op> x[unroll], y[unroll];
        for (u32 s = 0; s < move.sources; s++) {
          const Quad *from = packs(move.source[s]);
          Quad v[unroll];
          UNROLLED for (int u = 0; u < unroll; u++)
            if (i + u * threads < packCount) v[u] = load(from + i + u * threads);
          UNROLLED for (int u = 0; u < unroll; u++) {
            if (s == 0) {
              x[u].start(v[u].x), y[u].start(v[u].y);
            } else {
              x[u].add(v[u].x), y[u].add(v[u].y);
            }
          }
        }
        for (u32 t = 0; t < move.targets; t++)
          UNROLLED for (int u = 0; u < unroll; u++)
            if (i + u * threads < packCount) store(packs(move.target[t]) + i + u * threads, {x[u].finish(), y[u].finish()});
      }
    } else {
      for (u64 i = thread; i < move.bytes / sizeof(T); i += threads) {
        typename Number<T>::Wide sum = {};
        for (u32 s = 0; s < move.sources; s++) {
          const auto v = Number<T>::widen(reinterpret_cast<const T *>(move.source[s])[i]);
          sum = s == 0 ? v : Op::of(sum, v);
        }
        for (u32 t = 0; t < move.targets; t++) reinterpret_cast<T *>(move.target[t])[i] = Number<T>::narrow(sum);
      }
    }
    __syncthreads();
    if (thread < move.posts) {
      const Count &c = move.post[thread];
      putRelease(c.flag, c.before + call * c.each);
    }
    __syncthreads(); // the posts are read before the next move lies there
  }
  if (thread == 0) worker.calls = call + 1;
}
