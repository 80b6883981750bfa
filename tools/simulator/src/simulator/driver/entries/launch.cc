// Kernel launches: the checks of a driver, the copy of the parameters, and the run.

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

#include "simulator/driver/objects/console.h"
#include "simulator/driver/objects/graph.h"
#include "simulator/driver/objects/launch_call.h"
#include "simulator/driver/objects/occupancy.h"
#include "simulator/machine/print_buffer.h"

namespace annulus::simulator::driver {

using namespace annulus::abi;
using entry::LaunchAttribute;
using entry::LaunchConfig;

namespace {

// The constants of `extra`, as cuda.h defines them.
void* const kEnd = nullptr;
void* const kBufferPointer = reinterpret_cast<void*>(1);
void* const kBufferSize = reinterpret_cast<void*>(2);

// Makes the parameter block from a pointer for each parameter.
std::vector<std::byte> gather(const KernelInfo& info, void** parameters) {
  std::vector<std::byte> block(info.parameter_bytes);
  for (std::size_t i = 0; i < info.parameter_offsets.size(); ++i) {
    if (parameters[i] == nullptr) throw Refusal{kCudaInvalidValue};
    std::memcpy(block.data() + info.parameter_offsets[i], parameters[i], info.parameter_sizes[i]);
  }
  return block;
}

// Copies a parameter block that the program packed itself.
std::vector<std::byte> unpack(const KernelInfo& info, void** extra) {
  const void* buffer = nullptr;
  std::size_t bytes = 0;
  for (; *extra != kEnd; extra += 2) {
    if (extra[0] == kBufferPointer) {
      buffer = extra[1];
    } else if (extra[0] == kBufferSize) {
      bytes = *static_cast<const std::size_t*>(extra[1]);
    } else {
      throw Refusal{kCudaInvalidValue};
    }
  }
  if (bytes < info.parameter_bytes || (buffer == nullptr && info.parameter_bytes != 0)) {
    throw Refusal{kCudaInvalidValue};
  }
  std::vector<std::byte> block(info.parameter_bytes);
  if (!block.empty()) std::memcpy(block.data(), buffer, block.size());
  return block;
}

std::vector<std::byte> copy_parameters(const KernelInfo& info, void** parameters, void** extra) {
  if (parameters != nullptr && extra != nullptr) throw Refusal{kCudaInvalidValue};
  if (extra != nullptr) return unpack(info, extra);
  if (parameters == nullptr && !info.parameter_offsets.empty()) throw Refusal{kCudaInvalidValue};
  return gather(info, parameters);
}

void check_shape(const Function& function, const LaunchRequest& launch) {
  const bool grid_fits = launch.grid[0] >= 1 && launch.grid[0] <= kMaxGridX &&
                         launch.grid[1] >= 1 && launch.grid[1] <= kMaxGridYz &&
                         launch.grid[2] >= 1 && launch.grid[2] <= kMaxGridYz;
  const bool block_fits = launch.block[0] >= 1 && launch.block[0] <= kMaxThreads &&
                          launch.block[1] >= 1 && launch.block[1] <= kMaxThreads &&
                          launch.block[2] >= 1 && launch.block[2] <= kMaxBlockZ;
  if (!grid_fits || !block_fits) throw Refusal{kCudaInvalidValue};
  const std::uint64_t threads = std::uint64_t{launch.block[0]} * launch.block[1] * launch.block[2];
  if (threads > kMaxThreads || threads > function.info->max_threads) {
    throw Refusal{kCudaInvalidValue};
  }
  if (launch.dynamic_shared_bytes > function.dynamic_limit) throw Refusal{kCudaInvalidValue};
}

// Reads the attributes of the launch. The kernel or the launch gives the shape of clusters. If both
// do, the two shapes have to agree.
void take_attributes(const Function& function, const LaunchConfig& config, LaunchRequest& launch) {
  const bool required = function.info->cluster[0] != 0;
  if (required) std::copy_n(function.info->cluster, 3, launch.cluster);
  for (unsigned i = 0; i < config.attribute_count; ++i) {
    const LaunchAttribute& attribute = config.attributes[i];
    if (attribute.id == kLaunchCooperative) {
      int on = 0;
      std::memcpy(&on, attribute.value, sizeof(on));
      launch.cooperative = on != 0;
    }
    if (attribute.id != kLaunchCluster) continue;
    std::uint32_t asked[3];
    std::memcpy(asked, attribute.value, sizeof(asked));
    if (required && !std::equal(asked, asked + 3, launch.cluster)) {
      throw Refusal{kCudaInvalidClusterSize};
    }
    std::copy_n(asked, 3, launch.cluster);
  }
  std::uint64_t ctas = 1;
  for (std::size_t d = 0; d < 3; ++d) {
    if (launch.cluster[d] == 0 || launch.cluster[d] > kMaxPortableCluster ||
        launch.grid[d] % launch.cluster[d] != 0) {
      throw Refusal{kCudaInvalidClusterSize};
    }
    ctas *= launch.cluster[d];
  }
  if (ctas > kMaxPortableCluster) throw Refusal{kCudaInvalidClusterSize};
  if (ctas > 1 && !function.context->device->model().accelerated) throw Refusal{kCudaNotSupported};
}

// Computes how many CTAs can be resident at a time. A cooperative launch is refused if its CTAs
// cannot all be resident.
void count_residents(const Function& function, LaunchRequest& launch) {
  const std::uint32_t threads = launch.block[0] * launch.block[1] * launch.block[2];
  const std::uint64_t fit = blocks_per_device(function.context->device->model(), *function.info,
                                              threads, launch.dynamic_shared_bytes);
  const std::uint64_t ctas = std::uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2];
  if (launch.cooperative && ctas > fit) throw Refusal{kCudaCooperativeLaunchTooLarge};
  launch.resident_ctas = fit;
}

// Global memory that the driver provides to a cooperative launch while it runs.
class Workspace {
 public:
  Workspace(GlobalMemory& memory, bool wanted) : memory_(memory) {
    if (!wanted) return;
    const GridWorkspace start;
    address_ = memory.allocate(sizeof(start));
    if (address_ == 0) throw std::bad_alloc();
    memory.write(address_, &start, sizeof(start));
  }
  ~Workspace() {
    if (address_ != 0) memory_.release(address_);
  }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  std::uint64_t address() const { return address_; }

 private:
  GlobalMemory& memory_;
  std::uint64_t address_ = 0;
};

DeviceHeap* heap_of(Context& context) {
  const std::lock_guard lock(context.mutex);
  if (context.heap == nullptr) {
    context.heap = std::make_unique<DeviceHeap>(context.device->memory());
  }
  context.heap->set_limit(context.heap_bytes);
  return context.heap.get();
}

// Called when the stream reaches the launch. A fault breaks the context, and later calls return its
// code.
void run(const Function& function, LaunchRequest launch, const std::vector<std::byte>& parameters,
         const OperationPointer& operation) {
  Context& context = *function.context;
  Device& device = *context.device;
  const SimulatorOptions options = device.options();
  SimulatorCounters counters;
  bool broken = false;
  launch.parameters = parameters;
  launch.max_warp_instructions = std::uint64_t{options.limit} * 1000000;
  const std::vector<PeerMemory> peers = peer_memories(context);
  launch.peers = peers;
  launch.has_company = has_company(context);
  launch.operation = operation;
  launch.detector = &state().detector;
  PrintBuffer prints;
  launch.prints = &prints;
  launch.heap = heap_of(context);
  try {
    const Workspace workspace(device.memory(), launch.cooperative);
    launch.grid_workspace = workspace.address();
    const auto pool = state().pool(options.threads);
    execute(launch, device.memory(), *pool, options, &counters);
  } catch (const Fault& caught) {
    broken = true;
    break_context(context, caught);
  } catch (const std::bad_alloc&) {
    throw;  // not a fault of the kernel: the next wait returns it (queue.h)
  } catch (const std::exception& error) {
    broken = true;
    device.report(base::LogLevel::kError, "internal", error.what());
    context.lost = kCudaLaunchFailed;
  }
  launch.heap->end_launch();
  write_stdout(prints.all());
  counters.launches = 1;
  counters.faults = broken ? 1 : 0;
  device.add(counters);
}

}  // namespace

KernelCall read_shape(const LaunchConfig& config, CUfunction function) {
  if (config.attribute_count != 0 && config.attributes == nullptr) throw Refusal{kCudaInvalidValue};
  KernelCall call;
  call.function = find_function(function);
  call.handle = function;
  const Function& kernel = *call.function;
  LaunchRequest& launch = call.launch;
  launch.program = kernel.program;
  std::copy_n(config.grid, 3, launch.grid);
  std::copy_n(config.block, 3, launch.block);
  launch.dynamic_shared_bytes = config.dynamic_shared_bytes;
  launch.shared_limit = static_cast<std::uint32_t>(kernel.context->device->model().shared_optin);
  check_shape(kernel, launch);
  take_attributes(kernel, config, launch);
  return call;
}

KernelCall read_call(const LaunchConfig& config, CUfunction function, void** parameters,
                     void** extra) {
  KernelCall call = read_shape(config, function);
  count_residents(*call.function, call.launch);
  call.parameters = copy_parameters(*call.function->info, parameters, extra);
  return call;
}

Work kernel_work(const std::shared_ptr<const KernelCall>& call) {
  const LaunchRequest& launch = call->launch;
  Work work =
      make_work("kernel " + call->function->info->name, [call](const OperationPointer& operation) {
        run(*call->function, call->launch, call->parameters, operation);
      });
  const unsigned warps = (launch.block[0] * launch.block[1] * launch.block[2] + 31) / 32;
  work.operation.module = call->function->image;
  work.operation.program = call->function->program;
  std::copy_n(launch.grid, 3, work.operation.grid);
  work.operation.warp_bits = std::bit_width(warps - 1);  // bits for the warps of a block
  return work;
}

namespace entry {

CUresult launch_kernel_ex(const LaunchConfig* config, CUfunction function, void** parameters,
                          void** extra) {
  return guarded([&]() -> CUresult {
    if (config == nullptr) return kCudaInvalidValue;
    const auto on = find_stream(config->stream);
    if (find_function(function)->context != on->context()) return kCudaInvalidContext;
    NodeParameters node;
    node.type = kNodeKernel;
    node.kernel =
        std::make_shared<const KernelCall>(read_call(*config, function, parameters, extra));
    node.attributes.assign(config->attributes, config->attributes + config->attribute_count);
    on->submit(work_of(std::move(node)));
    return kCudaSuccess;
  });
}

CUresult launch_kernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                       unsigned block_x, unsigned block_y, unsigned block_z,
                       unsigned dynamic_shared_bytes, CUstream stream, void** parameters,
                       void** extra) {
  const LaunchConfig config{.grid = {grid_x, grid_y, grid_z},
                            .block = {block_x, block_y, block_z},
                            .dynamic_shared_bytes = dynamic_shared_bytes,
                            .stream = stream,
                            .attributes = nullptr,
                            .attribute_count = 0};
  return launch_kernel_ex(&config, function, parameters, extra);
}

CUresult launch_cooperative_kernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                                   unsigned grid_z, unsigned block_x, unsigned block_y,
                                   unsigned block_z, unsigned dynamic_shared_bytes, CUstream stream,
                                   void** parameters) {
  LaunchAttribute cooperative{.id = kLaunchCooperative, .pad = {}, .value = {}};
  constexpr int kOn = 1;
  std::memcpy(cooperative.value, &kOn, sizeof(kOn));
  const LaunchConfig config{.grid = {grid_x, grid_y, grid_z},
                            .block = {block_x, block_y, block_z},
                            .dynamic_shared_bytes = dynamic_shared_bytes,
                            .stream = stream,
                            .attributes = &cooperative,
                            .attribute_count = 1};
  return launch_kernel_ex(&config, function, parameters, nullptr);
}

}  // namespace entry
}  // namespace annulus::simulator::driver
