// Adds two vectors: allocations, copies, a launch, the properties of the device.

#include <vector>

#include "check.h"

__global__ void add(const float* a, const float* b, float* sum, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) sum[i] = a[i] + b[i];
}

int main() {
  const int count = 50000;
  unsigned seed = 1;
  std::vector<float> a(count), b(count), sum(count);
  for (int i = 0; i < count; ++i) {
    a[i] = next_float(seed);
    b[i] = next_float(seed);
  }
  int devices = 0;
  CHECK(cudaGetDeviceCount(&devices));
  EXPECT(devices > 0);
  cudaDeviceProp properties;
  CHECK(cudaGetDeviceProperties(&properties, 0));
  EXPECT(properties.warpSize == 32 && properties.maxThreadsPerBlock == 1024);
  EXPECT(properties.maxGridSize[0] == 2147483647 && properties.maxThreadsDim[2] == 64);
  EXPECT(properties.totalGlobalMem > 0 && properties.major >= 8);

  float *device_a, *device_b, *device_sum;
  const std::size_t bytes = count * sizeof(float);
  CHECK(cudaMalloc(&device_a, bytes));
  CHECK(cudaMalloc(&device_b, bytes));
  CHECK(cudaMalloc(&device_sum, bytes));
  CHECK(cudaMemcpy(device_a, a.data(), bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(device_b, b.data(), bytes, cudaMemcpyDefault));
  add<<<(count + 255) / 256, 256>>>(device_a, device_b, device_sum, count);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(sum.data(), device_sum, bytes, cudaMemcpyDeviceToHost));
  for (int i = 0; i < count; ++i) EXPECT(sum[i] == a[i] + b[i]);

  // An error that is not sticky is returned once.
  add<<<1, 2048>>>(device_a, device_b, device_sum, count);
  EXPECT(cudaPeekAtLastError() == cudaErrorInvalidConfiguration);
  EXPECT(cudaGetLastError() == cudaErrorInvalidConfiguration);
  EXPECT(cudaGetLastError() == cudaSuccess);
  cudaPointerAttributes attributes;
  CHECK(cudaPointerGetAttributes(&attributes, device_sum));
  EXPECT(attributes.type == cudaMemoryTypeDevice && attributes.device == 0);
  CHECK(cudaPointerGetAttributes(&attributes, sum.data()));
  EXPECT(attributes.type == cudaMemoryTypeUnregistered);
  CHECK(cudaFree(device_a));
  CHECK(cudaFree(device_b));
  CHECK(cudaFree(device_sum));
  std::printf("%d sums are right on %s\n", count, properties.name);
  return 0;
}
