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

// Reader hands out a worker's moves, one after the other. A move is loaded while the
// one before is carried out. Two lie in shared memory: threads may still look at one
// when others turn to the next.
template <class M> struct Pages { M of[2]; };
template <class M> struct Reader {
  static constexpr u32 words = sizeof(M) / 8;
  const u64 *moves;
  const u32 count;
  u64 next = 0; // this thread's word of the next move

  DEVICE explicit Reader(const Worker &w) : moves(reinterpret_cast<const u64 *>(w.moves)), count(w.count) { fetch(0); }
  // Puts the m-th move into its page, which the threads that move data see once they
  // have met.
  DEVICE void turn(Pages<M> &pages, u32 m) {
    if (threadIdx.x < words) reinterpret_cast<u64 *>(&pages.of[m % 2])[threadIdx.x] = next;
    fetch(m + 1);
  }

private:
  DEVICE void fetch(u32 m) {
    if (threadIdx.x < words && m < count) next = moves[m * words + threadIdx.x];
  }
};

// Carries out a move by the first threads of a block.
template <class T, class Op, class M> DEVICE void carry(const M &move, u32 threads) {
  u64 places = move.bytes;
  for (u32 s = 0; s < move.sources; s++) places |= reinterpret_cast<u64>(move.source[s]);
  for (u32 t = 0; t < move.targets; t++) places |= reinterpret_cast<u64>(move.target[t]);
  if (places % 16 == 0) {
    const u32 packCount = u32(move.bytes / 16);
    for (u32 i = threadIdx.x; i < packCount; i += unroll * threads) {
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
    return;
  }
  for (u64 i = threadIdx.x; i < move.bytes / sizeof(T); i += threads) {
    typename Number<T>::Wide sum = {};
    for (u32 s = 0; s < move.sources; s++) {
      const auto v = Number<T>::widen(reinterpret_cast<const T *>(move.source[s])[i]);
      sum = s == 0 ? v : Op::of(sum, v);
    }
    for (u32 t = 0; t < move.targets; t++) reinterpret_cast<T *>(move.target[t])[i] = Number<T>::narrow(move.finish ? Op::finish(sum) : sum);
  }
}

// The last warp of a block posts what the others have moved: a release waits until all
// that was stored has arrived, and meanwhile the others go on with the next move.
template <class T, class Op> DEVICE void interpret(const Program &p) {
  Patience patience(p.args);
  awaitTurn();
  patience.over = getRelaxed(&p.args.control(rank()).stop);
  Worker &worker = p.workers[blockIdx.x];
  const u32 call = worker.calls, thread = threadIdx.x, all = blockDim.x, threads = all - 32;
  enum : u32 { moving = 1, moved = 2, posted = 4 }; // barriers; of the last two there is one for each page
  using M = typename MoveOf<Op>::Type;
  __shared__ Pages<M> pages;
  Reader<M> reader(worker);
  for (u32 m = 0; m < reader.count; m++) {
    const M &move = pages.of[m % 2];
    if (thread >= threads) {
      meet(moved + m % 2, all);
      if (thread - threads < move.posts) {
        const Count &c = move.post[thread - threads];
        putRelease(c.flag, c.before + call * c.each);
      }
      if (m + 2 < reader.count) arrive(posted + m % 2, all);
      continue;
    }
    if (m >= 2) meet(posted + m % 2, all);
    reader.turn(pages, m);
    meet(moving, threads);
    if (thread < move.waits) {
      const Count &c = move.wait[thread];
      while (int(getAcquire(c.flag) - (c.before + call * c.each)) < 0 && patience.more()) {
      }
    }
    meet(moving, threads);
    carry<T, Op>(move, threads);
    arrive(moved + m % 2, all);
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

// Carries some lines of a move, one behind the other, from its sources to its targets
// by a warp, and waits for all of them at once. Whole lines lie in buffers at multiples
// of Line::align and do not end inside one.
template <class T, class Op, class Line, int some, bool whole> struct Carrier {
  const LineMove &move;
  Patience &patience;
  const u32 call, lane = threadIdx.x % 32;
  using Words = u64[some][Line::perLane];

  // Carries the lines from one on; mayStore says that the slots of all targets are free.
  DEVICE void carry(u32 line, bool &mayStore) const {
    const u64 place = u64(line) * lineBytes + lane * 16, word = u64(line) * Line::words + Line::place(lane, 0);
    // The own input, if it is a source, is the first. It is loaded while lines are
    // waited for, and added last.
    const bool own = !move.source[0].taken;
    Words mine = {}, w;
    if (own)
      UNROLLED for (int k = 0; k < some; k++) read(move.source[0].at, word + k * Line::words, mine[k]);
    Reduction<T, Op> sum[some][Line::perLane];
    if (own && move.sources == 1) {
      each([&](int k, int j) { sum[k][j].start(mine[k][j]); });
    } else {
      receive(move.source[own], place, w);
      each([&](int k, int j) { sum[k][j].start(w[k][j]); });
      ROLLED for (u32 s = own + 1; s < move.sources; s++) {
        receive(move.source[s], place, w);
        each([&](int k, int j) { sum[k][j].add(w[k][j]); });
      }
      if (own) each([&](int k, int j) { sum[k][j].add(mine[k][j]); });
    }
    each([&](int k, int j) { w[k][j] = sum[k][j].finish(move.finish); });
    if (!mayStore) awaitSlots();
    mayStore = true;
    ROLLED for (u32 t = 0; t < move.targets; t++) {
      const Lines &to = move.target[t];
      char *at = to.at;
      const u32 epoch = to.epoch(call);
      if (to.taken) {
        Line::meet();
        UNROLLED for (int k = 0; k < some; k++) putPack(at + place + k * lineBytes, Line::seal(w[k], epoch));
      } else {
        UNROLLED for (int k = 0; k < some; k++) write(at, word + k * Line::words, w[k]);
      }
    }
  }

private:
  template <class F> DEVICE void each(F f) const {
    UNROLLED for (int k = 0; k < some; k++)
      UNROLLED for (int j = 0; j < Line::perLane; j++) f(k, j);
  }
  DEVICE void read(const char *buffer, u64 word, u64 (&w)[Line::perLane]) const {
    if (whole) return Line::read(buffer + word * 8, lane, w);
    UNROLLED for (int j = 0; j < Line::perLane; j++)
      if (Line::has(lane, j)) w[j] = gather<T>(buffer, move.bytes, word + j);
  }
  DEVICE void write(char *buffer, u64 word, const u64 (&w)[Line::perLane]) const {
    if (whole) return Line::write(buffer + word * 8, lane, w);
    UNROLLED for (int j = 0; j < Line::perLane; j++)
      if (Line::has(lane, j)) scatter<T>(buffer, move.bytes, word + j, w[j]);
  }
  DEVICE void receive(const Lines &from, u64 place, Words &w) const {
    const char *at = from.at + place;
    const u32 epoch = from.epoch(call);
    Pack v[some];
    bool ready;
    do { // lanes that lost patience vote on, so that a warp stays together
      ready = true;
      Line::meet();
      UNROLLED for (int k = 0; k < some; k++) v[k] = getPack(at + k * lineBytes);
      UNROLLED for (int k = 0; k < some; k++) ready = ready & Line::sealed(v[k], lane, epoch);
    } while (!inAllLanes(ready || !patience.more()));
    UNROLLED for (int k = 0; k < some; k++) Line::open(v[k], w[k]);
  }
  // Waits until the readers of all targets have taken what lay in their slots.
  DEVICE void awaitSlots() const {
    if (lane < move.targets && move.target[lane].taken) {
      const Lines &to = move.target[lane];
      while (int(getAcquire(to.taken) - (to.epoch(call) - to.behind)) < 0 && patience.more()) {
      }
    }
    syncWarp();
  }
};

// The same over LL or LL128: a warp carries lines from the sources to the targets, and
// waits for them by itself, so that lines of a move overlap.
template <class T, class Op, class Line> DEVICE void interpretLines(const Program &p) {
  constexpr int some = 4;
  Patience patience(p.args);
  awaitTurn();
  patience.over = getRelaxed(&p.args.control(rank()).stop);
  Worker &worker = p.workers[blockIdx.x];
  const u32 call = worker.calls, thread = threadIdx.x, warp = thread / 32, warps = blockDim.x / 32;
  __shared__ Pages<LineMove> pages;
  Reader<LineMove> reader(worker);
  for (u32 m = 0; m < reader.count; m++) {
    const LineMove &move = pages.of[m % 2];
    reader.turn(pages, m);
    __syncthreads();
    u64 odd = 0; // of the places in buffers
    for (u32 s = 0; s < move.sources; s++) odd |= move.source[s].taken ? 0 : reinterpret_cast<u64>(move.source[s].at) % Line::align;
    for (u32 t = 0; t < move.targets; t++) odd |= move.target[t].taken ? 0 : reinterpret_cast<u64>(move.target[t].at) % Line::align;
    const u32 lines = u32((move.bytes + Line::words * 8 - 1) / (Line::words * 8)), whole = odd ? 0 : u32(move.bytes / (Line::words * 8));
    const u32 groups = whole / some, rest = groups * some;
    bool mayStore = false;
    ROLLED for (u32 g = warp; g < groups; g += warps) Carrier<T, Op, Line, some, true>{move, patience, call}.carry(g * some, mayStore);
    // Warps that had a group less begin with the lines that are left.
    ROLLED for (u32 i = rest + (warp + warps - groups % warps) % warps; i < lines; i += warps) Carrier<T, Op, Line, 1, false>{move, patience, call}.carry(i, mayStore);
    __syncthreads();
    // What was read needs no release, which would wait for all that was stored.
    if (thread < move.sources && move.source[thread].taken) putRelaxed(move.source[thread].taken, move.source[thread].epoch(call));
  }
  if (thread == 0) worker.calls = call + 1;
}
