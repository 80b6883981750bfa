// How many blocks fit on a device, for programs that choose the shape of a launch by it.

#include <algorithm>

#include "simulator/driver/entries/entries.h"
#include "simulator/driver/objects/launch_call.h"
#include "simulator/driver/objects/occupancy.h"
#include "simulator/driver/objects/state.h"

namespace annulus::simulator::driver::entry {
namespace {

// The number of threads in a block with which most threads of a multiprocessor are busy. If several
// numbers are equal in that, it is the largest.
struct BlockChoice {
  int threads = 0;
  int blocks = 0;  // blocks on a multiprocessor
};
BlockChoice best_block(const Function& function, std::size_t (*bytes_of)(int), std::size_t bytes,
                       int limit) {
  const DeviceModel& model = function.context->device->model();
  int most = static_cast<int>(function.info->max_threads);
  if (limit > 0) most = std::min(most, limit);
  BlockChoice best;
  for (int threads = (most + 31) / 32 * 32; threads > 0; threads -= 32) {
    const int tried = std::min(threads, most);
    const std::size_t dynamic = bytes_of != nullptr ? bytes_of(tried) : bytes;
    const int blocks =
        blocks_per_sm(model, *function.info, static_cast<std::uint32_t>(tried), dynamic);
    if (blocks * tried > best.blocks * best.threads) best = {tried, blocks};
  }
  return best;
}

// How many clusters of this shape fit on the device at a time.
std::uint64_t clusters_that_fit(const KernelCall& call) {
  const LaunchRequest& launch = call.launch;
  const std::uint32_t threads = launch.block[0] * launch.block[1] * launch.block[2];
  const std::uint64_t ctas =
      std::uint64_t{launch.cluster[0]} * launch.cluster[1] * launch.cluster[2];
  return blocks_per_device(call.function->context->device->model(), *call.function->info, threads,
                           launch.dynamic_shared_bytes) /
         ctas;
}

}  // namespace

CUresult occupancy_max_potential_block_size(int* grid, int* block, CUfunction function,
                                            std::size_t (*bytes_of)(int), std::size_t bytes,
                                            int limit) {
  return guarded([&]() -> CUresult {
    const auto found = find_function(function);
    if (grid == nullptr || block == nullptr) return kCudaInvalidValue;
    const BlockChoice best = best_block(*found, bytes_of, bytes, limit);
    *block = best.threads;
    *grid = best.blocks * found->context->device->model().multiprocessors;
    return kCudaSuccess;
  });
}

CUresult occupancy_max_potential_block_size_with_flags(int* grid, int* block, CUfunction function,
                                                       std::size_t (*bytes_of)(int),
                                                       std::size_t bytes, int limit, unsigned) {
  return occupancy_max_potential_block_size(grid, block, function, bytes_of, bytes, limit);
}

CUresult occupancy_available_dynamic_shared(std::size_t* bytes, CUfunction function, int blocks,
                                            int threads) {
  return guarded([&]() -> CUresult {
    const auto found = find_function(function);
    if (bytes == nullptr || blocks <= 0 || threads <= 0) return kCudaInvalidValue;
    const DeviceModel& model = found->context->device->model();
    const auto fit = [&](std::size_t dynamic) {
      return blocks_per_sm(model, *found->info, static_cast<std::uint32_t>(threads), dynamic) >=
             blocks;
    };
    if (!fit(0)) return kCudaInvalidValue;
    std::size_t least = 0;
    std::size_t beyond = static_cast<std::size_t>(model.shared_optin) + 1;
    beyond -= std::min<std::size_t>(beyond - 1, found->info->static_shared_bytes);
    while (beyond - least > 1) {
      const std::size_t middle = least + (beyond - least) / 2;
      (fit(middle) ? least : beyond) = middle;
    }
    *bytes = least;
    return kCudaSuccess;
  });
}

CUresult occupancy_max_active_clusters(int* clusters, CUfunction function,
                                       const LaunchConfig* config) {
  return guarded([&]() -> CUresult {
    if (clusters == nullptr || config == nullptr) return kCudaInvalidValue;
    const KernelCall call = read_shape(*config, function);
    *clusters = static_cast<int>(clusters_that_fit(call));
    return kCudaSuccess;
  });
}

CUresult occupancy_max_potential_cluster_size(int* ctas, CUfunction function,
                                              const LaunchConfig* config) {
  return guarded([&]() -> CUresult {
    if (ctas == nullptr || config == nullptr) return kCudaInvalidValue;
    const KernelCall call = read_shape(*config, function);
    *ctas = call.function->context->device->model().accelerated ? int{kMaxPortableCluster} : 1;
    return kCudaSuccess;
  });
}

CUresult occupancy_max_active_blocks_with_flags(int* blocks, CUfunction function, int threads,
                                                std::size_t dynamic_shared_bytes, unsigned) {
  return occupancy_max_active_blocks(blocks, function, threads, dynamic_shared_bytes);
}

}  // namespace annulus::simulator::driver::entry
