// Kernels that allocate memory: with new and delete within a kernel, and with malloc for a later
// kernel.

#include "check.h"

struct Node {
  int value;
  Node* next;
};

// Each thread builds a list from 0 to its number.
__global__ void build(Node** heads, int* failures) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  Node* head = nullptr;
  for (int value = 0; value <= i; ++value) {
    auto* node = static_cast<Node*>(malloc(sizeof(Node)));
    if (node == nullptr) {
      atomicAdd(failures, 1);
      break;
    }
    *node = {value, head};
    head = node;
  }
  heads[i] = head;
}

__global__ void add_and_free(Node** heads, int* sums) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  int sum = 0;
  for (Node* node = heads[i]; node != nullptr;) {
    Node* const next = node->next;
    sum += node->value;
    free(node);
    node = next;
  }
  sums[i] = sum;
}

__global__ void squares(int* out, int count) {
  int* const numbers = new int[count];
  for (int i = 0; i < count; ++i) numbers[i] = i * i;
  int sum = 0;
  for (int i = 0; i < count; ++i) sum += numbers[i];
  delete[] numbers;
  out[threadIdx.x] = sum;
}

int main() {
  constexpr int kThreads = 96;
  Node** heads;
  int* sums;
  int* failures;
  CHECK(cudaMalloc(&heads, kThreads * sizeof(Node*)));
  CHECK(cudaMalloc(&sums, kThreads * sizeof(int)));
  CHECK(cudaMallocManaged(&failures, sizeof(int)));
  *failures = 0;
  for (int turn = 0; turn < 2; ++turn) {
    build<<<3, kThreads / 3>>>(heads, failures);
    add_and_free<<<3, kThreads / 3>>>(heads, sums);
    int found[kThreads];
    CHECK(cudaMemcpy(found, sums, sizeof(found), cudaMemcpyDeviceToHost));
    for (int i = 0; i < kThreads; ++i) EXPECT(found[i] == i * (i + 1) / 2);
  }
  EXPECT(*failures == 0);

  squares<<<1, 32>>>(sums, 40);
  int found = 0;
  CHECK(cudaMemcpy(&found, sums, sizeof(int), cudaMemcpyDeviceToHost));
  EXPECT(found == 39 * 40 * 79 / 6);

  // Now the heap has no room.
  CHECK(cudaDeviceReset());
  CHECK(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 1024));
  std::size_t limit = 0;
  CHECK(cudaDeviceGetLimit(&limit, cudaLimitMallocHeapSize));
  EXPECT(limit == 1024);
  CHECK(cudaMalloc(&heads, kThreads * sizeof(Node*)));
  CHECK(cudaMallocManaged(&failures, sizeof(int)));
  *failures = 0;
  build<<<3, kThreads / 3>>>(heads, failures);
  CHECK(cudaDeviceSynchronize());
  EXPECT(*failures > 0);
  std::printf("lists and arrays of the device's heap are right\n");
  return 0;
}
