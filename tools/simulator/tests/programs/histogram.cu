// Counts bytes: atomics in shared memory, then in global memory.

#include <vector>

#include "check.h"

constexpr int kBins = 256;

__device__ unsigned counts[kBins];

__global__ void count_bytes(const unsigned char* bytes, int count) {
  __shared__ unsigned mine[kBins];
  for (int i = threadIdx.x; i < kBins; i += blockDim.x) mine[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    atomicAdd(&mine[bytes[i]], 1u);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < kBins; i += blockDim.x) {
    if (mine[i] != 0) atomicAdd(&counts[i], mine[i]);
  }
}

int main() {
  const int count = 40001;
  unsigned seed = 5;
  std::vector<unsigned char> bytes(count);
  std::vector<unsigned> expected(kBins), found(kBins);
  for (unsigned char& x : bytes) {
    const unsigned number = next_number(seed) >> 16;
    x = static_cast<unsigned char>((number & 255) * (number >> 8 & 255) >> 8);
    ++expected[x];
  }
  unsigned char* device_bytes;
  CHECK(cudaMalloc(&device_bytes, count));
  CHECK(cudaMemcpy(device_bytes, bytes.data(), count, cudaMemcpyHostToDevice));
  std::size_t size = 0;
  void* address = nullptr;
  CHECK(cudaGetSymbolSize(&size, counts));
  CHECK(cudaGetSymbolAddress(&address, counts));
  EXPECT(size == sizeof(counts));
  for (int turn = 1; turn <= 2; ++turn) {
    CHECK(cudaMemsetAsync(address, 0, size));
    count_bytes<<<12, 192>>>(device_bytes, count);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpyFromSymbol(found.data(), counts, size));
    EXPECT(found == expected);
  }
  std::printf("%d bytes are counted\n", count);
  return 0;
}
