// Replaces each value by the sum of all values up to and including it. One CTA takes kScanThreads
// values at a time: each warp scans 32, one warp scans the sums of the warps, and `before` holds
// the sum of all earlier values.
//
//   scan_counts<<<1, kScanThreads>>>(ScanParams)

#include "params/layout_params.h"
#include "tile/scan.cuh"

namespace annulus::kernels {

__global__ void __launch_bounds__(kScanThreads)
    scan_counts(const __grid_constant__ ScanParams params) {
  __shared__ long long sums[32];
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int warp = static_cast<int>(threadIdx.x / 32);
  long long before = 0;
  for (int first = 0; first < params.count; first += kScanThreads) {
    const int at = first + static_cast<int>(threadIdx.x);
    long long value = tile::warp_scan<tile::Add>(at < params.count ? params.values[at] : 0, lane);
    if (lane == 31) sums[warp] = value;
    __syncthreads();
    if (warp == 0) sums[lane] = tile::warp_scan<tile::Add>(sums[lane], lane);
    __syncthreads();
    value += before + (warp > 0 ? sums[warp - 1] : 0);
    if (at < params.count) params.values[at] = value;
    before += sums[31];
    __syncthreads();
  }
}

}  // namespace annulus::kernels
