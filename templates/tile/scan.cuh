#ifndef ANNULUS_TILE_SCAN_CUH_
#define ANNULUS_TILE_SCAN_CUH_

// Sums and maxima over the threads before a thread (prefix scans).

namespace annulus::tile {

struct Add {
  static __device__ __forceinline__ long long join(long long a, long long b) { return a + b; }
};
struct Largest {
  static __device__ __forceinline__ long long join(long long a, long long b) {
    return a > b ? a : b;
  }
};

// The joined values of the lanes up to and including this one. All lanes of a warp call it.
template <typename Join>
__device__ __forceinline__ long long warp_scan(long long x, int lane) {
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const long long other = __shfl_up_sync(0xffffffffu, x, distance);
    if (lane >= distance) x = Join::join(x, other);
  }
  return x;
}

// The joined number of the threads before this one, and of all threads of the CTA.
struct Scanned {
  long long before;
  long long all;
};

// Joins the x of all threads of a CTA of kWarps whole warps, beginning with 0. `of_warps` is shared
// memory for kWarps numbers, free again on return. All threads call it. It is not inlined, because
// a kernel with several scans would take several times as long to compile.
template <typename Join, int kWarps>
__device__ __noinline__ Scanned scan(long long x, long long* of_warps) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int warp = static_cast<int>(threadIdx.x / 32);
  const long long up_to = warp_scan<Join>(x, lane);
  const long long before = __shfl_up_sync(0xffffffffu, up_to, 1);
  if (lane == 31) of_warps[warp] = up_to;
  __syncthreads();
  Scanned scanned = {0, 0};
#pragma unroll 1
  for (int w = 0; w < kWarps; ++w) {
    if (w == warp) scanned.before = scanned.all;
    scanned.all = Join::join(scanned.all, of_warps[w]);
  }
  __syncthreads();
  if (lane > 0) scanned.before = Join::join(scanned.before, before);
  return scanned;
}

}  // namespace annulus::tile

#endif  // ANNULUS_TILE_SCAN_CUH_
