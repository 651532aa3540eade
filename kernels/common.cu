// Kernels that are the same for all datatypes.
#include "chain.cuh"
#include "hybrid.cuh"
#include "lines.cuh"
#include "probe.cuh"
#include "shares.cuh"

extern "C" {
__global__ void __launch_bounds__(32) hybrid_barrier(const __grid_constant__ Args a) { barrier(a); }
__global__ void __launch_bounds__(512) deliver_ll(const __grid_constant__ Args a) { deliver<LL>(a); }
__global__ void __launch_bounds__(512) deliver_ll128(const __grid_constant__ Args a) { deliver<LL128>(a); }
__global__ void __launch_bounds__(512) relay_ll128(const __grid_constant__ Args a) { relay<LL128>(a); }
__global__ void __launch_bounds__(1024) deliver_push(const __grid_constant__ Shares s) { deliverShares(s); }
__global__ void __launch_bounds__(1024) deliver_chain(const __grid_constant__ Shares s) { passOn<unsigned char, Sum, false>(s); }
__global__ void __launch_bounds__(1024) probe_stores(const __grid_constant__ Args a) { probeStores(a); }
__global__ void __launch_bounds__(1024) probe_loads(const __grid_constant__ Args a) { probeLoads(a); }
__global__ void __launch_bounds__(32) probe_bulk(const __grid_constant__ Args a) { probeBulk(a); }
__global__ void __launch_bounds__(32) probe_flags(const __grid_constant__ Args a) { probeFlags(a); }
}
