// Kernels that are the same for all datatypes.
#include "hybrid.cuh"
#include "probe.cuh"

extern "C" {
__global__ void __launch_bounds__(32) hybrid_barrier(const __grid_constant__ Args a) { barrier(a); }
__global__ void __launch_bounds__(1024) probe_stores(const __grid_constant__ Args a) { probeStores(a); }
__global__ void __launch_bounds__(1024) probe_loads(const __grid_constant__ Args a) { probeLoads(a); }
__global__ void __launch_bounds__(32) probe_bulk(const __grid_constant__ Args a) { probeBulk(a); }
__global__ void __launch_bounds__(32) probe_flags(const __grid_constant__ Args a) { probeFlags(a); }
}
