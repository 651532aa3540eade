// The kernels that reduce, of one datatype and operation: build.sh defines TYPE and OP.
#include "allreduce.cuh"
#include "chain.cuh"
#include "hybrid.cuh"
#include "interpret.cuh"
#include "lines.cuh"
#include "shares.cuh"
#include "stream.cuh"

extern "C" {
__global__ void __launch_bounds__(512) oneshot_ll(const __grid_constant__ Args a) { oneshot<TYPE, OP, LL>(a); }
__global__ void __launch_bounds__(512) oneshot_ll128(const __grid_constant__ Args a) {
  if (ranks() == 2) oneshotOfTwo<TYPE, OP, LL128>(a);
  else oneshot<TYPE, OP, LL128>(a);
}
__global__ void __launch_bounds__(512) twoshot_ll(const __grid_constant__ Args a) { twoshot<TYPE, OP, LL>(a); }
__global__ void __launch_bounds__(512) twoshot_ll128(const __grid_constant__ Args a) { twoshot<TYPE, OP, LL128>(a); }
__global__ void __launch_bounds__(1024) twoshot_push(const __grid_constant__ Args a) { direct<TYPE, OP>(a); }
__global__ void __launch_bounds__(512) hybrid_combine(const __grid_constant__ Args a) { combine<TYPE, OP, false>(a); }
__global__ void __launch_bounds__(512) hybrid_push(const __grid_constant__ Args a) { combine<TYPE, OP, true>(a); }
__global__ void __launch_bounds__(512) collect_ll(const __grid_constant__ Args a) { collect<TYPE, OP, LL>(a); }
__global__ void __launch_bounds__(512) collect_ll128(const __grid_constant__ Args a) { collect<TYPE, OP, LL128>(a); }
__global__ void __launch_bounds__(512) collect_twice_ll128(const __grid_constant__ Args a) { collectTwice<TYPE, OP, LL128>(a); }
__global__ void __launch_bounds__(1024) collect_push(const __grid_constant__ Shares s) { collectShares<TYPE, OP>(s); }
__global__ void __launch_bounds__(1024) collect_stream(const __grid_constant__ Args a) { collectStream<TYPE, OP>(a); }
__global__ void __launch_bounds__(1024) collect_chain(const __grid_constant__ Shares s) { passOn<TYPE, OP, true>(s); }
__global__ void __launch_bounds__(1024) collect_pull(const __grid_constant__ Shares s) { collectPull<TYPE, OP>(s); }
__global__ void __launch_bounds__(544) interpreter(const __grid_constant__ Program p) { interpret<TYPE, OP>(p); }
__global__ void __launch_bounds__(512) interpreter_ll(const __grid_constant__ Program p) { interpretLines<TYPE, OP, LL>(p); }
__global__ void __launch_bounds__(640) interpreter_ll128(const __grid_constant__ Program p) { interpretLines<TYPE, OP, LL128>(p); }
}
