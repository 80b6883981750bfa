// CUB, libcu++ and cooperative groups of the CUDA toolkit.
//
// VARIANT 0 (sm_80) and 1 (sm_90) are scan with decoupled look-back, reduction and radix sort over
// the whole device, block primitives, and groups of a warp and a block. VARIANT 2 (sm_80) and 3
// (sm_90a) are cuda::pipeline and cuda::barrier with memcpy_async, which use cp.async or bulk
// copies.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

#include <cub/cub.cuh>
#include <cuda/barrier>
#include <cuda/pipeline>

#include "support.h"

namespace groups = cooperative_groups;

constexpr int kThreads = 128, kTile = 512, kBlocks = 6;

// Each block sorts, scans and sums its own tile.
__global__ void blocks(const int* in, int* sorted, int* sums, float* totals) {
  using Sort = cub::BlockRadixSort<int, kThreads, kTile / kThreads>;
  using Scan = cub::BlockScan<int, kThreads>;
  using Reduce = cub::BlockReduce<int, kThreads>;
  __shared__ union {
    typename Sort::TempStorage sort;
    typename Scan::TempStorage scan;
    typename Reduce::TempStorage reduce;
  } memory;
  int items[kTile / kThreads];
  const int first = blockIdx.x * kTile;
  cub::LoadDirectBlocked(int(threadIdx.x), in + first, items);
  Sort(memory.sort).Sort(items);
  cub::StoreDirectBlocked(int(threadIdx.x), sorted + first, items);
  __syncthreads();
  Scan(memory.scan).InclusiveSum(items, items);
  cub::StoreDirectBlocked(int(threadIdx.x), sums + first, items);
  __syncthreads();
  const int total = Reduce(memory.reduce).Sum(items[0]);
  const groups::thread_block block = groups::this_thread_block();
  const auto tile = groups::tiled_partition<16>(block);
  const float part = groups::reduce(tile, float(items[1] & 1023), groups::plus<float>());
  if (tile.thread_rank() == 0) atomicAdd(&totals[blockIdx.x], part);
  if (threadIdx.x == 0) atomicAdd(&totals[blockIdx.x], float(total & 1023));
}

// Sums of windows of a stream. The stream passes through shared memory in stages.
__global__ void through_pipeline(const float* in, float* out, int tiles) {
  constexpr int kStages = 3;
  __shared__ alignas(16) float stage[kStages][kThreads * 4];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, kStages> state;
  auto block = groups::this_thread_block();
  auto pipe = cuda::make_pipeline(block, &state);
  int next = 0;
  for (int t = 0; t < tiles; ++t) {
    for (; next < tiles && next < t + kStages; ++next) {
      pipe.producer_acquire();
      cuda::memcpy_async(block, stage[next % kStages], in + next * kThreads * 4,
                         cuda::aligned_size_t<16>(sizeof stage[0]), pipe);
      pipe.producer_commit();
    }
    pipe.consumer_wait();
    float sum = 0;
    for (int i = 0; i < 4; ++i) sum += stage[t % kStages][(threadIdx.x * 5 + i) % (kThreads * 4)];
    pipe.consumer_release();
    out[t * kThreads + threadIdx.x] = sum;
  }
}

// This kernel copies the same tiles with a barrier and one copy at a time.
__global__ void through_barrier(const float* in, float* out, int tiles) {
  __shared__ alignas(128) float stage[kThreads * 4];
  using Barrier = cuda::barrier<cuda::thread_scope_block>;
#pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ Barrier barrier;
  auto block = groups::this_thread_block();
  if (threadIdx.x == 0) init(&barrier, kThreads);
  block.sync();
  for (int t = 0; t < tiles; ++t) {
    cuda::memcpy_async(block, stage, in + t * kThreads * 4, cuda::aligned_size_t<16>(sizeof stage),
                       barrier);
    barrier.arrive_and_wait();
    float sum = 0;
    for (int i = 0; i < 4; ++i) sum += stage[(threadIdx.x * 5 + i) % (kThreads * 4)];
    out[t * kThreads + threadIdx.x] = sum;
    block.sync();
  }
}

static int run_copies() {
  constexpr int kTiles = 9;
  proven::Array<float> in(kTiles * kThreads * 4), piped(kTiles * kThreads),
      waited(kTiles * kThreads);
  in.normal(1);
  through_pipeline<<<1, kThreads>>>(in.device, piped.device, kTiles);
  proven::finish_launch("through_pipeline");
  through_barrier<<<1, kThreads>>>(in.device, waited.device, kTiles);
  proven::finish_launch("through_barrier");
  piped.download(), waited.download();
  proven::Answer answer;
  for (int t = 0; t < kTiles; ++t)
    for (int thread = 0; thread < kThreads; ++thread) {
      double sum = 0;
      for (int i = 0; i < 4; ++i)
        sum += in.host[t * kThreads * 4 + (thread * 5 + i) % (kThreads * 4)];
      answer.add(piped.host[t * kThreads + thread], sum);
      answer.add(waited.host[t * kThreads + thread], sum);
    }
  return answer.finish(1e-6);
}

static int run_algorithms() {
  constexpr int kCount = kBlocks * kTile, kLong = 40000;
  proven::Array<int> in(kCount), sorted(kCount), sums(kCount), keys(kLong), scan(kLong);
  proven::Array<int> keys_out(kLong), total(1);
  proven::Array<float> totals(kBlocks);
  proven::Random random(5);
  for (int& x : in.host) x = int(random.bits() >> 44) - (1 << 19);
  for (int& x : keys.host) x = int(random.bits() >> 48);
  in.upload(), keys.upload(), totals.set(0);
  blocks<<<kBlocks, kThreads>>>(in.device, sorted.device, sums.device, totals.device);
  proven::finish_launch("blocks");

  size_t most = 0, bytes = 0;
  auto each = [&](void* memory) {
    bytes = most;
    cub::DeviceScan::InclusiveSum(memory, bytes, keys.device, scan.device, kLong);
    if (!memory) most = std::max(most, bytes);
    bytes = most;
    cub::DeviceReduce::Sum(memory, bytes, keys.device, total.device, kLong);
    if (!memory) most = std::max(most, bytes);
    bytes = most;
    cub::DeviceRadixSort::SortKeys(memory, bytes, keys.device, keys_out.device, kLong);
    if (!memory) most = std::max(most, bytes);
  };
  each(nullptr);
  proven::Array<uint8_t> memory(most);
  each(memory.device);
  proven::finish_launch("cub");

  sorted.download(), sums.download(), totals.download();
  scan.download(), total.download(), keys_out.download();
  proven::Answer answer;
  for (int b = 0; b < kBlocks; ++b) {
    std::vector<int> tile(&in.host[b * kTile], &in.host[b * kTile] + kTile);
    std::sort(tile.begin(), tile.end());
    int sum = 0, first_items = 0;
    double tiles_of_16 = 0;
    for (int i = 0; i < kTile; ++i) {
      answer.add(sorted.host[b * kTile + i], tile[i]);
      answer.add(sums.host[b * kTile + i], sum += tile[i]);
      if (i % (kTile / kThreads) == 0) first_items += sum;
      if (i % (kTile / kThreads) == 1) tiles_of_16 += sum & 1023;
    }
    answer.add(totals.host[b], tiles_of_16 + (first_items & 1023));
  }
  std::vector<int> order = keys.host;
  std::sort(order.begin(), order.end());
  int sum = 0;
  for (int i = 0; i < kLong; ++i) {
    answer.add(scan.host[i], sum += keys.host[i]);
    answer.add(keys_out.host[i], order[i]);
  }
  answer.add(total.host[0], sum);
  return answer.finish(0);
}

int main() {
  proven::use_device(VARIANT % 2 ? 9 : 8);
  return VARIANT < 2 ? run_algorithms() : run_copies();
}
