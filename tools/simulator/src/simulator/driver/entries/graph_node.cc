// Reads and changes the parameters of nodes, in graphs and in executable graphs.

#include <algorithm>
#include <cstring>

#include "simulator/driver/entries/entries.h"
#include "simulator/driver/objects/graph.h"
#include "simulator/driver/objects/graph_parameters.h"

namespace annulus::simulator::driver::entry {
namespace {

NodePointer find_node_of(CUgraphNode node, int type) {
  auto found = find_node(node);
  if (found->parameters.type != type) throw Refusal{kCudaInvalidValue};
  return found;
}

CUresult set(const NodePointer& node, NodeParameters parameters) {
  if (parameters.type != node->parameters.type) return kCudaInvalidValue;
  node->work = work_of(std::move(parameters));
  node->parameters = *node->work.node;
  return kCudaSuccess;
}

CUresult get_kernel(CUgraphNode node, KernelNodeParameters* parameters, bool whole) {
  const auto found = find_node_of(node, kNodeKernel);
  if (parameters == nullptr) return kCudaInvalidValue;
  const KernelCall& call = *found->parameters.kernel;
  const KernelInfo& info = *call.function->info;
  found->shown.clear();
  for (const std::uint32_t offset : info.parameter_offsets) {
    // The program may read the parameters but must not write them.
    found->shown.push_back(const_cast<std::byte*>(call.parameters.data() + offset));
  }
  const bool is_kernel = state().kernels.find(reinterpret_cast<CUkernel>(call.handle)) != nullptr;
  parameters->function = is_kernel && whole ? nullptr : call.handle;
  std::copy_n(call.launch.grid, 3, parameters->grid);
  std::copy_n(call.launch.block, 3, parameters->block);
  parameters->dynamic_shared_bytes = call.launch.dynamic_shared_bytes;
  parameters->parameters = found->shown.empty() ? nullptr : found->shown.data();
  parameters->extra = nullptr;
  if (whole) {
    parameters->kernel = is_kernel ? reinterpret_cast<CUkernel>(call.handle) : nullptr;
    parameters->context = call.function->context->handle();
  }
  return kCudaSuccess;
}

CUresult set_kernel(CUgraphNode node, const KernelNodeParameters* parameters, bool whole) {
  const auto found = find_node_of(node, kNodeKernel);
  return set(found, kernel_parameters(parameters, whole, found->parameters.attributes));
}

// The node of an executable graph that was made from the node `origin`. Requires: exec.mutex is
// held.
ExecNode& exec_node(GraphExec& exec, const NodePointer& origin) {
  const auto found =
      std::ranges::find_if(exec.nodes, [&](const ExecNode& one) { return one.origin == origin; });
  if (found == exec.nodes.end()) throw Refusal{kCudaInvalidValue};
  return *found;
}

CUresult set_in_exec(CUgraphExec exec, CUgraphNode node, NodeParameters parameters) {
  const auto in = find_exec(exec);
  const auto origin = find_node_of(node, parameters.type);
  Work work = work_of(std::move(parameters));
  std::lock_guard lock(in->mutex);
  exec_node(*in, origin).work = std::move(work);
  return kCudaSuccess;
}

CUresult set_kernel_in_exec(CUgraphExec exec, CUgraphNode node,
                            const KernelNodeParameters* parameters, bool whole) {
  const auto in = find_exec(exec);
  const auto origin = find_node_of(node, kNodeKernel);
  std::vector<LaunchAttribute> attributes;
  {
    std::lock_guard lock(in->mutex);
    attributes = exec_node(*in, origin).parameters().attributes;
  }
  return set_in_exec(exec, node, kernel_parameters(parameters, whole, std::move(attributes)));
}

// Changes the nodes of the executable graph that were made from the nodes of a child graph.
CUresult set_child_in_exec(CUgraphExec exec, const NodePointer& node, CUgraph child) {
  const auto in = find_exec(exec);
  const std::vector<ExecNode> old = flatten(*node->parameters.child);
  const std::vector<ExecNode> fresh = flatten(*find_graph(child));
  const auto same = [](const ExecNode& one, const ExecNode& other) {
    return one.after == other.after && one.parameters().type == other.parameters().type;
  };
  if (!std::ranges::equal(old, fresh, same)) return kCudaInvalidValue;
  std::lock_guard lock(in->mutex);
  for (std::size_t i = 0; i < old.size(); ++i) {
    exec_node(*in, old[i].origin).work = fresh[i].work;
  }
  return kCudaSuccess;
}

CUresult get_event(CUgraphNode node, int type, CUevent* event) {
  const auto found = find_node_of(node, type);
  if (event == nullptr) return kCudaInvalidValue;
  *event = reinterpret_cast<CUevent>(found->parameters.event.get());
  return kCudaSuccess;
}

const LaunchAttribute* attribute_of(const NodeParameters& kernel, int attribute) {
  const auto found = std::ranges::find_if(
      kernel.attributes, [&](const LaunchAttribute& one) { return one.id == attribute; });
  return found == kernel.attributes.end() ? nullptr : &*found;
}

}  // namespace

CUresult graph_kernel_node_get_params(CUgraphNode node, KernelNodeParameters* parameters) {
  return guarded([&] { return get_kernel(node, parameters, false); });
}

CUresult graph_kernel_node_get_params_v2(CUgraphNode node, KernelNodeParameters* parameters) {
  return guarded([&] { return get_kernel(node, parameters, true); });
}

CUresult graph_kernel_node_set_params(CUgraphNode node, const KernelNodeParameters* parameters) {
  return guarded([&] { return set_kernel(node, parameters, false); });
}

CUresult graph_kernel_node_set_params_v2(CUgraphNode node, const KernelNodeParameters* parameters) {
  return guarded([&] { return set_kernel(node, parameters, true); });
}

CUresult graph_kernel_node_get_attribute(CUgraphNode node, int attribute, void* value) {
  return guarded([&]() -> CUresult {
    const auto found = find_node_of(node, kNodeKernel);
    if (value == nullptr) return kCudaInvalidValue;
    const LaunchAttribute* set = attribute_of(found->parameters, attribute);
    std::memset(value, 0, sizeof(LaunchAttribute::value));
    if (set != nullptr) std::memcpy(value, set->value, sizeof(set->value));
    return kCudaSuccess;
  });
}

CUresult graph_kernel_node_set_attribute(CUgraphNode node, int attribute, const void* value) {
  return guarded([&]() -> CUresult {
    const auto found = find_node_of(node, kNodeKernel);
    if (value == nullptr) return kCudaInvalidValue;
    LaunchAttribute wanted{.id = attribute, .pad = {}, .value = {}};
    std::memcpy(wanted.value, value, sizeof(wanted.value));
    std::vector<LaunchAttribute> all = found->parameters.attributes;
    std::erase_if(all, [&](const LaunchAttribute& one) { return one.id == attribute; });
    all.push_back(wanted);
    return set(found, with_attributes(found->parameters, std::move(all)));
  });
}

CUresult graph_kernel_node_copy_attributes(CUgraphNode to, CUgraphNode from) {
  return guarded([&]() -> CUresult {
    const auto target = find_node_of(to, kNodeKernel);
    const auto source = find_node_of(from, kNodeKernel);
    return set(target, with_attributes(target->parameters, source->parameters.attributes));
  });
}

CUresult graph_memcpy_node_get_params(CUgraphNode node, Copy3d* copy) {
  return guarded([&]() -> CUresult {
    const auto found = find_node_of(node, kNodeMemcpy);
    if (copy == nullptr) return kCudaInvalidValue;
    *copy = found->parameters.copy;
    return kCudaSuccess;
  });
}

CUresult graph_memcpy_node_set_params(CUgraphNode node, const Copy3d* copy) {
  return guarded([&]() -> CUresult {
    const auto found = find_node_of(node, kNodeMemcpy);
    return set(found, copy_parameters(copy, found->parameters.context->handle()));
  });
}

CUresult graph_memset_node_get_params(CUgraphNode node, MemsetNodeParameters* fill) {
  return guarded([&]() -> CUresult {
    const auto found = find_node_of(node, kNodeMemset);
    if (fill == nullptr) return kCudaInvalidValue;
    *fill = found->parameters.fill;
    return kCudaSuccess;
  });
}

CUresult graph_memset_node_set_params(CUgraphNode node, const MemsetNodeParameters* fill) {
  return guarded([&]() -> CUresult {
    const auto found = find_node_of(node, kNodeMemset);
    return set(found, fill_parameters(fill, found->parameters.context->handle()));
  });
}

CUresult graph_host_node_get_params(CUgraphNode node, HostNodeParameters* host) {
  return guarded([&]() -> CUresult {
    const auto found = find_node_of(node, kNodeHost);
    if (host == nullptr) return kCudaInvalidValue;
    *host = found->parameters.host;
    return kCudaSuccess;
  });
}

CUresult graph_host_node_set_params(CUgraphNode node, const HostNodeParameters* host) {
  return guarded([&] { return set(find_node_of(node, kNodeHost), host_parameters(host)); });
}

CUresult graph_event_record_node_get_event(CUgraphNode node, CUevent* event) {
  return guarded([&] { return get_event(node, kNodeRecordEvent, event); });
}

CUresult graph_event_record_node_set_event(CUgraphNode node, CUevent event) {
  return guarded([&] {
    return set(find_node_of(node, kNodeRecordEvent), event_parameters(kNodeRecordEvent, event));
  });
}

CUresult graph_event_wait_node_get_event(CUgraphNode node, CUevent* event) {
  return guarded([&] { return get_event(node, kNodeWaitEvent, event); });
}

CUresult graph_event_wait_node_set_event(CUgraphNode node, CUevent event) {
  return guarded([&] {
    return set(find_node_of(node, kNodeWaitEvent), event_parameters(kNodeWaitEvent, event));
  });
}

CUresult graph_node_set_params(CUgraphNode node, AnyNodeParameters* parameters) {
  return guarded([&]() -> CUresult {
    const auto found = find_node(node);
    return set(found, any_parameters(parameters, found->parameters.attributes));
  });
}

CUresult graph_exec_kernel_node_set_params(CUgraphExec exec, CUgraphNode node,
                                           const KernelNodeParameters* parameters) {
  return guarded([&] { return set_kernel_in_exec(exec, node, parameters, false); });
}

CUresult graph_exec_kernel_node_set_params_v2(CUgraphExec exec, CUgraphNode node,
                                              const KernelNodeParameters* parameters) {
  return guarded([&] { return set_kernel_in_exec(exec, node, parameters, true); });
}

CUresult graph_exec_memcpy_node_set_params(CUgraphExec exec, CUgraphNode node, const Copy3d* copy,
                                           CUcontext context) {
  return guarded([&] { return set_in_exec(exec, node, copy_parameters(copy, context)); });
}

CUresult graph_exec_memset_node_set_params(CUgraphExec exec, CUgraphNode node,
                                           const MemsetNodeParameters* fill, CUcontext context) {
  return guarded([&] { return set_in_exec(exec, node, fill_parameters(fill, context)); });
}

CUresult graph_exec_host_node_set_params(CUgraphExec exec, CUgraphNode node,
                                         const HostNodeParameters* host) {
  return guarded([&] { return set_in_exec(exec, node, host_parameters(host)); });
}

CUresult graph_exec_event_record_node_set_event(CUgraphExec exec, CUgraphNode node, CUevent event) {
  return guarded(
      [&] { return set_in_exec(exec, node, event_parameters(kNodeRecordEvent, event)); });
}

CUresult graph_exec_event_wait_node_set_event(CUgraphExec exec, CUgraphNode node, CUevent event) {
  return guarded([&] { return set_in_exec(exec, node, event_parameters(kNodeWaitEvent, event)); });
}

CUresult graph_exec_child_graph_node_set_params(CUgraphExec exec, CUgraphNode node, CUgraph child) {
  return guarded([&] { return set_child_in_exec(exec, find_node_of(node, kNodeGraph), child); });
}

CUresult graph_exec_node_set_params(CUgraphExec exec, CUgraphNode node,
                                    AnyNodeParameters* parameters) {
  return guarded([&]() -> CUresult {
    if (parameters == nullptr) return kCudaInvalidValue;
    if (parameters->type == kNodeKernel) {
      return set_kernel_in_exec(exec, node, &parameters->kernel, true);
    }
    if (parameters->type == kNodeGraph) {
      return graph_exec_child_graph_node_set_params(exec, node, parameters->child.graph);
    }
    return set_in_exec(exec, node, any_parameters(parameters, {}));
  });
}

// Kernels, copies and fills can be disabled, so that a launch leaves them out.
CUresult graph_node_set_enabled(CUgraphExec exec, CUgraphNode node, unsigned enabled) {
  return guarded([&]() -> CUresult {
    const auto in = find_exec(exec);
    const auto origin = find_node(node);
    if (origin->parameters.type > kNodeMemset) return kCudaInvalidValue;
    std::lock_guard lock(in->mutex);
    exec_node(*in, origin).enabled = enabled != 0;
    return kCudaSuccess;
  });
}

CUresult graph_node_get_enabled(CUgraphExec exec, CUgraphNode node, unsigned* enabled) {
  return guarded([&]() -> CUresult {
    const auto in = find_exec(exec);
    const auto origin = find_node(node);
    if (enabled == nullptr || origin->parameters.type > kNodeMemset) return kCudaInvalidValue;
    std::lock_guard lock(in->mutex);
    *enabled = exec_node(*in, origin).enabled ? 1 : 0;
    return kCudaSuccess;
  });
}

}  // namespace annulus::simulator::driver::entry
