// What nvcc declares by itself and clang does not when it compiles without a
// CUDA toolkit: the sources here need nothing else, so that either builds them.
#pragma once

#ifdef __clang__
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __grid_constant__ // clang 19 reads parameters in place without being told
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(threads) __attribute__((launch_bounds(threads)))
#include <__clang_cuda_builtin_vars.h>
#endif

#define DEVICE __device__ __forceinline__
#define UNROLLED _Pragma("unroll")  // of loops over registers
#define ROLLED _Pragma("unroll 1") // of loops whose turns are long or rare

using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;

DEVICE u32 lower(u32 a, u32 b) { return a < b ? a : b; }
