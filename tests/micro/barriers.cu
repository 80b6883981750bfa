// Kernels of warps that wait for each other: registers that move between warpgroups, turns with
// named barriers, buffers that two CTAs fill for each other, and works that one CTA draws for two.

#include "kernels/wgmma/tile_scheduler.cuh"
#include "params/wgmma_params.h"
#include "ptx/cluster.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/memory.cuh"
#include "ptx/tensor_copy.cuh"
#include "ptx/warpgroup.cuh"

namespace annulus::kernels {

// kConsumers warpgroups take kConsumerRegisters each and pass a turn to each other `turns` times.
// Before, the producer's warps have released their registers and exited. out[consumer] is the
// number of its turns.
template <typename Shape>
__global__ void __launch_bounds__((Shape::kConsumers + 1) * 128, 1)
    take_turns(int turns, unsigned* out) {
  constexpr int kConsumers = Shape::kConsumers;
  const unsigned warpgroup = ptx::uniform(threadIdx.x / 128);
  if (warpgroup == 0) {
    ptx::give_registers<Shape::kProducerRegisters>();
    return;
  }
  ptx::take_registers<Shape::kConsumerRegisters>();
  const int consumer = static_cast<int>(warpgroup) - 1;
  constexpr bool kTurns = kConsumers > 1;
  if (kTurns && consumer == kConsumers - 1) ptx::announce_threads(1, 256);
  unsigned count = 0;
#pragma unroll 1
  for (int turn = 0; turn < turns; ++turn) {
    if (kTurns) ptx::sync_threads(1 + consumer, 256);
    ++count;
    if (kTurns) ptx::announce_threads(1 + (consumer + 1) % kConsumers, 256);
  }
  if (kTurns && consumer == 0) ptx::sync_threads(1, 256);
  if (threadIdx.x % 128 == 0) out[consumer] = count;
}

// Each of two CTAs copies half of every tile for both, and waits until the readers of both have
// freed the buffer. Rank 1 waits `lag` clocks before it announces the expected bytes. out[rank] is
// the number of words that differ from `truth`. clocks[rank] is the number of clocks that one warp
// spent on arrivals.
__global__ void __cluster_dims__(2) __launch_bounds__(128, 1)
    copy_for_pair(const __grid_constant__ TensorMap map, const unsigned* truth, int turns, int lag,
                  unsigned* out, long long* clocks) {
  extern __shared__ __align__(1024) unsigned char shared_memory[];
  constexpr unsigned kTileBytes = 8192;
  const unsigned tile = ptx::shared_address(shared_memory);
  const unsigned full = tile + kTileBytes;
  const unsigned free = full + ptx::kBarrierBytes;
  const unsigned rank = ptx::cluster_rank();
  if (threadIdx.x == 0) {
    ptx::init_barrier(full, 1);
    ptx::init_barrier(free, 2 * 3);
    ptx::publish_barriers();
  }
  ptx::sync_cluster();
  if (threadIdx.x / 32 == 0) {
    if (ptx::elect()) {
#pragma unroll 1
      for (int turn = 0; turn < turns; ++turn) {
        ptx::wait(free, (turn & 1) ^ 1);
        const long long end = clock64() + (rank == 1 ? lag : 0);
        while (clock64() < end) {
        }
        ptx::arrive_expecting(full, kTileBytes);
        ptx::load_box_for(3, tile + rank * kTileBytes / 2, &map, full,
                          {0, turn % 4 * 64 + static_cast<int>(rank) * 32, 0, 0});
      }
    }
  } else {
    unsigned wrong = 0;
    long long spent = 0;
#pragma unroll 1
    for (int turn = 0; turn < turns; ++turn) {
      ptx::wait(full, turn & 1);
      for (unsigned i = threadIdx.x - 32; i < 512; i += 96) {
        const ptx::Words4 w = ptx::load_shared_16(tile + i / 8 * 128 + ((i % 8 ^ i / 8 % 8) << 4));
        const unsigned* want = truth + (turn % 4 * 64 + i / 8) * 32 + i % 8 * 4;
        wrong += (w.x != want[0]) + (w.y != want[1]) + (w.z != want[2]) + (w.w != want[3]);
      }
      __syncwarp();
      const long long begin = clock64();
      if (threadIdx.x % 32 < 2) ptx::arrive_at(free, threadIdx.x % 32);
      __syncwarp();
      spent += clock64() - begin;
    }
    atomicAdd(out + rank, wrong);
    if (threadIdx.x == 32) clocks[rank] = spent;
  }
  ptx::sync_cluster();
}

// The works that the CTAs of a cluster draw with the tile scheduler of wgmma_forward. Each reader
// of a number adds 1 to seen[rank][work]. The readers are the producer of each CTA, and each warp
// of its consumers. The consumers of rank 1 wait `lag` clocks in each work.
template <typename Shape>
__global__ void __cluster_dims__(Shape::kCluster) __launch_bounds__((Shape::kConsumers + 1) * 128)
    draw_works(const __grid_constant__ WorkParams work, int lag, unsigned* seen) {
  extern __shared__ __align__(1024) unsigned char shared_memory[];
  using Layout = WgmmaLayout<Shape>;
  const unsigned shared = ptx::shared_address(shared_memory);
  if (threadIdx.x == 0) {
    ptx::init_barrier(shared + Layout::kWorkFull, 1);
    ptx::init_barrier(shared + Layout::kWorkFree, work_readers<Shape>());
    ptx::publish_barriers();
  }
  ptx::sync_cluster();
  const unsigned rank = ptx::cluster_rank();
  unsigned* const own = seen + static_cast<int>(rank) * work.count;
  const unsigned warp = ptx::uniform(threadIdx.x / 32);
  if (warp == 0) {
    if (ptx::elect()) {
      TileSchedulerProducer<Shape> scheduler(shared, work);
#pragma unroll 1
      for (int index = scheduler.first(); index < work.count; index = scheduler.next(index)) {
        atomicAdd(own + index, 1u);
      }
    }
  } else if (warp >= 4) {
    TileSchedulerConsumer<Shape> scheduler(shared, work);
#pragma unroll 1
    for (int index = scheduler.first(); index < work.count; index = scheduler.next(index)) {
      if (threadIdx.x % 32 == 0) atomicAdd(own + index, 1u);
      const long long end = clock64() + (rank == 1 ? lag : 0);
      while (clock64() < end) {
      }
    }
  }
  ptx::sync_cluster();
}

}  // namespace annulus::kernels
