// Lines carry data and flags in the same store, so that a reader needs no fence:
// it polls the line until the flag is that of its epoch. A line is what a warp
// stores at once: 512 bytes, 16 of each lane.
#pragma once
#include "comm.cuh"

constexpr u32 lineBytes = 512;

struct Pack { u64 x, y; };

DEVICE void putPack(char *p, Pack v) { asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(p), "l"(v.x), "l"(v.y) : "memory"); }
DEVICE Pack getPack(const char *p) {
  Pack v;
  asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];" : "=l"(v.x), "=l"(v.y) : "l"(p) : "memory");
  return v;
}

// LL carries 8 bytes in each 16: two halves, each with the flag beside it. A
// lane's store of 16 bytes arrives in words of 8, so each half has a flag.
struct LL {
  static constexpr u32 words = 32; // of 8 bytes in a line
  static constexpr int perLane = 1;
  // Brings the lanes of a warp together, where their stores or loads must be one.
  static DEVICE void meet() {}
  // The place in the line of a lane's i-th word, and whether it has one.
  static DEVICE u32 place(u32 lane, int) { return lane; }
  static DEVICE bool has(u32, int) { return true; }
  static DEVICE Pack seal(const u64 (&w)[1], u32 epoch) {
    const u64 flag = u64(epoch) << 32;
    return {(w[0] & 0xffffffff) | flag, w[0] >> 32 | flag};
  }
  static DEVICE bool sealed(Pack v, u32, u32 epoch) { return u32(v.x >> 32) == epoch && u32(v.y >> 32) == epoch; }
  static DEVICE void open(Pack v, u64 (&w)[1]) { w[0] = (v.x & 0xffffffff) | v.y << 32; }
  // What a lane carries lies together in a buffer; these are of whole lines in buffers
  // that begin at a multiple of align bytes. Packed says that they are worth a branch.
  static constexpr bool packed = false;
  static constexpr u32 align = 8;
  static DEVICE void read(const char *at, u32, u64 (&w)[1]) { w[0] = *reinterpret_cast<const u64 *>(at); }
  static DEVICE void write(char *at, u32, const u64 (&w)[1]) { *reinterpret_cast<u64 *>(at) = w[0]; }
};

// LL128 carries 120 bytes in each 128: of eight lanes one gives half its 16 bytes to
// the flag. It is the last and the first by turns, so that the 16 bytes of the others
// lie at multiples of 16 in a buffer. It rests on the 128 bytes that a warp stores
// together arriving together, as NCCL's LL128 does on NVLink.
struct LL128 {
  static constexpr u32 words = 60;
  static constexpr int perLane = 2;
  static DEVICE void meet() { syncWarp(); }
  static DEVICE bool flagged(u32 lane) { return lane % 16 == 7 || lane % 16 == 8; }
  static DEVICE u32 place(u32 lane, int i) { return lane / 8 * 15 + lane % 8 * 2 + i - (lane % 16 > 8); }
  static DEVICE bool has(u32 lane, int i) { return i == 0 || !flagged(lane); }
  static DEVICE Pack seal(const u64 (&w)[2], u32 epoch) { return {w[0], flagged(threadIdx.x) ? epoch : w[1]}; }
  static DEVICE bool sealed(Pack v, u32 lane, u32 epoch) { return !flagged(lane) || v.y == epoch; }
  static DEVICE void open(Pack v, u64 (&w)[2]) { w[0] = v.x, w[1] = v.y; }
  static constexpr bool packed = true;
  static constexpr u32 align = 16;
  static DEVICE void read(const char *at, u32 lane, u64 (&w)[2]) {
    if (flagged(lane)) {
      w[0] = *reinterpret_cast<const u64 *>(at);
    } else {
      const Quad v = load(packs(at));
      w[0] = v.x, w[1] = v.y;
    }
  }
  static DEVICE void write(char *at, u32 lane, const u64 (&w)[2]) {
    if (flagged(lane)) *reinterpret_cast<u64 *>(at) = w[0];
    else store(packs(at), {w[0], w[1]});
  }
};

// Words of a buffer that may end inside its last word.
DEVICE u64 getWord(const char *buffer, u64 bytes, u64 word) {
  const u64 at = word * 8;
  if (at + 8 <= bytes) return *reinterpret_cast<const u64 *>(buffer + at);
  u64 v = 0;
  ROLLED for (u64 i = at; i < bytes; i++) v |= u64(*reinterpret_cast<const unsigned char *>(buffer + i)) << (i - at) * 8;
  return v;
}
DEVICE void setWord(char *buffer, u64 bytes, u64 word, u64 v) {
  const u64 at = word * 8;
  if (at + 8 <= bytes) {
    *reinterpret_cast<u64 *>(buffer + at) = v;
    return;
  }
  ROLLED for (u64 i = at; i < bytes; i++) buffer[i] = char(v >> (i - at) * 8);
}

// The same of a block that also begins at any byte.
DEVICE u64 getAnywhere(const char *block, u64 bytes, u64 word) {
  const u64 at = word * 8, place = reinterpret_cast<u64>(block);
  const u32 *half = reinterpret_cast<const u32 *>(block + at);
  const bool whole = at + 8 <= bytes;
  if (whole && place % 8 == 0) return *reinterpret_cast<const u64 *>(half);
  if (whole && place % 4 == 0) return half[0] | u64(half[1]) << 32;
  u64 v = 0;
  ROLLED for (u64 i = at; i < at + 8 && i < bytes; i++) v |= u64(*reinterpret_cast<const unsigned char *>(block + i)) << (i - at) * 8;
  return v;
}
DEVICE void setAnywhere(char *block, u64 bytes, u64 word, u64 v) {
  const u64 at = word * 8, place = reinterpret_cast<u64>(block);
  u32 *half = reinterpret_cast<u32 *>(block + at);
  if (at + 8 <= bytes && place % 8 == 0) {
    *reinterpret_cast<u64 *>(half) = v;
    return;
  }
  if (at + 8 <= bytes && place % 4 == 0) {
    half[0] = u32(v), half[1] = u32(v >> 32);
    return;
  }
  ROLLED for (u64 i = at; i < at + 8 && i < bytes; i++) block[i] = char(v >> (i - at) * 8);
}

// Post is a warp's access to the inboxes of all ranks. An inbox has, for each
// block and half, a slot for each sender and phase.
template <class Line> struct Post {
  const Args &a;
  Patience patience;
  const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  u32 epoch;
  u64 slotBytes, inbox; // size of a slot; where in a region this block's and lane's half begins

  DEVICE explicit Post(const Args &args) : a(args), patience(args) {
    // What parameters alone decide is ready before the kernel's turn.
    slotBytes = u64(a.capacity) * lineBytes;
    const u64 half = 2 * ranks() * slotBytes;
    inbox = settled(a.inbox + blockIdx.x * 2 * half + lane * 16);
    const Control *control = &a.control(rank());
    settled(u64(control)), settled(u64(a.input[rank()]));
    awaitTurn();
    epoch = getRelaxed(&control->epoch[blockIdx.x]) + 1;
    patience.over = getRelaxed(&control->stop);
    inbox += epoch % 2 * half;
    __syncthreads();
    if (threadIdx.x == 0) a.control(rank()).epoch[blockIdx.x] = epoch;
  }

  DEVICE void read(u32 line, u64 (&w)[Line::perLane]) const {
    if (Line::packed && whole(line)) return Line::read(a.input[rank()] + word(line, 0) * 8, lane, w);
    UNROLLED for (int i = 0; i < Line::perLane; i++)
      w[i] = Line::has(lane, i) ? getWord(a.input[rank()], a.bytes, word(line, i)) : 0;
  }
  DEVICE void write(u32 line, const u64 (&w)[Line::perLane]) const {
    if (Line::packed && whole(line)) return Line::write(a.output[rank()] + word(line, 0) * 8, lane, w);
    UNROLLED for (int i = 0; i < Line::perLane; i++)
      if (Line::has(lane, i)) setWord(a.output[rank()], a.bytes, word(line, i), w[i]);
  }
  // The same of a block of as many bytes that begins anywhere.
  DEVICE void read(const char *block, u32 line, u64 (&w)[Line::perLane]) const {
    if (Line::packed && whole(line) && reinterpret_cast<u64>(block) % Line::align == 0) return Line::read(block + word(line, 0) * 8, lane, w);
    UNROLLED for (int i = 0; i < Line::perLane; i++)
      w[i] = Line::has(lane, i) ? getAnywhere(block, a.bytes, word(line, i)) : 0;
  }
  DEVICE void write(char *block, u32 line, const u64 (&w)[Line::perLane]) const {
    if (Line::packed && whole(line) && reinterpret_cast<u64>(block) % Line::align == 0) return Line::write(block + word(line, 0) * 8, lane, w);
    UNROLLED for (int i = 0; i < Line::perLane; i++)
      if (Line::has(lane, i)) setAnywhere(block, a.bytes, word(line, i), w[i]);
  }

  // Puts a line into a peer's inbox.
  DEVICE void send(int peer, int phase, u32 line, const u64 (&w)[Line::perLane]) const {
    Line::meet();
    putPack(at(peer, phase, rank(), line), Line::seal(w, epoch));
  }

  // Takes a line of every peer that has one out of the own inbox: polls them
  // together, so that the waits overlap.
  DEVICE void receive(int phase, u32 line, const bool (&wanted)[maxRanks], u64 (&w)[maxRanks][Line::perLane]) {
    Pack v[maxRanks];
    bool ready;
    do { // lanes that lost patience vote on, so that a warp stays together
      ready = true;
      Line::meet();
      UNROLLED for (int r = 0; r < maxRanks; r++)
        if (wanted[r]) v[r] = getPack(at(rank(), phase, r, line));
      UNROLLED for (int r = 0; r < maxRanks; r++)
        if (wanted[r]) ready = ready && Line::sealed(v[r], lane, epoch);
    } while (!inAllLanes(ready || !patience.more()));
    UNROLLED for (int r = 0; r < maxRanks; r++)
      if (wanted[r]) Line::open(v[r], w[r]);
  }
  // Takes a line of one peer.
  DEVICE void receive(int phase, int sender, u32 line, u64 (&w)[Line::perLane]) {
    Pack v;
    do Line::meet(), v = getPack(at(rank(), phase, sender, line));
    while (!inAllLanes(Line::sealed(v, lane, epoch) || !patience.more()));
    Line::open(v, w);
  }

  // Takes those lines of one peer that are wanted, apart from one another as the warp's turns are.
  template <int most, class Wanted> DEVICE void receive(int sender, u32 line, Wanted wanted, u64 (&w)[most][Line::perLane]) {
    Pack v[most];
    bool ready;
    do {
      ready = true;
      Line::meet();
      UNROLLED for (int u = 0; u < most; u++)
        if (wanted(u)) v[u] = getPack(at(rank(), 0, sender, line + u * warps));
      UNROLLED for (int u = 0; u < most; u++)
        if (wanted(u)) ready = ready && Line::sealed(v[u], lane, epoch);
    } while (!inAllLanes(ready || !patience.more()));
    UNROLLED for (int u = 0; u < most; u++)
      if (wanted(u)) Line::open(v[u], w[u]);
  }

private:
  DEVICE bool whole(u32 line) const { return u64(line + 1) * (Line::words * 8) <= a.bytes; }
  DEVICE u64 word(u32 line, int i) const { return u64(line) * Line::words + Line::place(lane, i); }
  DEVICE char *at(int owner, int phase, int sender, u32 line) const {
    return a.region[owner] + inbox + (phase * ranks() + sender) * slotBytes + u64(line) * lineBytes;
  }
};
