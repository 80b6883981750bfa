// How fast L2 is when every multiprocessor copies tiles of 64 rows by tensor map, as the producers
// of wgmma_forward do, and nothing else happens.

#include "params/wgmma_params.h"
#include "ptx/mbarrier.cuh"
#include "ptx/memory.cuh"
#include "ptx/tensor_copy.cuh"

namespace annulus::kernels {

// Each CTA copies `copies` tiles of 64 x 128 elements, one after the other from one of its own on,
// with eight on their way. clocks[CTA] = what that took; last[CTA] = first word of its last tile.
__global__ void __launch_bounds__(32, 1)
    copy_tiles(const __grid_constant__ TensorMap map, int tiles, int copies, long long* clocks,
               unsigned* last) {
  extern __shared__ __align__(1024) unsigned char shared_memory[];
  constexpr int kStages = 8;
  constexpr unsigned kPanelBytes = 8192;
  const unsigned shared = ptx::shared_address(shared_memory);
  const unsigned barriers = shared + kStages * 2 * kPanelBytes;
  if (threadIdx.x != 0) return;
  for (int stage = 0; stage < kStages; ++stage) {
    ptx::init_barrier(barriers + stage * ptx::kBarrierBytes, 1);
  }
  ptx::publish_barriers();
  const int first = static_cast<int>(blockIdx.x) * 7;
  const auto load = [&](int copy) {
    const unsigned stage = static_cast<unsigned>(copy % kStages);
    const unsigned full = barriers + stage * ptx::kBarrierBytes;
    const unsigned to = shared + stage * 2 * kPanelBytes;
    const int row = (first + copy) % tiles * 64;
    ptx::arrive_expecting(full, 2 * kPanelBytes);
    ptx::load_box(to, &map, full, {0, row, 0, 0});
    ptx::load_box(to + kPanelBytes, &map, full, {64, row, 0, 0});
  };
  const long long begin = clock64();
  for (int copy = 0; copy < kStages && copy < copies; ++copy) load(copy);
#pragma unroll 1
  for (int copy = 0; copy < copies; ++copy) {
    const unsigned stage = static_cast<unsigned>(copy % kStages);
    ptx::wait(barriers + stage * ptx::kBarrierBytes, static_cast<unsigned>(copy / kStages & 1));
    if (copy + kStages < copies) load(copy + kStages);
  }
  clocks[blockIdx.x] = clock64() - begin;
  last[blockIdx.x] =
      ptx::load_shared(shared + static_cast<unsigned>((copies - 1) % kStages) * 2 * kPanelBytes);
}

}  // namespace annulus::kernels
