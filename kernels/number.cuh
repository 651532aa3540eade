// Element types, operations, and reductions of the 8-byte words that all kernels
// move. Half types are widened to float, reduced, and rounded once at the end.
#pragma once
#include "comm.cuh"

struct half { u16 bits; };
struct bfloat16 { u16 bits; };

// Number says in which type T is reduced.
template <class T> struct Number {
  using Wide = T;
  static DEVICE T widen(T x) { return x; }
  static DEVICE T narrow(T x) { return x; }
};
template <> struct Number<half> {
  using Wide = float;
  static DEVICE float widen(half x) {
    float y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
    return y;
  }
  static DEVICE half narrow(float x) {
    half y;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
    return y;
  }
};
template <> struct Number<bfloat16> {
  using Wide = float;
  static DEVICE float widen(bfloat16 x) {
    float y;
    asm("mov.b32 %0, {%1, %2};" : "=f"(y) : "h"(u16(0)), "h"(x.bits));
    return y;
  }
  static DEVICE bfloat16 narrow(float x) {
    bfloat16 y;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
    return y;
  }
};

// The operations. Of a number and NaN, min and max give the number. An operation
// finishes what came of all ranks.
struct Plain {
  template <class W> static DEVICE W finish(W a) { return a; }
};
struct Sum : Plain {
  template <class W> static DEVICE W of(W a, W b) { return a + b; }
};
struct Avg : Sum {
  template <class W> static DEVICE W finish(W a) { return a / ranks(); }
};
struct Prod : Plain {
  template <class W> static DEVICE W of(W a, W b) { return a * b; }
};
struct Min : Plain {
  template <class W> static DEVICE W of(W a, W b) { return a < b ? a : b; }
  static DEVICE float of(float a, float b) {
    asm("min.f32 %0, %0, %1;" : "+f"(a) : "f"(b));
    return a;
  }
  static DEVICE double of(double a, double b) {
    asm("min.f64 %0, %0, %1;" : "+d"(a) : "d"(b));
    return a;
  }
};
struct Max : Plain {
  template <class W> static DEVICE W of(W a, W b) { return a > b ? a : b; }
  static DEVICE float of(float a, float b) {
    asm("max.f32 %0, %0, %1;" : "+f"(a) : "f"(b));
    return a;
  }
  static DEVICE double of(double a, double b) {
    asm("max.f64 %0, %0, %1;" : "+d"(a) : "d"(b));
    return a;
  }
};

// Reduction combines words of T element by element. Callers go through the ranks
// in order, so that every rank computes the same bits.
template <class T, class Op> struct Reduction {
  static constexpr int count = 8 / sizeof(T);
  typename Number<T>::Wide value[count];

  DEVICE void start(u64 word) {
    const Elements e(word);
    UNROLLED for (int i = 0; i < count; i++) value[i] = Number<T>::widen(e.of[i]);
  }
  DEVICE void add(u64 word) {
    const Elements e(word);
    UNROLLED for (int i = 0; i < count; i++) value[i] = Op::of(value[i], Number<T>::widen(e.of[i]));
  }
  // The result; last unless other ranks' words are still to be added to it.
  DEVICE u64 finish(bool last = true) const {
    Elements e(0);
    UNROLLED for (int i = 0; i < count; i++) e.of[i] = Number<T>::narrow(last ? Op::finish(value[i]) : value[i]);
    return e.word();
  }

private:
  struct Elements {
    T of[count];
    DEVICE explicit Elements(u64 word) { __builtin_memcpy(of, &word, 8); }
    DEVICE u64 word() const {
      u64 w;
      __builtin_memcpy(&w, of, 8);
      return w;
    }
  };
};
