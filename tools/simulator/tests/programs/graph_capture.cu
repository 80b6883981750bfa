// Records a diamond of work on two streams once, and runs the graph several times. The graph has
// copies, a fill, kernels and a function of the host.

#include <vector>

#include "check.h"

__global__ void scale(float* values, float factor, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] *= factor;
}

__global__ void accumulate(float* sum, const float* a, const float* b, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) sum[i] += a[i] + b[i];
}

void count_call(void* data) { ++*static_cast<int*>(data); }

int main() {
  const int count = 5000, threads = 128, blocks = (count + threads - 1) / threads, runs = 3;
  const std::size_t bytes = count * sizeof(float);
  float *host, *a, *b, *sum;
  CHECK(cudaMallocHost(&host, bytes));
  CHECK(cudaMalloc(&a, bytes));
  CHECK(cudaMalloc(&b, bytes));
  CHECK(cudaMalloc(&sum, bytes));
  CHECK(cudaMemset(sum, 0, bytes));
  cudaStream_t one, two;
  cudaEvent_t fork, join;
  CHECK(cudaStreamCreate(&one));
  CHECK(cudaStreamCreate(&two));
  CHECK(cudaEventCreate(&fork));
  CHECK(cudaEventCreate(&join));
  int calls = 0;

  CHECK(cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal));
  CHECK(cudaMemcpyAsync(a, host, bytes, cudaMemcpyHostToDevice, one));
  CHECK(cudaEventRecord(fork, one));
  CHECK(cudaStreamWaitEvent(two, fork));
  CHECK(cudaMemsetAsync(b, 0, bytes, two));
  scale<<<blocks, threads, 0, two>>>(b, 3, count);
  scale<<<blocks, threads, 0, one>>>(a, 2, count);
  CHECK(cudaLaunchHostFunc(two, count_call, &calls));
  CHECK(cudaEventRecord(join, two));
  CHECK(cudaStreamWaitEvent(one, join));
  accumulate<<<blocks, threads, 0, one>>>(sum, a, b, count);
  cudaStreamCaptureStatus status;
  CHECK(cudaStreamIsCapturing(one, &status));
  EXPECT(status == cudaStreamCaptureStatusActive);
  cudaGraph_t graph;
  CHECK(cudaStreamEndCapture(one, &graph));
  EXPECT(calls == 0);  // no work has run

  cudaGraphExec_t exec;
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  std::vector<float> expected(count), result(count);
  for (int run = 1; run <= runs; ++run) {
    for (int i = 0; i < count; ++i) {
      host[i] = static_cast<float>(i % 100 + run);
      expected[i] += 2 * host[i];
    }
    CHECK(cudaGraphLaunch(exec, one));
    CHECK(cudaStreamSynchronize(one));
  }
  EXPECT(calls == runs);
  CHECK(cudaMemcpy(result.data(), sum, bytes, cudaMemcpyDeviceToHost));
  EXPECT(result == expected);
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaStreamDestroy(two));
  CHECK(cudaStreamDestroy(one));
  CHECK(cudaFreeHost(host));
  std::printf("%d runs of the graph are right\n", runs);
  return 0;
}
