// Multiplies matrices by tiles in shared memory, of a static and of a dynamic size.

#include <vector>

#include "check.h"

constexpr int kTile = 16;

__global__ void multiply(const float* a, const float* b, float* c, int rows, int inner,
                         int columns) {
  __shared__ float tile_a[kTile][kTile];
  __shared__ float tile_b[kTile][kTile];
  const int row = blockIdx.y * kTile + threadIdx.y;
  const int column = blockIdx.x * kTile + threadIdx.x;
  float sum = 0;
  for (int begin = 0; begin < inner; begin += kTile) {
    const int k_a = begin + threadIdx.x, k_b = begin + threadIdx.y;
    tile_a[threadIdx.y][threadIdx.x] = row < rows && k_a < inner ? a[row * inner + k_a] : 0;
    tile_b[threadIdx.y][threadIdx.x] =
        k_b < inner && column < columns ? b[k_b * columns + column] : 0;
    __syncthreads();
    for (int k = 0; k < kTile; ++k) sum += tile_a[threadIdx.y][k] * tile_b[k][threadIdx.x];
    __syncthreads();
  }
  if (row < rows && column < columns) c[row * columns + column] = sum;
}

// Does the same with a strip of whole rows of a, which needs more than 48 KiB.
__global__ void multiply_strip(const float* a, const float* b, float* c, int rows, int inner,
                               int columns) {
  extern __shared__ float strip[];
  const int first = blockIdx.y * blockDim.y;
  const int thread = threadIdx.y * blockDim.x + threadIdx.x;
  const int threads = blockDim.x * blockDim.y;
  for (int i = thread; i < static_cast<int>(blockDim.y) * inner; i += threads) {
    strip[i] = first * inner + i < rows * inner ? a[first * inner + i] : 0;
  }
  __syncthreads();
  const int row = first + threadIdx.y;
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows || column >= columns) return;
  float sum = 0;
  for (int k = 0; k < inner; ++k) sum += strip[threadIdx.y * inner + k] * b[k * columns + column];
  c[row * columns + column] = sum;
}

int main() {
  const int rows = 50, inner = 70, columns = 40;
  unsigned seed = 2;
  std::vector<float> a(rows * inner), b(inner * columns), c(rows * columns);
  for (float& x : a) x = next_float(seed) - 0.5f;
  for (float& x : b) x = next_float(seed) - 0.5f;
  float *device_a, *device_b, *device_c;
  CHECK(cudaMalloc(&device_a, a.size() * sizeof(float)));
  CHECK(cudaMalloc(&device_b, b.size() * sizeof(float)));
  CHECK(cudaMalloc(&device_c, c.size() * sizeof(float)));
  CHECK(cudaMemcpy(device_a, a.data(), a.size() * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(device_b, b.data(), b.size() * sizeof(float), cudaMemcpyHostToDevice));

  const auto check = [&] {
    CHECK(cudaMemcpy(c.data(), device_c, c.size() * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < rows; ++i) {
      for (int j = 0; j < columns; ++j) {
        double sum = 0;
        for (int k = 0; k < inner; ++k) sum += double(a[i * inner + k]) * b[k * columns + j];
        EXPECT(near(c[i * columns + j], sum, 1e-5));
      }
    }
    CHECK(cudaMemset(device_c, 0xff, c.size() * sizeof(float)));
  };
  const dim3 block(kTile, kTile), grid((columns + kTile - 1) / kTile, (rows + kTile - 1) / kTile);
  multiply<<<grid, block>>>(device_a, device_b, device_c, rows, inner, columns);
  CHECK(cudaGetLastError());
  check();

  const int bytes = 64 * 1024;
  multiply_strip<<<grid, block, bytes>>>(device_a, device_b, device_c, rows, inner, columns);
  EXPECT(cudaGetLastError() == cudaErrorInvalidValue);  // until the attribute allows it
  CHECK(cudaFuncSetAttribute(multiply_strip, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  multiply_strip<<<grid, block, bytes>>>(device_a, device_b, device_c, rows, inner, columns);
  CHECK(cudaGetLastError());
  check();
  int blocks = 0;
  CHECK(
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, multiply_strip, kTile * kTile, bytes));
  EXPECT(blocks == 2 || blocks == 3);  // blocks of 64 KiB each
  cudaFuncAttributes attributes;
  CHECK(cudaFuncGetAttributes(&attributes, multiply));
  EXPECT(attributes.sharedSizeBytes == 2 * kTile * kTile * sizeof(float));
  std::printf("two products are right\n");
  return 0;
}
