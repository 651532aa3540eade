// The other collectives by lines, for small and middling sizes. In one hop every
// rank sends each other what that one needs. All that goes from one rank to another
// has the same number of bytes. Of the args, input says where what each rank is
// sent begins, and output where what each rank sends goes, or 0 where there is
// nothing to send or to come.
#pragma once
#include "allreduce.cuh"

// Keep ranks within a call of each other where not all send to all: a rank tells
// those that it sends nothing to that it has begun the call, and waits for those
// who send it nothing to say so.
template <class Line, class Sends> DEVICE void tellSilent(const Post<Line> &post, Sends sendsTo) {
  const int r = threadIdx.x;
  if (r < ranks() && r != rank() && !sendsTo(r)) putRelaxed(&post.a.control(r).flag[0][blockIdx.x][rank()], post.epoch);
}
template <class Line, class Sends> DEVICE void awaitSilent(Post<Line> &post, Sends sends) {
  const int r = threadIdx.x;
  if (r >= ranks() || r == rank() || sends(r)) return;
  const u32 *flag = &post.a.control(rank()).flag[0][blockIdx.x][r];
  while (int(getRelaxed(flag) - post.epoch) < 0 && post.patience.more()) {
  }
}

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
  tellSilent(post, [&](int r) { return a.input[r]; });
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
  awaitSilent(post, [&](int r) { return a.output[r]; });
}

// What comes from all is reduced: ReduceScatter and Reduce.
template <class T, class Op, class Line> DEVICE void collect(const Args &a) {
  Post<Line> post(a);
  tellSilent(post, [&](int r) { return a.input[r]; });
  const u32 first = a.stripeBegin(), lines = a.stripeUnits(a.units);
  sendLines(post, lines);
  if (a.output[rank()])
    ROLLED for (u32 i = post.warp; i < lines; i += post.warps) {
      u64 own[Line::perLane], result[Line::perLane];
      post.read(a.input[rank()], first + i, own);
      receiveSum<T, Op>(post, i, own, result);
      post.write(a.output[rank()], first + i, result);
    }
  awaitSilent(post, [&](int r) { return a.output[r]; });
}

// In two hops all but the root own a chunk, in the order of ranks. Of the args,
// input and output are the ranks' buffers, or 0 where there is none.
struct Owners {
  const Args &a;
  int root;

  DEVICE int index(int r) const { return r - (r > root); }
  DEVICE u32 begin(int r) const { return a.chunkBegin(index(r)); }
  DEVICE u32 lines(int r) const { return r == root ? 0 : a.stripeUnits(a.chunkUnits(index(r))); } // of this block
};

// Broadcast: the root sends each owner its chunk, who keeps and passes it on.
template <class Line> DEVICE void relay(const Args &a) {
  Post<Line> post(a);
  Owners owners = {a, 0};
  UNROLLED for (int r = 1; r < maxRanks; r++)
    if (r < ranks() && a.input[r]) owners.root = r;
  const int root = owners.root;
  tellSilent(post, [&](int r) { return r != root; });
  const u32 offset = a.stripeBegin(), all = a.stripe * (ranks() - 1);
  u64 w[Line::perLane];
  if (rank() == root) {
    ROLLED for (u32 j = post.warp; j < all; j += post.warps) {
      const int to = peer(1 + j % (ranks() - 1));
      const u32 i = j / (ranks() - 1);
      if (i >= owners.lines(to)) continue;
      post.read(owners.begin(to) + offset + i, w);
      post.send(to, 0, i, w);
      if (a.output[root] != a.input[root]) post.write(owners.begin(to) + offset + i, w);
    }
    awaitSilent(post, [](int) { return false; });
    return;
  }
  ROLLED for (u32 i = post.warp; i < owners.lines(rank()); i += post.warps) {
    post.receive(0, root, i, w);
    ROLLED for (int k = 1; k < ranks(); k++)
      if (peer(k) != root) post.send(peer(k), 1, i, w);
    post.write(owners.begin(rank()) + offset + i, w);
  }
  ROLLED for (u32 j = post.warp; j < all; j += post.warps) {
    const int from = peer(1 + j % (ranks() - 1));
    const u32 i = j / (ranks() - 1);
    if (i >= owners.lines(from)) continue;
    post.receive(1, from, i, w);
    post.write(owners.begin(from) + offset + i, w);
  }
}

// Reduce: all send each owner its chunk, who reduces it and sends it to the root.
template <class T, class Op, class Line> DEVICE void collectTwice(const Args &a) {
  Post<Line> post(a);
  Owners owners = {a, 0};
  UNROLLED for (int r = 1; r < maxRanks; r++)
    if (r < ranks() && a.output[r]) owners.root = r;
  const u32 offset = a.stripeBegin(), all = a.stripe * (ranks() - 1);
  u64 w[Line::perLane];
  ROLLED for (u32 j = post.warp; j < all; j += post.warps) {
    const int to = peer(1 + j % (ranks() - 1));
    const u32 i = j / (ranks() - 1);
    if (i >= owners.lines(to)) continue;
    post.read(owners.begin(to) + offset + i, w);
    post.send(to, 0, i, w);
  }
  ROLLED for (u32 i = post.warp; i < owners.lines(rank()); i += post.warps) {
    u64 own[Line::perLane];
    post.read(owners.begin(rank()) + offset + i, own);
    receiveSum<T, Op>(post, i, own, w);
    post.send(owners.root, 1, i, w);
  }
  if (rank() != owners.root) return;
  ROLLED for (u32 j = post.warp; j < all; j += post.warps) {
    const int from = peer(1 + j % (ranks() - 1));
    const u32 i = j / (ranks() - 1);
    if (i >= owners.lines(from)) continue;
    post.receive(1, from, i, w);
    post.write(owners.begin(from) + offset + i, w);
  }
}
