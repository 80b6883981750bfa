// A program with a defect that a GPU rarely shows: a barrier is missing between the two uses of
// shared memory. The program exits with 1, and stderr has the line of the kernel.

#include "check.h"

__global__ void reverse(int* numbers) {
  __shared__ int mine[64];
  mine[threadIdx.x] = 0;
  __syncthreads();
  mine[threadIdx.x] = numbers[threadIdx.x];
  numbers[threadIdx.x] = mine[63 - threadIdx.x];  // needs __syncthreads() before
}

int main() {
  int* numbers;
  CHECK(cudaMalloc(&numbers, 64 * sizeof(int)));
  CHECK(cudaMemset(numbers, 0, 64 * sizeof(int)));
  reverse<<<1, 64>>>(numbers);
  CHECK(cudaGetLastError());
  EXPECT(cudaDeviceSynchronize() == cudaErrorLaunchFailure);
  EXPECT(cudaGetLastError() == cudaErrorLaunchFailure);  // the context is lost
  EXPECT(cudaMalloc(&numbers, 64) == cudaErrorLaunchFailure);
  CHECK(cudaDeviceReset());
  CHECK(cudaMalloc(&numbers, 64));
  return 1;
}
