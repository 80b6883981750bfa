// Virtual functions, and pointers to functions: in a table on the device, taken by a kernel, and
// read by the host and passed to a kernel.

#include "check.h"

struct Shape {
  __device__ virtual float area() const = 0;
  __device__ virtual float scaled(float by) const { return by * area(); }
};
struct Square : Shape {
  float side;
  __device__ explicit Square(float side) : side(side) {}
  __device__ float area() const override { return side * side; }
};
struct Rectangle : Square {
  float height;
  __device__ Rectangle(float width, float height) : Square(width), height(height) {}
  __device__ float area() const override { return side * height; }
  __device__ float scaled(float by) const override { return 2 * by * area(); }
};

using Function = float (*)(float);
__device__ __noinline__ float twice(float x) { return 2 * x; }
__device__ __noinline__ float square(float x) { return x * x; }
__device__ __noinline__ float negative(float x) { return -x; }
__device__ Function table[3] = {twice, square, negative};

__global__ void by_table(float* out, int count) {
  const int i = static_cast<int>(threadIdx.x);
  out[i] = table[i % count](static_cast<float>(i));
}

__global__ void by_argument(float* out, Function function) {
  // Only half of the lanes make the call.
  const int i = static_cast<int>(threadIdx.x);
  if (i % 2 == 0) out[i] = function(static_cast<float>(i));
}

__global__ void by_virtual(float* out, int count) {
  const int i = static_cast<int>(threadIdx.x);
  const Square first(static_cast<float>(i));
  const Rectangle second(static_cast<float>(i), 3);
  const Shape* const shapes[2] = {&first, &second};
  out[i] = shapes[i % count]->area() + shapes[(i / 2) % count]->scaled(10);
}

int main() {
  constexpr int kThreads = 64;
  float* device;
  CHECK(cudaMalloc(&device, kThreads * sizeof(float)));
  CHECK(cudaMemset(device, 0, kThreads * sizeof(float)));
  float out[kThreads];
  const auto fetch = [&] {
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(out, device, sizeof(out), cudaMemcpyDeviceToHost));
  };

  by_table<<<1, kThreads>>>(device, 3);
  fetch();
  for (int i = 0; i < kThreads; ++i) {
    const auto x = static_cast<float>(i);
    EXPECT(out[i] == (i % 3 == 0 ? 2 * x : i % 3 == 1 ? x * x : -x));
  }

  Function functions[3];
  CHECK(cudaMemcpyFromSymbol(functions, table, sizeof(functions)));
  by_argument<<<1, kThreads>>>(device, functions[1]);
  fetch();
  for (int i = 0; i < kThreads; i += 2) EXPECT(out[i] == static_cast<float>(i * i));

  by_virtual<<<1, kThreads>>>(device, 2);
  fetch();
  for (int i = 0; i < kThreads; ++i) {
    const auto x = static_cast<float>(i);
    const float area = i % 2 == 0 ? x * x : 3 * x;
    const float scaled = (i / 2) % 2 == 0 ? 10 * (x * x) : 20 * (3 * x);
    EXPECT(out[i] == area + scaled);
  }
  std::printf("%d threads have called through pointers\n", kThreads);
  return 0;
}
