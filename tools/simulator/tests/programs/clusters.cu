// Blocks of a cluster read each other's shared memory. The launch has attributes. For sm_90.

#include <cooperative_groups.h>

#include <vector>

#include "check.h"

namespace cg = cooperative_groups;

// Each block writes its rank, and reads the next block's.
__global__ void rotate(int* out) {
  __shared__ int mine[32];
  const cg::cluster_group cluster = cg::this_cluster();
  mine[threadIdx.x] = static_cast<int>(blockIdx.x * 100 + threadIdx.x);
  cluster.sync();
  const unsigned next = (cluster.block_rank() + 1) % cluster.num_blocks();
  out[blockIdx.x * 32 + threadIdx.x] = cluster.map_shared_rank(mine, next)[threadIdx.x];
  cluster.sync();
}

int main() {
  const int blocks = 8, size = 4;
  int* device;
  CHECK(cudaMalloc(&device, blocks * 32 * sizeof(int)));
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = size;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = blocks;
  config.blockDim = 32;
  config.attrs = &attribute;
  config.numAttrs = 1;
  CHECK(cudaLaunchKernelEx(&config, rotate, device));
  std::vector<int> out(blocks * 32);
  CHECK(cudaMemcpy(out.data(), device, out.size() * sizeof(int), cudaMemcpyDeviceToHost));
  for (int block = 0; block < blocks; ++block) {
    const int next = block / size * size + (block + 1) % size;
    for (int i = 0; i < 32; ++i) EXPECT(out[block * 32 + i] == next * 100 + i);
  }
  std::printf("%d blocks read each other's memory\n", blocks);
  return 0;
}
