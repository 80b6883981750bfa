// Kernels: launches, attributes, occupancy.

#include "simulator/runtime/entries.h"
#include "simulator/runtime/thread.h"

namespace annulus::simulator::runtime::entry {
namespace {

// CUdevice_attribute and CUfunction_attribute
enum : int { kMaxThreads = 1, kMaxBlockX = 2, kMaxGridX = 5, kMaxSharedOfMultiprocessor = 81 };
enum : int { kMaxThreadsOfFunction = 0 };

bool is_empty(Dim3 shape) { return shape.x == 0 || shape.y == 0 || shape.z == 0; }

bool fits(Dim3 shape, int first_attribute, CUdevice device) {
  const unsigned sizes[3] = {shape.x, shape.y, shape.z};
  for (int d = 0; d < 3; ++d) {
    int most = 0;
    need(driver().device_get_attribute(&most, first_attribute + d, device));
    if (sizes[d] > static_cast<unsigned>(most)) return false;
  }
  return true;
}

// Whether the device can run blocks and grids of these shapes.
bool is_configuration(Dim3 grid, Dim3 block) {
  if (is_empty(grid) || is_empty(block)) return false;
  CUdevice device = 0;
  int threads = 0;
  need(driver().ctx_get_device(&device));
  need(driver().device_get_attribute(&threads, kMaxThreads, device));
  return fits(grid, kMaxGridX, device) && fits(block, kMaxBlockX, device) &&
         std::uint64_t{block.x} * block.y * block.z <= static_cast<std::uint64_t>(threads);
}

// The driver has a single code for all errors of a launch. The runtime has a separate code for
// wrong shapes.
Error code_of_launch(CUresult code, Dim3 grid, Dim3 block) {
  const bool shape = code == cudaErrorInvalidValue && !is_configuration(grid, block);
  return shape ? Error{cudaErrorInvalidConfiguration} : code;
}

unsigned narrow(std::size_t bytes) {
  if (bytes > ~0u) throw Refusal{cudaErrorInvalidValue};
  return static_cast<unsigned>(bytes);
}

DriverLaunchConfig driver_config(const LaunchConfig* config) {
  if (config == nullptr) throw Refusal{cudaErrorInvalidValue};
  return {config->grid,
          config->block,
          narrow(config->dynamic_shared_bytes),
          resolve(config->stream),
          config->attributes,
          config->attribute_count};
}

template <typename T>
void take(T* member, int attribute, CUfunction function) {
  int value = 0;
  // If a driver does not know an attribute, it does not have the feature.
  if (driver().func_get_attribute(&value, attribute, function) == cudaSuccess) {
    *member = static_cast<T>(value);
  }
}

}  // namespace

Error launch(const void* function, Dim3 grid, Dim3 block, void** parameters,
             std::size_t shared_bytes, CUstream stream) {
  const CUfunction found = function_of(function);
  const CUresult code =
      driver().launch_kernel(found, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                             narrow(shared_bytes), resolve(stream), parameters, nullptr);
  return code_of_launch(code, grid, block);
}

Error launch_ex(const LaunchConfig* config, const void* function, void** parameters) {
  const CUfunction found = function_of(function);
  const DriverLaunchConfig made = driver_config(config);
  const CUresult code = driver().launch_kernel_ex(&made, found, parameters, nullptr);
  return code_of_launch(code, config->grid, config->block);
}

Error launch_cooperative(const void* function, Dim3 grid, Dim3 block, void** parameters,
                         std::size_t shared_bytes, CUstream stream) {
  const CUfunction found = function_of(function);
  const CUresult code =
      driver().launch_cooperative_kernel(found, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                         narrow(shared_bytes), resolve(stream), parameters);
  return code_of_launch(code, grid, block);
}

Error func_attributes(FunctionAttributes* attributes, const void* function) {
  if (attributes == nullptr) return cudaErrorInvalidValue;
  const CUfunction found = function_of(function);
  *attributes = {};
  need(driver().func_get_attribute(&attributes->maxThreadsPerBlock, kMaxThreadsOfFunction, found));
  take(&attributes->sharedSizeBytes, 1, found);
  take(&attributes->constSizeBytes, 2, found);
  take(&attributes->localSizeBytes, 3, found);
  take(&attributes->numRegs, 4, found);
  take(&attributes->ptxVersion, 5, found);
  take(&attributes->binaryVersion, 6, found);
  take(&attributes->cacheModeCA, 7, found);
  take(&attributes->maxDynamicSharedSizeBytes, 8, found);
  take(&attributes->preferredShmemCarveout, 9, found);
  take(&attributes->clusterDimMustBeSet, 10, found);
  take(&attributes->requiredClusterWidth, 11, found);
  take(&attributes->requiredClusterHeight, 12, found);
  take(&attributes->requiredClusterDepth, 13, found);
  take(&attributes->nonPortableClusterSizeAllowed, 14, found);
  take(&attributes->clusterSchedulingPolicyPreference, 15, found);
  return cudaSuccess;
}

Error func_attribute(const void* function, int attribute, int value) {
  return driver().func_set_attribute(function_of(function), attribute, value);
}

Error func_cache_config(const void* function, int config) {
  return driver().func_set_cache_config(function_of(function), config);
}

Error func_shared_config(const void* function, int config) {
  find_kernel(function);
  return device_set_shared_config(config);
}

Error func_name(const char** name, const void* function) {
  if (name == nullptr) return cudaErrorInvalidValue;
  *name = find_kernel(function).name.c_str();
  return cudaSuccess;
}

Error func_param_info(const void* function, std::size_t index, std::size_t* offset,
                      std::size_t* bytes) {
  return driver().func_get_param_info(function_of(function), index, offset, bytes);
}

Error get_func_by_symbol(CUfunction* found, const void* function) {
  if (found == nullptr) return cudaErrorInvalidValue;
  *found = function_of(function);
  return cudaSuccess;
}

Error get_kernel(Kernel** kernel, const void* function) {
  if (kernel == nullptr) return cudaErrorInvalidValue;
  *kernel = &find_kernel(function);
  return cudaSuccess;
}

Error kernel_attribute(Kernel* kernel, int attribute, int value, int device) {
  const Kernel& found = find_kernel(kernel);
  const CUcontext context = primary_context(device);
  need(driver().ctx_push_current(context));
  CUcontext popped = nullptr;
  CUresult code = cudaSuccess;
  try {
    const CUfunction function = found.image->function(context, found.name);
    code = driver().func_set_attribute(function, attribute, value);
  } catch (const Refusal& refusal) {
    code = refusal.code;
  }
  driver().ctx_pop_current(&popped);
  return code;
}

Error max_active_blocks(int* blocks, const void* function, int threads, std::size_t shared_bytes) {
  return max_active_blocks_with_flags(blocks, function, threads, shared_bytes, 0);
}

Error max_active_blocks_with_flags(int* blocks, const void* function, int threads,
                                   std::size_t shared_bytes, unsigned flags) {
  return driver().occupancy_blocks(blocks, function_of(function), threads, shared_bytes, flags);
}

// The largest size with which this number of blocks fits. More bytes never let more blocks fit.
Error available_dynamic_shared(std::size_t* bytes, const void* function, int blocks, int threads) {
  if (bytes == nullptr || blocks <= 0) return cudaErrorInvalidValue;
  const auto fits = [&, found = function_of(function)](int shared) {
    int fitting = 0;
    const auto size = static_cast<std::size_t>(shared);
    need(driver().occupancy_blocks(&fitting, found, threads, size, 0));
    return fitting >= blocks;
  };
  if (!fits(0)) return cudaErrorInvalidValue;
  CUdevice device = 0;
  int most = 0, least = 0;
  need(driver().ctx_get_device(&device));
  need(driver().device_get_attribute(&most, kMaxSharedOfMultiprocessor, device));
  while (least < most) {
    const int middle = least + (most - least + 1) / 2;
    if (fits(middle)) {
      least = middle;
    } else {
      most = middle - 1;
    }
  }
  *bytes = static_cast<std::size_t>(least);
  return cudaSuccess;
}

Error max_cluster_size(int* size, const void* function, const LaunchConfig* config) {
  const CUfunction found = function_of(function);
  const DriverLaunchConfig made = driver_config(config);
  return driver().occupancy_cluster_size(size, found, &made);
}

Error max_active_clusters(int* clusters, const void* function, const LaunchConfig* config) {
  const CUfunction found = function_of(function);
  const DriverLaunchConfig made = driver_config(config);
  return driver().occupancy_clusters(clusters, found, &made);
}

}  // namespace annulus::simulator::runtime::entry
