// The communicator as a kernel sees it: the memory that ranks share, the epochs
// and flags by which they follow one another, and waits that end by the clock.
//
// In all calls every rank hears from every other, directly or through others: a rank
// cannot finish call k before all have begun it, so it is at most one call ahead. Two
// halves of an inbox of lines, chosen by the parity of a block's epoch, are then enough,
// without a barrier at the end. What is pushed in packs has no second half: these
// kernels end when all ranks say that they have written and read what they had to. But
// for a chain, whose slots are its own and follow one another from call to call.
// Blocks count epochs in device memory: graphs replay without new arguments.
#pragma once
#include "cuda.cuh"

constexpr int maxRanks = 8;
constexpr int maxBlocks = 512;

// Control is the head of each rank's region.
struct Control {
  u32 stop; // set by a rank that gave up waiting: all waits end
  u32 padding[31];
  u32 epoch[maxBlocks];                 // calls that a block has served
  u32 flag[2][maxBlocks][maxRanks];     // by phase, block and sender: the sender's progress
};

// Which rank this is, and of how many. Package cuda puts numbers in the place of
// the two names in the PTX before it loads it, so that the driver's compiler
// unrolls and prunes loops over ranks.
DEVICE int rank() {
  int r;
  asm("mov.s32 %0, TUTTI_RANK;" : "=r"(r));
  return r;
}
DEVICE int ranks() {
  int n;
  asm("mov.s32 %0, TUTTI_COUNT;" : "=r"(n));
  return n;
}
// A value that is computed here and not later.
DEVICE u64 settled(u64 v) {
  asm volatile("" : "+l"(v));
  return v;
}

// Lets the next kernel of the stream be launched while this one runs, and waits
// until the one before is complete. Nothing of the communicator or the buffers
// may be touched earlier.
DEVICE void awaitTurn() {
  asm volatile("griddepcontrol.launch_dependents;");
  asm volatile("griddepcontrol.wait;" ::: "memory");
}

// The k-th rank after this one.
DEVICE int peer(int k) { return rank() + k < ranks() ? rank() + k : rank() + k - ranks(); }

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

  DEVICE Control &control(int r) const { return *reinterpret_cast<Control *>(region[r]); }
  DEVICE u32 chunkBegin(int r) const { return chunk * r + lower(r, extra); }
  DEVICE u32 chunkUnits(int r) const { return chunk + (u32(r) < extra); }
  // The part of a chunk, or of the buffer, that this block has.
  DEVICE u32 stripeBegin() const { return stripe * blockIdx.x; }
  DEVICE u32 stripeUnits(u32 all) const {
    const u32 begin = stripeBegin();
    return begin < all ? lower(stripe, all - begin) : 0;
  }
};
static_assert(sizeof(Args) == 248, "package cuda lays out the same");

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
// Whether p holds in all lanes of the warp.
DEVICE bool inAllLanes(bool p) {
  u32 r;
  asm volatile("{ .reg .pred p, q; setp.ne.u32 p, %1, 0; vote.sync.all.pred q, p, 0xffffffff; selp.u32 %0, 1, 0, q; }"
               : "=r"(r) : "r"(u32(p)));
  return r;
}
DEVICE u32 inShared(const void *p) {
  u32 at;
  asm("{ .reg .u64 t; cvta.to.shared.u64 t, %1; cvt.u32.u64 %0, t; }" : "=r"(at) : "l"(p));
  return at;
}
DEVICE void syncWarp() { asm volatile("bar.warp.sync 0xffffffff;" ::: "memory"); }
// Named barriers: threads of a block meet, or say that they have come and go on.
DEVICE void meet(u32 barrier, u32 threads) { asm volatile("barrier.cta.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory"); }
DEVICE void arrive(u32 barrier, u32 threads) { asm volatile("barrier.cta.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory"); }

struct alignas(16) Quad { u64 x, y; };

DEVICE Quad load(const Quad *p) {
  Quad v;
  asm volatile("ld.global.v2.u64 {%0, %1}, [%2];" : "=l"(v.x), "=l"(v.y) : "l"(p) : "memory");
  return v;
}
DEVICE void store(Quad *p, Quad v) { asm volatile("st.global.v2.u64 [%0], {%1, %2};" ::"l"(p), "l"(v.x), "l"(v.y) : "memory"); }

DEVICE Quad *packs(char *p) { return reinterpret_cast<Quad *>(p); }
DEVICE const Quad *packs(const char *p) { return reinterpret_cast<const Quad *>(p); }

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
    if (getRelaxed(&a.control(rank()).stop)) {
      over = true;
    } else if (t - since > a.timeout) {
      over = true;
      *reinterpret_cast<volatile u64 *>(a.fault) = u64(1) << 63 | u64(blockIdx.x) << 16 | threadIdx.x;
      ROLLED for (int r = 0; r < ranks(); r++) putRelaxed(&a.control(r).stop, 1);
    }
  }
};
