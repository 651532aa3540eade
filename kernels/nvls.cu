// AllReduce by NVLink multicast (NVLS) of one datatype: the switch adds what a
// load asks all GPUs for, and copies what is stored to all. build.sh defines TYPE.
// input and output are multicast addresses.
#include "direct.cuh"

// Both operations move 16 bytes; half types are added in float by the switch.
struct four { u32 word[4]; };
template <class T> DEVICE four loadSum(const char *p);
template <> DEVICE four loadSum<float>(const char *p) {
  four v;
  asm volatile("multimem.ld_reduce.relaxed.sys.global.add.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.word[0]), "=r"(v.word[1]), "=r"(v.word[2]), "=r"(v.word[3]) : "l"(p) : "memory");
  return v;
}
template <> DEVICE four loadSum<half>(const char *p) {
  four v;
  asm volatile("multimem.ld_reduce.relaxed.sys.global.add.acc::f32.v4.f16x2 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.word[0]), "=r"(v.word[1]), "=r"(v.word[2]), "=r"(v.word[3]) : "l"(p) : "memory");
  return v;
}
template <> DEVICE four loadSum<bfloat16>(const char *p) {
  four v;
  asm volatile("multimem.ld_reduce.relaxed.sys.global.add.acc::f32.v4.bf16x2 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.word[0]), "=r"(v.word[1]), "=r"(v.word[2]), "=r"(v.word[3]) : "l"(p) : "memory");
  return v;
}
DEVICE void storeAll(char *p, four v) {
  asm volatile("multimem.st.relaxed.sys.global.v4.f32 [%0], {%1, %2, %3, %4};"
               ::"l"(p), "r"(v.word[0]), "r"(v.word[1]), "r"(v.word[2]), "r"(v.word[3]) : "memory");
}

extern "C" __global__ void __launch_bounds__(1024) nvls_twoshot(const __grid_constant__ Args a) {
  Flags flags(a);
  flags.signal(0, 1);
  flags.await(0, 1);
  const u32 all = a.chunkUnits(rank()), end = a.stripeBegin() + a.stripeUnits(all);
  for (u32 i = a.stripeBegin() + threadIdx.x; i < end; i += blockDim.x) {
    const u64 at = u64(a.chunkBegin(rank()) + i) * 16;
    storeAll(a.output[rank()] + at, loadSum<TYPE>(a.input[rank()] + at));
  }
  flags.signal(1, 1);
  flags.await(1, 1);
  flags.close(1);
}
