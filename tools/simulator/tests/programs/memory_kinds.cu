// All kinds of memory: managed allocations and variables, page-locked memory that kernels read,
// registered memory, rows with a pitch, boxes, pools.

#include <cstring>
#include <vector>

#include "check.h"

__managed__ int total = 7;

__global__ void add_up(int* numbers) {
  atomicAdd(&total, numbers[threadIdx.x]);
  numbers[threadIdx.x] *= 2;
}

__global__ void double_rows(float* rows, std::size_t pitch, int width) {
  float* const row = reinterpret_cast<float*>(reinterpret_cast<char*>(rows) + blockIdx.x * pitch);
  if (threadIdx.x < width) row[threadIdx.x] *= 2;
}

void managed() {
  EXPECT(total == 7);
  total = 10;
  int* numbers;
  CHECK(cudaMallocManaged(&numbers, 32 * sizeof(int)));
  for (int i = 0; i < 32; ++i) numbers[i] = i;
  add_up<<<1, 32>>>(numbers);
  CHECK(cudaDeviceSynchronize());
  EXPECT(total == 10 + 31 * 16 && numbers[31] == 62);
  cudaPointerAttributes attributes;
  CHECK(cudaPointerGetAttributes(&attributes, numbers));
  EXPECT(attributes.type == cudaMemoryTypeManaged);
  CHECK(cudaFree(numbers));
}

void mapped() {
  int *host, *device;
  CHECK(cudaHostAlloc(&host, 32 * sizeof(int), cudaHostAllocMapped));
  CHECK(cudaHostGetDevicePointer(&device, host, 0));
  for (int i = 0; i < 32; ++i) host[i] = 1;
  total = 0;
  add_up<<<1, 32>>>(device);
  CHECK(cudaDeviceSynchronize());
  EXPECT(total == 32 && host[0] == 2);
  CHECK(cudaFreeHost(host));

  std::vector<int> own(1024, 3);
  CHECK(cudaHostRegister(own.data(), own.size() * sizeof(int), cudaHostRegisterMapped));
  CHECK(cudaHostGetDevicePointer(&device, own.data(), 0));
  add_up<<<1, 32>>>(device);
  CHECK(cudaDeviceSynchronize());
  EXPECT(total == 32 + 96 && own[31] == 6 && own[32] == 3);
  CHECK(cudaHostUnregister(own.data()));
}

void pitched() {
  const int width = 10, height = 5, depth = 3;
  std::vector<float> rows(width * height);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<float>(i);
  float* device;
  std::size_t pitch;
  const std::size_t bytes = width * sizeof(float);
  CHECK(cudaMallocPitch(&device, &pitch, bytes, height));
  CHECK(cudaMemset2D(device, pitch, 0xff, bytes, height));
  CHECK(cudaMemcpy2D(device, pitch, rows.data(), bytes, bytes, height, cudaMemcpyHostToDevice));
  double_rows<<<height, 32>>>(device, pitch, width);
  CHECK(
      cudaMemcpy2DAsync(rows.data(), bytes, device, pitch, bytes, height, cudaMemcpyDeviceToHost));
  CHECK(cudaDeviceSynchronize());
  for (std::size_t i = 0; i < rows.size(); ++i) EXPECT(rows[i] == 2 * static_cast<float>(i));
  EXPECT(cudaMemcpy2D(device, pitch, rows.data(), bytes - 1, bytes, height, cudaMemcpyDefault) ==
         cudaErrorInvalidPitchValue);
  cudaGetLastError();
  CHECK(cudaFree(device));

  cudaPitchedPtr box;
  const cudaExtent extent = make_cudaExtent(bytes, height, depth);
  std::vector<float> in(width * height * depth, 3), out(in.size());
  CHECK(cudaMalloc3D(&box, extent));
  CHECK(cudaMemset3D(box, 0, extent));
  cudaMemcpy3DParms copy = {};
  copy.srcPtr = make_cudaPitchedPtr(in.data(), bytes, width, height);
  copy.dstPtr = box;
  copy.extent = extent;
  copy.kind = cudaMemcpyHostToDevice;
  CHECK(cudaMemcpy3D(&copy));
  copy.srcPtr = box;
  copy.dstPtr = make_cudaPitchedPtr(out.data(), bytes, width, height);
  copy.kind = cudaMemcpyDefault;
  CHECK(cudaMemcpy3D(&copy));
  EXPECT(in == out);
  CHECK(cudaFree(box.ptr));
}

void pools() {
  cudaMemPoolProps properties = {};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location = {cudaMemLocationTypeDevice, 0};
  cudaMemPool_t pool;
  cudaStream_t stream;
  int* numbers;
  CHECK(cudaMemPoolCreate(&pool, &properties));
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaMallocFromPoolAsync(&numbers, 32 * sizeof(int), pool, stream));
  CHECK(cudaMemsetAsync(numbers, 0, 32 * sizeof(int), stream));
  add_up<<<1, 32, 0, stream>>>(numbers);
  CHECK(cudaFreeAsync(numbers, stream));
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaStreamDestroy(stream));
  CHECK(cudaMemPoolDestroy(pool));
}

int main() {
  managed();
  mapped();
  pitched();
  pools();
  std::printf("all kinds of memory hold what they should\n");
  return 0;
}
