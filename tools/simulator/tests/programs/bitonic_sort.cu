// Sorts by a bitonic network. Steps with a stride within a block run in shared memory, and each
// longer stride is a launch.

#include <algorithm>
#include <vector>

#include "check.h"

constexpr int kBlock = 512;  // numbers of a block, two for each thread

__device__ void order(unsigned& a, unsigned& b, bool up) {
  if ((a > b) == up) {
    const unsigned other = a;
    a = b;
    b = other;
  }
}

// Runs all steps whose stride is within the block, of phases first_size to last_size.
__global__ void sort_blocks(unsigned* numbers, int first_size, int last_size) {
  __shared__ unsigned mine[kBlock];
  const int base = blockIdx.x * kBlock;
  mine[threadIdx.x] = numbers[base + threadIdx.x];
  mine[threadIdx.x + kBlock / 2] = numbers[base + threadIdx.x + kBlock / 2];
  for (int size = first_size; size <= last_size; size *= 2) {
    for (int stride = min(size, kBlock) / 2; stride > 0; stride /= 2) {
      __syncthreads();
      const int i = 2 * threadIdx.x - (threadIdx.x & (stride - 1));
      order(mine[i], mine[i + stride], ((base + i) & size) == 0);
    }
  }
  __syncthreads();
  numbers[base + threadIdx.x] = mine[threadIdx.x];
  numbers[base + threadIdx.x + kBlock / 2] = mine[threadIdx.x + kBlock / 2];
}

__global__ void merge_step(unsigned* numbers, int size, int stride) {
  const int thread = blockIdx.x * blockDim.x + threadIdx.x;
  const int i = 2 * thread - (thread & (stride - 1));
  order(numbers[i], numbers[i + stride], (i & size) == 0);
}

int main() {
  const int count = 8192;
  unsigned seed = 8;
  std::vector<unsigned> numbers(count);
  for (unsigned& x : numbers) x = next_number(seed);
  unsigned* device;
  CHECK(cudaMallocAsync(&device, count * sizeof(unsigned), nullptr));
  CHECK(cudaMemcpy(device, numbers.data(), count * sizeof(unsigned), cudaMemcpyHostToDevice));
  sort_blocks<<<count / kBlock, kBlock / 2>>>(device, 2, kBlock);
  for (int size = 2 * kBlock; size <= count; size *= 2) {
    for (int stride = size / 2; stride >= kBlock; stride /= 2) {
      merge_step<<<count / kBlock, kBlock / 2>>>(device, size, stride);
    }
    sort_blocks<<<count / kBlock, kBlock / 2>>>(device, size, size);
  }
  CHECK(cudaGetLastError());
  std::vector<unsigned> sorted(count);
  CHECK(cudaMemcpy(sorted.data(), device, count * sizeof(unsigned), cudaMemcpyDeviceToHost));
  std::sort(numbers.begin(), numbers.end());
  EXPECT(sorted == numbers);
  CHECK(cudaFreeAsync(device, nullptr));
  CHECK(cudaDeviceSynchronize());
  std::printf("%d numbers are sorted\n", count);
  return 0;
}
