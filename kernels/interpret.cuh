// Runs any schedule: a block is a worker, and goes through the moves that package
// cuda has made of the worker's steps.
#pragma once
#include "direct.cuh"
#include "line.cuh"

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
  static constexpr bool finish = true; // which means nothing but to averages
};
static_assert(sizeof(Move) == 456, "package cuda lays out the same");

// AverageMove says whether the result is that of all ranks, and to be divided.
struct AverageMove : Move {
  u32 finish, padding;
};
static_assert(sizeof(AverageMove) == 464, "package cuda lays out the same");
template <class Op> struct MoveOf { using Type = Move; };
template <> struct MoveOf<Avg> { using Type = AverageMove; };

// Lines is what a move over LL or LL128 takes from or puts into: lines in a slot,
// or bytes of a buffer, which has no taken. The epoch of an item, its number over
// all calls, is the flag in its lines and what taken comes to once it was read; a
// writer may be that many items behind.
struct Lines {
  char *at;
  u32 *taken;
  u32 item, each, behind, padding;
  DEVICE u32 epoch(u32 call) const { return item + call * each; }
};

// LineMove is a move with flags in the data of its lines.
struct LineMove {
  u64 bytes;
  Lines source[maxPorts], target[maxPorts];
  u32 sources, targets, finish, padding;
};
static_assert(sizeof(LineMove) == 600, "package cuda lays out the same");

// Worker is what a block has to do, and how many calls it has served.
struct Worker {
  const Move *moves; // of the kernel's kind
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
  using M = typename MoveOf<Op>::Type;
  __shared__ M move;
  for (u32 m = 0; m < worker.count; m++) {
    for (u32 i = thread; i < sizeof(M) / 8; i += threads)
      reinterpret_cast<u64 *>(&move)[i] = reinterpret_cast<const u64 *>(reinterpret_cast<const M *>(worker.moves) + m)[i];
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
            if (i + u * threads < packCount) store(packs(move.target[t]) + i + u * threads, {x[u].finish(move.finish), y[u].finish(move.finish)});
      }
    } else {
      for (u64 i = thread; i < move.bytes / sizeof(T); i += threads) {
        typename Number<T>::Wide sum = {};
        for (u32 s = 0; s < move.sources; s++) {
          const auto v = Number<T>::widen(reinterpret_cast<const T *>(move.source[s])[i]);
          sum = s == 0 ? v : Op::of(sum, v);
        }
        for (u32 t = 0; t < move.targets; t++) reinterpret_cast<T *>(move.target[t])[i] = Number<T>::narrow(move.finish ? Op::finish(sum) : sum);
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

// A word of a buffer that begins at any element and may end inside the word.
template <class T> DEVICE u64 gather(const char *buffer, u64 bytes, u64 word) {
  if (reinterpret_cast<u64>(buffer) % 8 == 0) return getWord(buffer, bytes, word);
  T e[8 / sizeof(T)] = {};
  UNROLLED for (u32 i = 0; i < 8 / sizeof(T); i++)
    if (word * 8 + i * sizeof(T) < bytes) e[i] = reinterpret_cast<const T *>(buffer + word * 8)[i];
  u64 w;
  __builtin_memcpy(&w, e, 8);
  return w;
}
template <class T> DEVICE void scatter(char *buffer, u64 bytes, u64 word, u64 w) {
  if (reinterpret_cast<u64>(buffer) % 8 == 0) return setWord(buffer, bytes, word, w);
  T e[8 / sizeof(T)];
  __builtin_memcpy(e, &w, 8);
  UNROLLED for (u32 i = 0; i < 8 / sizeof(T); i++)
    if (word * 8 + i * sizeof(T) < bytes) reinterpret_cast<T *>(buffer + word * 8)[i] = e[i];
}

// The same over LL or LL128: a warp carries a line at a time from the sources to the
// targets, and waits for each line by itself, so that lines of a move overlap.
template <class T, class Op, class Line> DEVICE void interpretLines(const Program &p) {
  Patience patience(p.args);
  awaitTurn();
  patience.over = getRelaxed(&p.args.control(rank()).stop);
  Worker &worker = p.workers[blockIdx.x];
  const u32 call = worker.calls, thread = threadIdx.x, threads = blockDim.x, lane = thread % 32;
  __shared__ LineMove move;
  for (u32 m = 0; m < worker.count; m++) {
    for (u32 i = thread; i < sizeof(move) / 8; i += threads)
      reinterpret_cast<u64 *>(&move)[i] = reinterpret_cast<const u64 *>(reinterpret_cast<const LineMove *>(worker.moves) + m)[i];
    __syncthreads();
    if (thread < move.targets && move.target[thread].taken) {
      const Lines &to = move.target[thread];
      while (int(getAcquire(to.taken) - (to.epoch(call) - to.behind)) < 0 && patience.more()) {
      }
    }
    __syncthreads();
    const u32 lines = u32((move.bytes + Line::words * 8 - 1) / (Line::words * 8));
    ROLLED for (u32 i = thread / 32; i < lines; i += threads / 32) {
      const u64 place = u64(i) * lineBytes + lane * 16;
      const auto word = [&](int j) { return u64(i) * Line::words + Line::place(lane, j); };
      Reduction<T, Op> sum[Line::perLane];
      ROLLED for (u32 s = 0; s < move.sources; s++) {
        const Lines &from = move.source[s];
        u64 w[Line::perLane];
        if (from.taken) {
          Pack v; // lanes that lost patience vote on, so that a warp stays together
          do Line::meet(), v = getPack(from.at + place);
          while (!inAllLanes(Line::sealed(v, lane, from.epoch(call)) || !patience.more()));
          Line::open(v, w);
        } else {
          UNROLLED for (int j = 0; j < Line::perLane; j++)
            w[j] = Line::has(lane, j) ? gather<T>(from.at, move.bytes, word(j)) : 0;
        }
        UNROLLED for (int j = 0; j < Line::perLane; j++)
          if (s == 0) sum[j].start(w[j]);
          else sum[j].add(w[j]);
      }
      u64 w[Line::perLane];
      UNROLLED for (int j = 0; j < Line::perLane; j++) w[j] = sum[j].finish(move.finish);
      ROLLED for (u32 t = 0; t < move.targets; t++) {
        const Lines &to = move.target[t];
        if (to.taken) {
          Line::meet();
          putPack(to.at + place, Line::seal(w, to.epoch(call)));
        } else {
          UNROLLED for (int j = 0; j < Line::perLane; j++)
            if (Line::has(lane, j)) scatter<T>(to.at, move.bytes, word(j), w[j]);
        }
      }
    }
    __syncthreads();
    if (thread < move.sources && move.source[thread].taken) putRelease(move.source[thread].taken, move.source[thread].epoch(call));
    __syncthreads(); // all is read before the next move lies there
  }
  if (thread == 0) worker.calls = call + 1;
}
