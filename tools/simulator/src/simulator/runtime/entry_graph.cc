// Functions of graphs whose parameters differ from the driver's: kernels, copies, fills.

#include "simulator/runtime/copies.h"
#include "simulator/runtime/entries.h"
#include "simulator/runtime/thread.h"

namespace annulus::simulator::runtime::entry {
namespace {

DriverKernelNode driver_node(const KernelNode* node) {
  if (node == nullptr) throw Refusal{cudaErrorInvalidValue};
  const CUfunction function = function_of(node->function);
  return {function,         node->grid,  node->block, node->dynamic_shared_bytes,
          node->parameters, node->extra, nullptr,     nullptr};
}

DriverCopy3D driver_node(const Copy3D* copy) {
  if (copy == nullptr) throw Refusal{cudaErrorInvalidValue};
  return driver_copy(*copy);
}

char* at_symbol(const void* symbol, std::size_t bytes, std::size_t offset) {
  std::size_t size = 0;
  char* const begin = address_of(symbol, &size);
  if (offset > size || bytes > size - offset) throw Refusal{cudaErrorInvalidValue};
  return begin + offset;
}

}  // namespace

Error instantiate(CUgraphExec* exec, CUgraph graph, unsigned long long flags) {
  return instantiate_with_flags(exec, graph, flags);
}

Error instantiate_with_flags(CUgraphExec* exec, CUgraph graph, unsigned long long flags) {
  enter();
  return driver().graph_instantiate(exec, graph, flags);
}

Error graph_add_kernel(GraphNode* node, CUgraph graph, const GraphNode* after, std::size_t count,
                       const KernelNode* parameters) {
  const DriverKernelNode made = driver_node(parameters);
  return driver().graph_add_kernel_node(node, graph, after, count, &made);
}

Error graph_kernel_get(GraphNode node, KernelNode* parameters) {
  if (parameters == nullptr) return cudaErrorInvalidValue;
  enter();
  DriverKernelNode has{};
  need(driver().graph_kernel_node_get_params(node, &has));
  *parameters = {host_function_of(has.function), has.grid,       has.block,
                 has.dynamic_shared_bytes,       has.parameters, has.extra};
  return cudaSuccess;
}

Error graph_kernel_set(GraphNode node, const KernelNode* parameters) {
  const DriverKernelNode made = driver_node(parameters);
  return driver().graph_kernel_node_set_params(node, &made);
}

Error graph_exec_kernel_set(CUgraphExec exec, GraphNode node, const KernelNode* parameters) {
  const DriverKernelNode made = driver_node(parameters);
  return driver().graph_exec_kernel_node_set_params(exec, node, &made);
}

Error graph_add_copy(GraphNode* node, CUgraph graph, const GraphNode* after, std::size_t count,
                     const Copy3D* copy) {
  const CUcontext context = enter();
  const DriverCopy3D made = driver_node(copy);
  return driver().graph_add_memcpy_node(node, graph, after, count, &made, context);
}

Error graph_add_copy_1d(GraphNode* node, CUgraph graph, const GraphNode* after, std::size_t count,
                        void* to, const void* from, std::size_t bytes, int kind) {
  const Copy3D copy = row_copy(to, from, bytes, kind);
  return graph_add_copy(node, graph, after, count, &copy);
}

Error graph_add_copy_to_symbol(GraphNode* node, CUgraph graph, const GraphNode* after,
                               std::size_t count, const void* symbol, const void* from,
                               std::size_t bytes, std::size_t offset, int kind) {
  return graph_add_copy_1d(node, graph, after, count, at_symbol(symbol, bytes, offset), from, bytes,
                           kind);
}

Error graph_add_copy_from_symbol(GraphNode* node, CUgraph graph, const GraphNode* after,
                                 std::size_t count, void* to, const void* symbol, std::size_t bytes,
                                 std::size_t offset, int kind) {
  return graph_add_copy_1d(node, graph, after, count, to, at_symbol(symbol, bytes, offset), bytes,
                           kind);
}

Error graph_copy_set(GraphNode node, const Copy3D* copy) {
  enter();
  const DriverCopy3D made = driver_node(copy);
  return driver().graph_memcpy_node_set_params(node, &made);
}

Error graph_copy_set_1d(GraphNode node, void* to, const void* from, std::size_t bytes, int kind) {
  const Copy3D copy = row_copy(to, from, bytes, kind);
  return graph_copy_set(node, &copy);
}

Error graph_exec_copy_set(CUgraphExec exec, GraphNode node, const Copy3D* copy) {
  const CUcontext context = enter();
  const DriverCopy3D made = driver_node(copy);
  return driver().graph_exec_memcpy_node_set_params(exec, node, &made, context);
}

Error graph_exec_copy_set_1d(CUgraphExec exec, GraphNode node, void* to, const void* from,
                             std::size_t bytes, int kind) {
  const Copy3D copy = row_copy(to, from, bytes, kind);
  return graph_exec_copy_set(exec, node, &copy);
}

Error graph_add_memset(GraphNode* node, CUgraph graph, const GraphNode* after, std::size_t count,
                       const MemsetNode* memset) {
  const CUcontext context = enter();
  return driver().graph_add_memset_node(node, graph, after, count, memset, context);
}

Error graph_exec_memset_set(CUgraphExec exec, GraphNode node, const MemsetNode* memset) {
  const CUcontext context = enter();
  return driver().graph_exec_memset_node_set_params(exec, node, memset, context);
}

Error graph_add_mem_free(GraphNode* node, CUgraph graph, const GraphNode* after, std::size_t count,
                         void* pointer) {
  enter();
  return driver().graph_add_mem_free_node(node, graph, after, count,
                                          reinterpret_cast<CUdeviceptr>(pointer));
}

}  // namespace annulus::simulator::runtime::entry
