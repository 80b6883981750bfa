// Graphs that programs build by hand: their nodes and edges.

#include <algorithm>
#include <cstring>

#include "simulator/driver/entries/entries.h"
#include "simulator/driver/objects/graph.h"
#include "simulator/driver/objects/graph_parameters.h"

namespace annulus::simulator::driver::entry {
namespace {

struct Edge {
  NodePointer from;
  NodePointer to;
};

// Writes a list into a program's array. If the program passes no array, only the length is written.
// Otherwise as many elements are written as fit, and nulls after the last element.
template <typename Get>
CUresult give_list(std::size_t length, std::size_t* count, bool room, Get get) {
  if (count == nullptr) return kCudaInvalidValue;
  if (room) {
    for (std::size_t i = 0; i < *count; ++i) get(i, i < length);
  }
  *count = room ? std::min(*count, length) : length;
  return kCudaSuccess;
}

CUresult give_nodes(const std::vector<NodePointer>& nodes, CUgraphNode* into, EdgeData* edges,
                    std::size_t* count) {
  return give_list(nodes.size(), count, into != nullptr, [&](std::size_t i, bool there) {
    into[i] = there ? nodes[i]->handle() : nullptr;
    if (edges != nullptr) edges[i] = {};
  });
}

std::vector<NodePointer> nodes_of(Graph& graph) {
  std::lock_guard lock(graph.mutex);
  return graph.nodes;
}

std::vector<Edge> edges_of(Graph& graph) {
  std::vector<Edge> edges;
  for (const NodePointer& node : nodes_of(graph)) {
    for (const NodePointer& before : node->after) edges.push_back({before, node});
  }
  return edges;
}

std::shared_ptr<Graph> graph_of_node(const NodePointer& node) {
  auto graph = node->graph.lock();
  if (graph == nullptr) throw Refusal{kCudaInvalidValue};
  return graph;
}

void refuse_edge_data(const EdgeData* data, std::size_t count) {
  constexpr EdgeData kPlain{};
  for (std::size_t i = 0; data != nullptr && i < count; ++i) {
    if (std::memcmp(&data[i], &kPlain, sizeof kPlain) != 0) throw Refusal{kCudaNotSupported};
  }
}

CUresult add(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, std::size_t count,
             NodeParameters parameters) {
  if (node == nullptr) return kCudaInvalidValue;
  const auto in = find_graph(graph);
  std::vector<NodePointer> after = find_nodes(dependencies, count);
  for (std::size_t i = 0; i < after.size(); ++i) {
    const bool twice = std::find(after.begin(), after.begin() + static_cast<std::ptrdiff_t>(i),
                                 after[i]) != after.begin() + static_cast<std::ptrdiff_t>(i);
    if (after[i]->graph.lock() != in || twice) return kCudaInvalidValue;
  }
  *node = add_node(in, work_of(std::move(parameters)), std::move(after))->handle();
  return kCudaSuccess;
}

CUresult change_edges(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                      std::size_t count, bool adds) {
  const auto in = find_graph(graph);
  const std::vector<NodePointer> before = find_nodes(from, count);
  const std::vector<NodePointer> after = find_nodes(to, count);
  std::lock_guard lock(in->mutex);
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<NodePointer>& edges = after[i]->after;
    const bool there = std::ranges::find(edges, before[i]) != edges.end();
    const bool ours = before[i]->graph.lock() == in && after[i]->graph.lock() == in;
    if (!ours || there == adds || before[i] == after[i]) return kCudaInvalidValue;
    if (adds) {
      edges.push_back(before[i]);
    } else {
      std::erase(edges, before[i]);
    }
  }
  return kCudaSuccess;
}

}  // namespace

CUresult graph_create(CUgraph* graph, unsigned flags) {
  return guarded([&]() -> CUresult {
    if (graph == nullptr || flags != 0) return kCudaInvalidValue;
    *graph = make_graph()->handle();
    return kCudaSuccess;
  });
}

CUresult graph_destroy(CUgraph graph) {
  return guarded([&]() -> CUresult {
    const auto found = find_graph(graph);
    if (found->within) return kCudaInvalidValue;
    destroy_graph(*found);
    return kCudaSuccess;
  });
}

CUresult graph_clone(CUgraph* copy, CUgraph graph) {
  return guarded([&]() -> CUresult {
    const auto found = find_graph(graph);
    if (copy == nullptr) return kCudaInvalidValue;
    *copy = clone(*found)->handle();
    return kCudaSuccess;
  });
}

CUresult graph_node_find_in_clone(CUgraphNode* node, CUgraphNode original, CUgraph copy) {
  return guarded([&]() -> CUresult {
    const auto wanted = find_node(original);
    const auto in = find_graph(copy);
    if (node == nullptr) return kCudaInvalidValue;
    for (const NodePointer& one : nodes_of(*in)) {
      if (one->original.lock() != wanted) continue;
      *node = one->handle();
      return kCudaSuccess;
    }
    return kCudaInvalidValue;
  });
}

CUresult graph_add_kernel_node(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                               std::size_t count, const KernelNodeParameters* parameters) {
  return guarded([&] {
    return add(node, graph, dependencies, count, kernel_parameters(parameters, false, {}));
  });
}

CUresult graph_add_kernel_node_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                  std::size_t count, const KernelNodeParameters* parameters) {
  return guarded([&] {
    return add(node, graph, dependencies, count, kernel_parameters(parameters, true, {}));
  });
}

CUresult graph_add_memcpy_node(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                               std::size_t count, const Copy3d* copy, CUcontext context) {
  return guarded(
      [&] { return add(node, graph, dependencies, count, copy_parameters(copy, context)); });
}

CUresult graph_add_memset_node(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                               std::size_t count, const MemsetNodeParameters* fill,
                               CUcontext context) {
  return guarded(
      [&] { return add(node, graph, dependencies, count, fill_parameters(fill, context)); });
}

CUresult graph_add_host_node(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                             std::size_t count, const HostNodeParameters* host) {
  return guarded([&] { return add(node, graph, dependencies, count, host_parameters(host)); });
}

CUresult graph_add_empty_node(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                              std::size_t count) {
  return guarded([&] { return add(node, graph, dependencies, count, {}); });
}

CUresult graph_add_child_graph_node(CUgraphNode* node, CUgraph graph,
                                    const CUgraphNode* dependencies, std::size_t count,
                                    CUgraph child) {
  return guarded([&] { return add(node, graph, dependencies, count, child_parameters(child)); });
}

CUresult graph_add_event_record_node(CUgraphNode* node, CUgraph graph,
                                     const CUgraphNode* dependencies, std::size_t count,
                                     CUevent event) {
  return guarded([&] {
    return add(node, graph, dependencies, count, event_parameters(kNodeRecordEvent, event));
  });
}

CUresult graph_add_event_wait_node(CUgraphNode* node, CUgraph graph,
                                   const CUgraphNode* dependencies, std::size_t count,
                                   CUevent event) {
  return guarded([&] {
    return add(node, graph, dependencies, count, event_parameters(kNodeWaitEvent, event));
  });
}

CUresult graph_add_node(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                        std::size_t count, AnyNodeParameters* parameters) {
  return guarded(
      [&] { return add(node, graph, dependencies, count, any_parameters(parameters, {})); });
}

CUresult graph_add_node_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                           const EdgeData* data, std::size_t count, AnyNodeParameters* parameters) {
  return guarded([&]() -> CUresult {
    refuse_edge_data(data, count);
    return graph_add_node(node, graph, dependencies, count, parameters);
  });
}

CUresult graph_destroy_node(CUgraphNode node) {
  return guarded([&]() -> CUresult {
    const auto found = find_node(node);
    const auto graph = graph_of_node(found);
    {
      std::lock_guard lock(graph->mutex);
      std::erase(graph->nodes, found);
      for (const NodePointer& one : graph->nodes) std::erase(one->after, found);
    }
    found->after.clear();
    state().graph_nodes.remove(node);
    if (found->parameters.child != nullptr) destroy_graph(*found->parameters.child);
    return kCudaSuccess;
  });
}

CUresult graph_add_dependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                std::size_t count) {
  return guarded([&] { return change_edges(graph, from, to, count, true); });
}

CUresult graph_add_dependencies_v2(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                   const EdgeData* data, std::size_t count) {
  return guarded([&]() -> CUresult {
    refuse_edge_data(data, count);
    return change_edges(graph, from, to, count, true);
  });
}

CUresult graph_remove_dependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                   std::size_t count) {
  return guarded([&] { return change_edges(graph, from, to, count, false); });
}

CUresult graph_remove_dependencies_v2(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                      const EdgeData* data, std::size_t count) {
  return guarded([&]() -> CUresult {
    refuse_edge_data(data, count);
    return change_edges(graph, from, to, count, false);
  });
}

CUresult graph_get_nodes(CUgraph graph, CUgraphNode* nodes, std::size_t* count) {
  return guarded([&] { return give_nodes(nodes_of(*find_graph(graph)), nodes, nullptr, count); });
}

CUresult graph_get_root_nodes(CUgraph graph, CUgraphNode* nodes, std::size_t* count) {
  return guarded([&] {
    std::vector<NodePointer> roots = nodes_of(*find_graph(graph));
    std::erase_if(roots, [](const NodePointer& node) { return !node->after.empty(); });
    return give_nodes(roots, nodes, nullptr, count);
  });
}

CUresult graph_get_edges(CUgraph graph, CUgraphNode* from, CUgraphNode* to, std::size_t* count) {
  return graph_get_edges_v2(graph, from, to, nullptr, count);
}

CUresult graph_get_edges_v2(CUgraph graph, CUgraphNode* from, CUgraphNode* to, EdgeData* data,
                            std::size_t* count) {
  return guarded([&]() -> CUresult {
    const std::vector<Edge> edges = edges_of(*find_graph(graph));
    if ((from == nullptr) != (to == nullptr)) return kCudaInvalidValue;
    return give_list(edges.size(), count, from != nullptr, [&](std::size_t i, bool there) {
      from[i] = there ? edges[i].from->handle() : nullptr;
      to[i] = there ? edges[i].to->handle() : nullptr;
      if (data != nullptr) data[i] = {};
    });
  });
}

CUresult graph_node_get_dependencies(CUgraphNode node, CUgraphNode* nodes, std::size_t* count) {
  return graph_node_get_dependencies_v2(node, nodes, nullptr, count);
}

CUresult graph_node_get_dependencies_v2(CUgraphNode node, CUgraphNode* nodes, EdgeData* data,
                                        std::size_t* count) {
  return guarded([&] { return give_nodes(find_node(node)->after, nodes, data, count); });
}

CUresult graph_node_get_dependent_nodes(CUgraphNode node, CUgraphNode* nodes, std::size_t* count) {
  return graph_node_get_dependent_nodes_v2(node, nodes, nullptr, count);
}

CUresult graph_node_get_dependent_nodes_v2(CUgraphNode node, CUgraphNode* nodes, EdgeData* data,
                                           std::size_t* count) {
  return guarded([&] {
    const auto found = find_node(node);
    std::vector<NodePointer> dependents = nodes_of(*graph_of_node(found));
    std::erase_if(dependents, [&](const NodePointer& one) {
      return std::ranges::find(one->after, found) == one->after.end();
    });
    return give_nodes(dependents, nodes, data, count);
  });
}

CUresult graph_node_get_type(CUgraphNode node, int* type) {
  return guarded([&]() -> CUresult {
    const auto found = find_node(node);
    if (type == nullptr) return kCudaInvalidValue;
    *type = found->parameters.type;
    return kCudaSuccess;
  });
}

CUresult graph_child_graph_node_get_graph(CUgraphNode node, CUgraph* graph) {
  return guarded([&]() -> CUresult {
    const auto found = find_node(node);
    if (graph == nullptr || found->parameters.type != kNodeGraph) return kCudaInvalidValue;
    *graph = found->parameters.child->handle();
    return kCudaSuccess;
  });
}

}  // namespace annulus::simulator::driver::entry
