// A stencil with its weights in constant memory, on halves of a line. The halves are in two streams
// that wait for each other by events. Page-locked memory and asynchronous copies.

#include <vector>

#include "check.h"

constexpr int kRadius = 3;

__constant__ float weights[2 * kRadius + 1];

__global__ void smooth(const float* in, float* out, int begin, int end, int count) {
  extern __shared__ float line[];
  const int first = begin + blockIdx.x * blockDim.x;
  for (int i = threadIdx.x; i < static_cast<int>(blockDim.x) + 2 * kRadius; i += blockDim.x) {
    const int at = first + i - kRadius;
    line[i] = at >= 0 && at < count ? in[at] : 0;
  }
  __syncthreads();
  const int at = first + threadIdx.x;
  if (at >= end) return;
  float sum = 0;
  for (int k = 0; k <= 2 * kRadius; ++k) sum += weights[k] * line[threadIdx.x + k];
  out[at] = sum;
}

int main() {
  const int count = 12000, half = count / 2, steps = 4, threads = 128;
  const float w[2 * kRadius + 1] = {0.02f, 0.08f, 0.2f, 0.4f, 0.2f, 0.08f, 0.02f};
  CHECK(cudaMemcpyToSymbol(weights, w, sizeof(w)));
  float* host;
  CHECK(cudaMallocHost(&host, count * sizeof(float)));
  unsigned seed = 7;
  std::vector<float> expected(count);
  for (int i = 0; i < count; ++i) expected[i] = host[i] = next_float(seed);

  float* line[2];
  cudaStream_t stream[2];
  cudaEvent_t done[2];
  for (int i = 0; i < 2; ++i) {
    CHECK(cudaMalloc(&line[i], count * sizeof(float)));
    CHECK(cudaStreamCreateWithFlags(&stream[i], cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&done[i], cudaEventDisableTiming));
  }
  CHECK(cudaMemcpyAsync(line[0], host, count * sizeof(float), cudaMemcpyHostToDevice, stream[0]));
  CHECK(cudaEventRecord(done[0], stream[0]));
  CHECK(cudaStreamWaitEvent(stream[1], done[0]));
  for (int step = 0; step < steps; ++step) {
    for (int i = 0; i < 2; ++i) {
      smooth<<<(half + threads - 1) / threads, threads, (threads + 2 * kRadius) * sizeof(float),
               stream[i]>>>(line[step % 2], line[1 - step % 2], i * half, (i + 1) * half, count);
      CHECK(cudaGetLastError());
      CHECK(cudaEventRecord(done[i], stream[i]));
    }
    // Each half reads the edge that the other half writes.
    CHECK(cudaStreamWaitEvent(stream[0], done[1]));
    CHECK(cudaStreamWaitEvent(stream[1], done[0]));
  }
  CHECK(cudaMemcpyAsync(host, line[steps % 2], count * sizeof(float), cudaMemcpyDeviceToHost,
                        stream[0]));
  CHECK(cudaStreamSynchronize(stream[0]));
  EXPECT(cudaStreamQuery(stream[1]) == cudaSuccess);
  for (int step = 0; step < steps; ++step) {
    const std::vector<float> in = expected;
    for (int i = 0; i < count; ++i) {
      float sum = 0;
      for (int k = -kRadius; k <= kRadius; ++k) {
        if (i + k >= 0 && i + k < count) sum += w[k + kRadius] * in[i + k];
      }
      expected[i] = sum;
    }
  }
  for (int i = 0; i < count; ++i) EXPECT(near(host[i], expected[i], 1e-5));
  for (int i = 0; i < 2; ++i) {
    CHECK(cudaFree(line[i]));
    CHECK(cudaStreamDestroy(stream[i]));
    CHECK(cudaEventDestroy(done[i]));
  }
  CHECK(cudaFreeHost(host));
  std::printf("%d steps over %d numbers are right\n", steps, count);
  return 0;
}
