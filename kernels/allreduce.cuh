// AllReduce by lines, for small and middling sizes.
#pragma once
#include "line.cuh"
#include "number.cuh"

// Reduces the ranks' words, in order.
template <class T, class Op, int count>
DEVICE void reduce(const u64 (&w)[maxRanks][count], u64 (&result)[count]) {
  UNROLLED for (int i = 0; i < count; i++) {
    Reduction<T, Op> sum;
    sum.start(w[0][i]);
    UNROLLED for (int r = 1; r < maxRanks; r++)
      if (r < ranks()) sum.add(w[r][i]);
    result[i] = sum.finish();
  }
}

// Puts the own words beside those of the others, and reduces them.
template <class T, class Op, int count>
DEVICE void reduceWith(const u64 (&own)[count], u64 (&w)[maxRanks][count], u64 (&result)[count]) {
  UNROLLED for (int r = 0; r < maxRanks; r++)
    if (r == rank())
      UNROLLED for (int j = 0; j < count; j++) w[r][j] = own[j];
  reduce<T, Op>(w, result);
}

// Reduces a line of all ranks, of which this one has its own.
template <class T, class Op, class Line>
DEVICE void receiveSum(Post<Line> &post, u32 i, const u64 (&own)[Line::perLane], u64 (&result)[Line::perLane]) {
  u64 w[1][maxRanks][Line::perLane];
  post.receive(0, i, [](int, int r) { return r < ranks() && r != rank(); }, w);
  reduceWith<T, Op>(own, w[0], result);
}

// One-shot: every rank sends its whole input to every other, and each reduces all
// of it. One hop. On two ranks, where that is quickest up to some MiB, a warp has up
// to most lines under way at once; on more, what comes of a line is that many.
template <class T, class Op, class Line, int most> DEVICE void oneshot(const Args &a) {
  Post<Line> post(a);
  const u32 begin = a.stripeBegin(), lines = a.stripeUnits(a.units), some = ranks() == 2 ? most : 1;
  u64 own[most][Line::perLane];
  const auto there = [&](u32 i, u32 u) { return u < some && (u == 0 || i + u * post.warps < lines); };
  const auto read = [&](u32 i) {
    UNROLLED for (int u = 0; u < most; u++)
      if (there(i, u)) post.read(begin + i + u * post.warps, own[u]);
  };
  ROLLED for (u32 i = post.warp; i < lines; i += some * post.warps) {
    read(i);
    UNROLLED for (int u = 0; u < most; u++)
      UNROLLED for (int k = 1; k < maxRanks; k++)
        if (there(i, u) && k < ranks()) post.send(peer(k), 0, i + u * post.warps, own[u]);
  }
  ROLLED for (u32 i = post.warp; i < lines; i += some * post.warps) {
    read(i);
    u64 w[most][maxRanks][Line::perLane], result[Line::perLane];
    post.receive(0, i, [&](int u, int r) { return there(i, u) && r < ranks() && r != rank(); }, w);
    UNROLLED for (int u = 0; u < most; u++)
      if (there(i, u)) {
        reduceWith<T, Op>(own[u], w[u], result);
        post.write(begin + i + u * post.warps, result);
      }
  }
}

// Two-shot: every rank sends each other the chunk that the other owns, reduces
// its own chunk and sends the result to all. Two hops, less traffic.
template <class T, class Op, class Line> DEVICE void twoshot(const Args &a) {
  Post<Line> post(a);
  const u32 offset = a.stripeBegin();
  ROLLED for (u32 i = post.warp; i < a.stripe; i += post.warps)
    UNROLLED for (int k = 1; k < maxRanks; k++) {
      if (k >= ranks() || i >= a.stripeUnits(a.chunkUnits(peer(k)))) continue;
      u64 w[Line::perLane];
      post.read(a.chunkBegin(peer(k)) + offset + i, w);
      post.send(peer(k), 0, i, w);
    }
  const u32 mine = a.stripeUnits(a.chunkUnits(rank()));
  ROLLED for (u32 i = post.warp; i < mine; i += post.warps) {
    const u32 line = a.chunkBegin(rank()) + offset + i;
    u64 own[Line::perLane], result[Line::perLane];
    post.read(line, own);
    receiveSum<T, Op>(post, i, own, result);
    UNROLLED for (int k = 1; k < maxRanks; k++)
      if (k < ranks()) post.send(peer(k), 1, i, result);
    post.write(line, result);
  }
  ROLLED for (u32 i = post.warp; i < a.stripe; i += post.warps) {
    u64 w[1][maxRanks][Line::perLane];
    const auto there = [&](int, int r) { return r < ranks() && r != rank() && i < a.stripeUnits(a.chunkUnits(r)); };
    post.receive(1, i, there, w);
    UNROLLED for (int r = 0; r < maxRanks; r++)
      if (there(0, r)) post.write(a.chunkBegin(r) + offset + i, w[0][r]);
  }
}
