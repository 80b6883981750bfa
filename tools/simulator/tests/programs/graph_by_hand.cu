// Builds a graph node by node: a fill, two kernels, a copy and a function of the host. Then it
// changes a parameter of the instantiated graph.

#include "check.h"

__global__ void add(int* numbers, int plus) { numbers[threadIdx.x] += plus; }

void count_call(void* data) { ++*static_cast<int*>(data); }

int main() {
  int *device, out[32], calls = 0, two = 2, forty = 40;
  CHECK(cudaMalloc(&device, sizeof(out)));
  cudaGraph_t graph;
  cudaGraphNode_t fill, first, second, copy, call;
  CHECK(cudaGraphCreate(&graph, 0));
  cudaMemsetParams memset = {};
  memset.dst = device;
  memset.value = 5;
  memset.elementSize = 4;
  memset.width = 32;
  memset.height = 1;
  CHECK(cudaGraphAddMemsetNode(&fill, graph, nullptr, 0, &memset));
  void* arguments[] = {&device, &two};
  cudaKernelNodeParams kernel = {};
  kernel.func = reinterpret_cast<void*>(add);
  kernel.gridDim = 1;
  kernel.blockDim = 32;
  kernel.kernelParams = arguments;
  CHECK(cudaGraphAddKernelNode(&first, graph, &fill, 1, &kernel));
  CHECK(cudaGraphAddKernelNode(&second, graph, &first, 1, &kernel));
  CHECK(cudaGraphAddMemcpyNode1D(&copy, graph, &second, 1, out, device, sizeof(out),
                                 cudaMemcpyDeviceToHost));
  cudaHostNodeParams host = {count_call, &calls};
  CHECK(cudaGraphAddHostNode(&call, graph, &copy, 1, &host));
  std::size_t nodes = 0;
  CHECK(cudaGraphGetNodes(graph, nullptr, &nodes));
  EXPECT(nodes == 5);
  cudaGraphNodeType type;
  CHECK(cudaGraphNodeGetType(copy, &type));
  EXPECT(type == cudaGraphNodeTypeMemcpy);
  cudaKernelNodeParams has;
  CHECK(cudaGraphKernelNodeGetParams(second, &has));
  EXPECT(has.func == reinterpret_cast<void*>(add) && has.blockDim.x == 32);

  cudaGraphExec_t exec;
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CHECK(cudaGraphLaunch(exec, nullptr));
  CHECK(cudaDeviceSynchronize());
  EXPECT(out[0] == 9 && out[31] == 9 && calls == 1);
  void* others[] = {&device, &forty};
  kernel.kernelParams = others;
  CHECK(cudaGraphExecKernelNodeSetParams(exec, second, &kernel));
  CHECK(cudaGraphLaunch(exec, nullptr));
  CHECK(cudaDeviceSynchronize());
  EXPECT(out[0] == 47 && calls == 2);
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaFree(device));
  std::printf("a graph of %zu nodes is right\n", nodes);
  return 0;
}
