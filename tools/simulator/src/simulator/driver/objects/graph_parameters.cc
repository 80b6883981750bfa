#include "simulator/driver/objects/graph_parameters.h"

#include <algorithm>

namespace annulus::simulator::driver {
namespace {

using entry::LaunchAttribute;
using entry::LaunchConfig;

void* const kBufferPointer = reinterpret_cast<void*>(1);
void* const kBufferSize = reinterpret_cast<void*>(2);

std::shared_ptr<Context> context_of(abi::CUcontext context) {
  if (context == nullptr) return live_context();
  auto found = state().contexts.find(context);
  if (found == nullptr) throw Refusal{abi::kCudaInvalidContext};
  return found;
}

LaunchConfig config_of(const unsigned* grid, const unsigned* block, unsigned dynamic_shared_bytes,
                       const std::vector<LaunchAttribute>& attributes) {
  LaunchConfig config{};
  std::copy_n(grid, 3, config.grid);
  std::copy_n(block, 3, config.block);
  config.dynamic_shared_bytes = dynamic_shared_bytes;
  config.attributes = attributes.data();
  config.attribute_count = static_cast<unsigned>(attributes.size());
  return config;
}

NodeParameters kernel_node(KernelCall call, std::vector<LaunchAttribute> attributes) {
  NodeParameters node;
  node.type = kNodeKernel;
  node.kernel = std::make_shared<const KernelCall>(std::move(call));
  node.attributes = std::move(attributes);
  return node;
}

}  // namespace

NodeParameters kernel_parameters(const KernelNodeParameters* asked, bool whole,
                                 std::vector<LaunchAttribute> attributes) {
  if (asked == nullptr) throw Refusal{abi::kCudaInvalidValue};
  abi::CUfunction function = asked->function;
  if (function == nullptr && whole) function = reinterpret_cast<abi::CUfunction>(asked->kernel);
  if (function == nullptr) throw Refusal{abi::kCudaInvalidValue};
  const LaunchConfig config =
      config_of(asked->grid, asked->block, asked->dynamic_shared_bytes, attributes);
  return kernel_node(read_call(config, function, asked->parameters, asked->extra),
                     std::move(attributes));
}

NodeParameters with_attributes(const NodeParameters& kernel,
                               std::vector<LaunchAttribute> attributes) {
  const KernelCall& call = *kernel.kernel;
  std::vector<std::byte> block = call.parameters;
  std::size_t bytes = block.size();
  void* extra[] = {kBufferPointer, block.data(), kBufferSize, &bytes, nullptr};
  const LaunchConfig config =
      config_of(call.launch.grid, call.launch.block, call.launch.dynamic_shared_bytes, attributes);
  return kernel_node(read_call(config, call.handle, nullptr, extra), std::move(attributes));
}

NodeParameters copy_parameters(const Copy3d* copy, abi::CUcontext context) {
  if (copy == nullptr) throw Refusal{abi::kCudaInvalidValue};
  NodeParameters node;
  node.type = kNodeMemcpy;
  node.copy = *copy;
  node.context = context_of(context);
  return node;
}

NodeParameters fill_parameters(const MemsetNodeParameters* fill, abi::CUcontext context) {
  if (fill == nullptr) throw Refusal{abi::kCudaInvalidValue};
  NodeParameters node;
  node.type = kNodeMemset;
  node.fill = *fill;
  node.context = context_of(context);
  return node;
}

NodeParameters host_parameters(const HostNodeParameters* host) {
  if (host == nullptr) throw Refusal{abi::kCudaInvalidValue};
  NodeParameters node;
  node.type = kNodeHost;
  node.host = *host;
  return node;
}

NodeParameters child_parameters(abi::CUgraph child) {
  NodeParameters node;
  node.type = kNodeGraph;
  node.child = clone(*find_graph(child));
  node.child->within = true;
  return node;
}

NodeParameters event_parameters(int type, abi::CUevent event) {
  NodeParameters node;
  node.type = type;
  node.event = find_event(event);
  return node;
}

NodeParameters any_parameters(const AnyNodeParameters* asked,
                              std::vector<LaunchAttribute> attributes) {
  if (asked == nullptr) throw Refusal{abi::kCudaInvalidValue};
  switch (asked->type) {
    case kNodeKernel:
      return kernel_parameters(&asked->kernel, true, std::move(attributes));
    case kNodeMemcpy:
      return copy_parameters(&asked->memcpy.copy, asked->memcpy.context);
    case kNodeMemset:
      return fill_parameters(&asked->memset.fill, asked->memset.context);
    case kNodeHost:
      return host_parameters(&asked->host);
    case kNodeGraph:
      if (asked->child.ownership != 0) throw Refusal{abi::kCudaNotSupported};
      return child_parameters(asked->child.graph);
    case kNodeEmpty:
      return {};
    case kNodeWaitEvent:
    case kNodeRecordEvent:
      return event_parameters(asked->type, asked->event);
    default:
      throw Refusal{abi::kCudaNotSupported};
  }
}

}  // namespace annulus::simulator::driver
