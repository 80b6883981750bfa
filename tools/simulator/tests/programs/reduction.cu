// Computes sums and maxima: by shuffles, by cooperative groups, and by the last block that arrives.

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

#include <algorithm>
#include <vector>

#include "check.h"

namespace cg = cooperative_groups;

__device__ unsigned arrived;

__device__ float warp_sum(float value) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(~0u, value, step);
  return value;
}

__device__ float block_sum(float value) {
  __shared__ float partial[32];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  value = warp_sum(value);
  if (lane == 0) partial[warp] = value;
  __syncthreads();
  value = threadIdx.x < blockDim.x / 32 ? partial[lane] : 0;
  if (warp == 0) value = warp_sum(value);
  __syncthreads();
  return value;
}

// A single launch: the last block adds the sums of all blocks.
__global__ void sum_all(const float* values, int count, float* sums, float* total) {
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    sum += values[i];
  }
  sum = block_sum(sum);
  __shared__ bool last;
  if (threadIdx.x == 0) {
    sums[blockIdx.x] = sum;
    __threadfence();
    last = atomicAdd(&arrived, 1) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  if (!last) return;
  sum = block_sum(threadIdx.x < gridDim.x ? sums[threadIdx.x] : 0);
  if (threadIdx.x == 0) {
    *total = sum;
    arrived = 0;
  }
}

__global__ void max_of_tiles(const int* values, int count, int* greatest) {
  const cg::thread_block block = cg::this_thread_block();
  const auto tile = cg::tiled_partition<16>(block);
  const int i = static_cast<int>(cg::this_grid().thread_rank());
  const int most = cg::reduce(tile, i < count ? values[i] : -1, cg::greater<int>());
  if (tile.thread_rank() == 0) atomicMax(greatest, most);
}

int main() {
  const int count = 30000;
  unsigned seed = 3;
  std::vector<float> values(count);
  std::vector<int> numbers(count);
  double expected = 0;
  for (int i = 0; i < count; ++i) {
    values[i] = next_float(seed);
    numbers[i] = static_cast<int>(next_number(seed) >> 1);
    expected += values[i];
  }
  const int blocks = 24;
  float *device_values, *sums, *total;
  int *device_numbers, *greatest;
  CHECK(cudaMalloc(&device_values, count * sizeof(float)));
  CHECK(cudaMalloc(&device_numbers, count * sizeof(int)));
  CHECK(cudaMalloc(&sums, blocks * sizeof(float)));
  CHECK(cudaMalloc(&total, sizeof(float)));
  CHECK(cudaMalloc(&greatest, sizeof(int)));
  CHECK(cudaMemcpy(device_values, values.data(), count * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(device_numbers, numbers.data(), count * sizeof(int), cudaMemcpyHostToDevice));
  CHECK(cudaMemset(greatest, 0, sizeof(int)));
  for (int turn = 0; turn < 2; ++turn) {
    float result = 0;
    sum_all<<<blocks, 128>>>(device_values, count, sums, total);
    CHECK(cudaMemcpy(&result, total, sizeof(float), cudaMemcpyDeviceToHost));
    EXPECT(near(result, expected, 1e-5));
  }
  max_of_tiles<<<(count + 127) / 128, 128>>>(device_numbers, count, greatest);
  CHECK(cudaGetLastError());
  int most = 0;
  CHECK(cudaMemcpy(&most, greatest, sizeof(int), cudaMemcpyDeviceToHost));
  EXPECT(most == *std::max_element(numbers.begin(), numbers.end()));
  std::printf("the sum and the maximum of %d numbers are right\n", count);
  return 0;
}
