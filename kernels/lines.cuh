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

// Calls f with each other rank and the number of each line: a warp takes a line of
// one rank at a time, so that lines to or from several are under way at once.
template <class Line, class F> DEVICE void eachLine(const Post<Line> &post, u32 lines, F f) {
  const u32 others = ranks() - 1;
  ROLLED for (u32 j = post.warp; j < lines * others; j += post.warps) f(peer(1 + j % others), j / others);
}

// Sends each rank the block that begins at its input.
template <class Line> DEVICE void sendBlocks(const Post<Line> &post, u32 lines) {
  const Args &a = post.a;
  eachLine(post, lines, [&](int to, u32 i) {
    if (!a.input[to]) return;
    u64 w[Line::perLane];
    post.read(a.input[to], a.stripeBegin() + i, w);
    post.send(to, 0, i, w);
  });
}

// What comes is kept as it is: AllGather, Broadcast, AllToAll, SendRecv, Exchange.
template <class Line> DEVICE void deliver(const Args &a) {
  Post<Line> post(a);
  tellSilent(post, [&](int r) { return a.input[r]; });
  const u32 first = a.stripeBegin(), lines = a.stripeUnits(a.units);
  sendBlocks(post, lines);
  if (a.input[rank()])
    ROLLED for (u32 i = post.warp; i < lines; i += post.warps) {
      u64 w[Line::perLane];
      post.read(a.input[rank()], first + i, w);
      post.write(a.output[rank()], first + i, w);
    }
  eachLine(post, lines, [&](int from, u32 i) {
    if (!a.output[from]) return;
    u64 w[Line::perLane];
    post.receive(0, from, i, w);
    post.write(a.output[from], first + i, w);
  });
  awaitSilent(post, [&](int r) { return a.output[r]; });
}

// What comes from all is reduced: ReduceScatter and Reduce.
template <class T, class Op, class Line> DEVICE void collect(const Args &a) {
  Post<Line> post(a);
  tellSilent(post, [&](int r) { return a.input[r]; });
  const u32 first = a.stripeBegin(), lines = a.stripeUnits(a.units);
  sendBlocks(post, lines);
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
template <class Line> struct Owners {
  Post<Line> &post;
  const int root;

  DEVICE int index(int r) const { return r - (r > root); }
  DEVICE u32 lines(int r) const { return r == root ? 0 : post.a.stripeUnits(post.a.chunkUnits(index(r))); } // of this block
  // The place in a buffer of a line of an owner's chunk.
  DEVICE u32 line(int r, u32 i) const { return post.a.chunkBegin(index(r)) + post.a.stripeBegin() + i; }
  // Sends each owner its chunk of the own input.
  template <class Kept> DEVICE void deal(Kept kept) const {
    eachLine(post, post.a.stripe, [&](int to, u32 i) {
      if (i >= lines(to)) return;
      u64 w[Line::perLane];
      post.read(line(to, i), w);
      post.send(to, 0, i, w);
      kept(line(to, i), w);
    });
  }
  // Keeps what all owners have sent.
  DEVICE void gather() const {
    eachLine(post, post.a.stripe, [&](int from, u32 i) {
      if (i >= lines(from)) return;
      u64 w[Line::perLane];
      post.receive(1, from, i, w);
      post.write(line(from, i), w);
    });
  }
};

// The only rank that has a buffer.
template <class Place> DEVICE int onlyOne(const Place (&buffer)[maxRanks]) {
  int one = 0;
  UNROLLED for (int r = 1; r < maxRanks; r++)
    if (r < ranks() && buffer[r]) one = r;
  return one;
}

// Broadcast: the root sends each owner its chunk, who keeps and passes it on.
template <class Line> DEVICE void relay(const Args &a) {
  Post<Line> post(a);
  const int root = onlyOne(a.input);
  const Owners<Line> owners = {post, root};
  tellSilent(post, [&](int r) { return r != root; });
  if (rank() == root) {
    owners.deal([&](u32 line, const auto &w) {
      if (a.output[root] != a.input[root]) post.write(line, w);
    });
    awaitSilent(post, [](int) { return false; });
    return;
  }
  ROLLED for (u32 i = post.warp; i < owners.lines(rank()); i += post.warps) {
    u64 w[Line::perLane];
    post.receive(0, root, i, w);
    ROLLED for (int k = 1; k < ranks(); k++)
      if (peer(k) != root) post.send(peer(k), 1, i, w);
    post.write(owners.line(rank(), i), w);
  }
  owners.gather();
}

// Reduce: all send each owner its chunk, who reduces it and sends it to the root.
template <class T, class Op, class Line> DEVICE void collectTwice(const Args &a) {
  Post<Line> post(a);
  const Owners<Line> owners = {post, onlyOne(a.output)};
  owners.deal([](u32, const auto &) {});
  ROLLED for (u32 i = post.warp; i < owners.lines(rank()); i += post.warps) {
    u64 own[Line::perLane], result[Line::perLane];
    post.read(owners.line(rank(), i), own);
    receiveSum<T, Op>(post, i, own, result);
    post.send(owners.root, 1, i, result);
  }
  if (rank() == owners.root) owners.gather();
}
