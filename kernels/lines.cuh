// The other collectives by lines, for small and middling sizes: every rank sends
// each other what that one needs, in one hop. All that goes from one rank to
// another has the same number of bytes. Of the args, input says where what each
// rank is sent begins, and output where what each rank sends goes, or 0 where
// there is nothing to send or to come.
#pragma once
#include "allreduce.cuh"

// RollCall keeps ranks within a call of each other where not all send to all: a
// rank tells those that it sends nothing to that it has begun the call.
template <class Line> struct RollCall {
  Post<Line> &post;

  DEVICE explicit RollCall(Post<Line> &p) : post(p) {
    const int r = threadIdx.x;
    if (r < ranks() && r != rank() && !post.a.input[r]) putRelaxed(&post.a.control(r).flag[0][blockIdx.x][rank()], post.epoch);
  }
  // Waits for every rank that sends nothing.
  DEVICE void await() {
    const int r = threadIdx.x;
    if (r < ranks() && r != rank() && !post.a.output[r]) {
      const u32 *flag = &post.a.control(rank()).flag[0][blockIdx.x][r];
      while (int(getRelaxed(flag) - post.epoch) < 0 && post.patience.more()) {
      }
    }
  }
};

// Sends what each rank is to have. A warp sends a line to one rank, so that lines
// to several ranks are under way at once.
template <class Line> DEVICE void sendLines(const Post<Line> &post, u32 lines) {
  const Args &a = post.a;
  ROLLED for (u32 j = post.warp; j < lines * (ranks() - 1); j += post.warps) {
    const int to = peer(1 + j % (ranks() - 1));
    const u32 i = j / (ranks() - 1);
    if (!a.input[to]) continue;
    u64 w[Line::perLane];
    post.read(a.input[to], a.stripeBegin() + i, w);
    post.send(to, 0, i, w);
  }
}

// What comes is kept as it is: AllGather, Broadcast, AllToAll, SendRecv, Exchange.
template <class Line> DEVICE void deliver(const Args &a) {
  Post<Line> post(a);
  RollCall<Line> roll(post);
  const u32 first = a.stripeBegin(), lines = a.stripeUnits(a.units);
  sendLines(post, lines);
  if (a.input[rank()])
    ROLLED for (u32 i = post.warp; i < lines; i += post.warps) {
      u64 w[Line::perLane];
      post.read(a.input[rank()], first + i, w);
      post.write(a.output[rank()], first + i, w);
    }
  ROLLED for (u32 j = post.warp; j < lines * (ranks() - 1); j += post.warps) {
    const int from = peer(1 + j % (ranks() - 1));
    const u32 i = j / (ranks() - 1);
    if (!a.output[from]) continue;
    u64 w[Line::perLane];
    post.receive(0, from, i, w);
    post.write(a.output[from], first + i, w);
  }
  roll.await();
}

// What comes from all is reduced: ReduceScatter and Reduce.
template <class T, class Op, class Line> DEVICE void collect(const Args &a) {
  Post<Line> post(a);
  RollCall<Line> roll(post);
  const u32 first = a.stripeBegin(), lines = a.stripeUnits(a.units);
  sendLines(post, lines);
  if (a.output[rank()])
    ROLLED for (u32 i = post.warp; i < lines; i += post.warps) {
      u64 own[Line::perLane], result[Line::perLane];
      post.read(a.input[rank()], first + i, own);
      receiveSum<T, Op>(post, i, own, result);
      post.write(a.output[rank()], first + i, result);
    }
  roll.await();
}
