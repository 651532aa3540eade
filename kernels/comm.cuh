// The communicator as a kernel sees it: the memory that ranks share, the epochs
// and flags by which they follow one another, and waits that end by the clock.
//
// No kernel ends with a barrier. All are all-to-all: a rank cannot finish call k
// before every rank has begun it, so a rank is at most one call ahead, and two
// halves of an inbox, chosen by the parity of a block's epoch, are enough. Blocks
// count epochs in device memory: graphs replay without new arguments.
#pragma once
#include "cuda.cuh"

constexpr int maxRanks = 8;
constexpr int maxBlocks = 512;
constexpr u32 everyLane = 0xffffffff;

// Control is the head of each rank's region.
struct Control {
  u32 stop; // set by a rank that gave up waiting: all waits end
  u32 padding[31];
  u32 epoch[maxBlocks];                 // calls that a block has served
  u32 flag[2][maxBlocks][maxRanks]; // by phase, block and sender: the sender's progress
};

// Args are the parameters of every kernel; package cuda fills them in.
struct Args {
  char *region[maxRanks];       // every rank's region, own included
  const char *input[maxRanks];  // every rank's buffers
  char *output[maxRanks];
  u64 *fault;       // in host memory: what a wait that timed out waited for
  u64 timeout;      // of a wait, nanoseconds
  u64 bytes;        // of each buffer
  u64 inbox;        // offset in the region of the memory that others write
  u32 capacity;     // units that a slot of the inbox holds
  u32 units;        // that the buffer is cut into: lines or packs
  u32 chunk, extra; // units of a rank's chunk; the first extra ranks have one more
  u32 stripe;       // units of a chunk (or buffer) that a block has
  u32 rounds;       // that a block's stripe is served in
  int rank, ranks;
  int divisor;      // 0, or ranks for an average
  int padding;

  DEVICE Control &control(int r) const { return *reinterpret_cast<Control *>(region[r]); }
  DEVICE int peer(int k) const { return rank + k < ranks ? rank + k : rank + k - ranks; }
  DEVICE u32 chunkBegin(int r) const { return chunk * r + lower(r, extra); }
  DEVICE u32 chunkUnits(int r) const { return chunk + (u32(r) < extra); }
  // The part of a chunk, or of the buffer, that this block has.
  DEVICE u32 stripeBegin() const { return stripe * blockIdx.x; }
  DEVICE u32 stripeUnits(u32 all) const {
    const u32 begin = stripeBegin();
    return begin < all ? lower(stripe, all - begin) : 0;
  }
};
static_assert(sizeof(Args) == 264, "package cuda lays out the same");

// Access to memory that other GPUs read or write while the kernel runs.
DEVICE void putRelaxed(u32 *p, u32 v) { asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory"); }
DEVICE void putRelease(u32 *p, u32 v) { asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory"); }
DEVICE u32 getRelaxed(const u32 *p) {
  u32 v;
  asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
DEVICE u32 getAcquire(const u32 *p) {
  u32 v;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
DEVICE u64 now() {
  u64 t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  return t;
}
DEVICE bool all(bool p) {
  u32 r;
  asm volatile("{ .reg .pred p, q; setp.ne.u32 p, %1, 0; vote.sync.all.pred q, p, 0xffffffff; selp.u32 %0, 1, 0, q; }"
               : "=r"(r) : "r"(u32(p)));
  return r;
}

// Patience ends waits. Once it is over, every wait of the thread ends at once and
// the kernel runs through with what it has; the host sees the fault.
struct Patience {
  const Args &a;
  u64 since = 0;
  u32 spins = 0;
  bool over = false;

  DEVICE explicit Patience(const Args &args) : a(args) {}

  // Called in every turn of a wait, says whether to go on.
  DEVICE bool more() {
    if (++spins % 1024 == 0) check();
    return !over;
  }

private:
  DEVICE void check() {
    const u64 t = now();
    if (since == 0) since = t;
    if (getRelaxed(&a.control(a.rank).stop)) {
      over = true;
    } else if (t - since > a.timeout) {
      over = true;
      *reinterpret_cast<volatile u64 *>(a.fault) = u64(1) << 63 | u64(blockIdx.x) << 16 | threadIdx.x;
      ROLLED for (int r = 0; r < a.ranks; r++) putRelaxed(&a.control(r).stop, 1);
    }
  }
};
