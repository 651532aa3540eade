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

// Reduces a line of all ranks, of which this one has its own.
template <class T, class Op, class Line>
DEVICE void receiveSum(Post<Line> &post, u32 i, const u64 (&own)[Line::perLane], u64 (&result)[Line::perLane]) {
  bool others[maxRanks];
  u64 w[maxRanks][Line::perLane];
  UNROLLED for (int r = 0; r < maxRanks; r++) others[r] = r < ranks() && r != rank();
  post.receive(0, i, others, w);
  UNROLLED for (int r = 0; r < maxRanks; r++)
    if (r == rank())
      UNROLLED for (int j = 0; j < Line::perLane; j++) w[r][j] = own[j];
  reduce<T, Op>(w, result);
}

// One-shot: every rank sends its whole input to every other, and each reduces all
// of it. One hop.
template <class T, class Op, class Line> DEVICE void oneshot(const Args &a) {
  Post<Line> post(a);
  const u32 begin = a.stripeBegin(), lines = a.stripeUnits(a.units);
  ROLLED for (u32 i = post.warp; i < lines; i += post.warps) {
    u64 own[Line::perLane];
    post.read(begin + i, own);
    UNROLLED for (int k = 1; k < maxRanks; k++)
      if (k < ranks()) post.send(peer(k), 0, i, own);
  }
  ROLLED for (u32 i = post.warp; i < lines; i += post.warps) {
    u64 own[Line::perLane], result[Line::perLane];
    post.read(begin + i, own);
    receiveSum<T, Op>(post, i, own, result);
    post.write(begin + i, result);
  }
}

// The same on two ranks, where one shot is quickest up to some MiB: a warp has several
// lines under way at once.
template <class T, class Op, class Line> DEVICE void oneshotOfTwo(const Args &a) {
  constexpr int most = 4;
  Post<Line> post(a);
  const u32 begin = a.stripeBegin(), lines = a.stripeUnits(a.units), step = most * post.warps;
  u64 own[most][Line::perLane];
  const auto there = [&](u32 i, int u) { return u == 0 || i + u * post.warps < lines; };
  const auto read = [&](u32 i) {
    UNROLLED for (int u = 0; u < most; u++)
      if (there(i, u)) post.read(begin + i + u * post.warps, own[u]);
  };
  ROLLED for (u32 i = post.warp; i < lines; i += step) {
    read(i);
    UNROLLED for (int u = 0; u < most; u++)
      if (there(i, u)) post.send(peer(1), 0, i + u * post.warps, own[u]);
  }
  ROLLED for (u32 i = post.warp; i < lines; i += step) {
    read(i);
    u64 other[most][Line::perLane], result[Line::perLane];
    post.receive(peer(1), i, [&](int u) { return there(i, u); }, other);
    UNROLLED for (int u = 0; u < most; u++) {
      if (!there(i, u)) continue;
      UNROLLED for (int j = 0; j < Line::perLane; j++) {
        Reduction<T, Op> sum;
        sum.start(rank() == 0 ? own[u][j] : other[u][j]);
        sum.add(rank() == 0 ? other[u][j] : own[u][j]);
        result[j] = sum.finish();
      }
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
    u64 w[maxRanks][Line::perLane];
    bool there[maxRanks];
    UNROLLED for (int r = 0; r < maxRanks; r++) there[r] = r < ranks() && r != rank() && i < a.stripeUnits(a.chunkUnits(r));
    post.receive(1, i, there, w);
    UNROLLED for (int r = 0; r < maxRanks; r++)
      if (there[r]) post.write(a.chunkBegin(r) + offset + i, w[r]);
  }
}
