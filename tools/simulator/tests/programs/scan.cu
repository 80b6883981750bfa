// Computes prefix sums: each block scans a part, the sums of the blocks are scanned and then added.

#include <vector>

#include "check.h"

constexpr int kThreads = 256;

__global__ void scan_blocks(const int* in, int* out, int* sums, int count) {
  __shared__ int warps[kThreads / 32];
  const int i = blockIdx.x * kThreads + threadIdx.x;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  int value = i < count ? in[i] : 0;
  for (int step = 1; step < 32; step *= 2) {
    const int before = __shfl_up_sync(~0u, value, step);
    if (lane >= step) value += before;
  }
  if (lane == 31) warps[warp] = value;
  __syncthreads();
  if (warp == 0) {
    int sum = lane < kThreads / 32 ? warps[lane] : 0;
    for (int step = 1; step < kThreads / 32; step *= 2) {
      const int before = __shfl_up_sync(~0u, sum, step);
      if (lane >= step) sum += before;
    }
    if (lane < kThreads / 32) warps[lane] = sum;
  }
  __syncthreads();
  if (warp > 0) value += warps[warp - 1];
  if (i < count) out[i] = value;
  if (sums != nullptr && threadIdx.x == kThreads - 1) sums[blockIdx.x] = value;
}

__global__ void add_sums(int* out, const int* sums, int count) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (blockIdx.x > 0 && i < count) out[i] += sums[blockIdx.x - 1];
}

int main() {
  const int count = 40000, blocks = (count + kThreads - 1) / kThreads;
  static_assert(blocks <= kThreads);
  unsigned seed = 4;
  std::vector<int> in(count), out(count);
  for (int& x : in) x = static_cast<int>(next_number(seed) >> 24);
  int *device_in, *device_out, *sums, *scanned;
  CHECK(cudaMalloc(&device_in, count * sizeof(int)));
  CHECK(cudaMalloc(&device_out, count * sizeof(int)));
  CHECK(cudaMalloc(&sums, blocks * sizeof(int)));
  CHECK(cudaMalloc(&scanned, blocks * sizeof(int)));
  CHECK(cudaMemcpy(device_in, in.data(), count * sizeof(int), cudaMemcpyHostToDevice));
  scan_blocks<<<blocks, kThreads>>>(device_in, device_out, sums, count);
  scan_blocks<<<1, kThreads>>>(sums, scanned, nullptr, blocks);
  add_sums<<<blocks, kThreads>>>(device_out, scanned, count);
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(out.data(), device_out, count * sizeof(int), cudaMemcpyDeviceToHost));
  int sum = 0;
  for (int i = 0; i < count; ++i) {
    sum += in[i];
    EXPECT(out[i] == sum);
  }
  std::printf("%d prefix sums are right\n", count);
  return 0;
}
