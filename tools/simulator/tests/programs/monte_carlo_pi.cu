// Estimates pi from random points, with a generator for each thread. A kernel calls printf.

#include "check.h"

__device__ unsigned long long inside;

__device__ unsigned next_random(unsigned long long& state) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return static_cast<unsigned>(state >> 32);
}

__global__ void throw_points(int points, unsigned long long seed) {
  unsigned long long state =
      seed + (blockIdx.x * blockDim.x + threadIdx.x + 1) * 0x9e3779b97f4a7c15ull;
  for (int i = 0; i < 4; ++i) next_random(state);
  int hits = 0;
  for (int i = 0; i < points; ++i) {
    const float x = next_random(state) * 0x1p-32f, y = next_random(state) * 0x1p-32f;
    hits += x * x + y * y < 1;
  }
  hits = __reduce_add_sync(~0u, hits);
  if (threadIdx.x % 32 == 0) atomicAdd(&inside, static_cast<unsigned long long>(hits));
  if (blockIdx.x == 0 && threadIdx.x == 0) printf("the first warp has %d hits\n", hits);
}

int main() {
  const int blocks = 16, threads = 128, points = 40;
  const unsigned long long zero = 0;
  CHECK(cudaMemcpyToSymbol(inside, &zero, sizeof(zero)));
  throw_points<<<blocks, threads>>>(points, 6);
  CHECK(cudaGetLastError());
  unsigned long long hits = 0;
  CHECK(cudaMemcpyFromSymbol(&hits, inside, sizeof(hits)));
  const double pi = 4.0 * static_cast<double>(hits) / (double(blocks) * threads * points);
  std::printf("pi is about %.4f\n", pi);
  return std::fabs(pi - 3.14159265) < 0.03 ? 0 : 1;
}
