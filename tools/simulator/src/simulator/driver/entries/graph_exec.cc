// Executable graphs, and queries of captures.

#include <fmt/core.h>

#include <fstream>

#include "simulator/driver/entries/entries.h"
#include "simulator/driver/objects/capture.h"
#include "simulator/driver/objects/graph.h"

namespace annulus::simulator::driver::entry {
namespace {

// Copies the nodes of a graph into an executable graph of the same shape.
ExecUpdateResult update(GraphExec& exec, Graph& graph) {
  std::vector<ExecNode> fresh;
  try {
    fresh = flatten(graph);
  } catch (const Refusal&) {
    return {kUpdateError, nullptr, nullptr};
  }
  std::lock_guard lock(exec.mutex);
  if (fresh.size() != exec.nodes.size()) return {kUpdateTopologyChanged, nullptr, nullptr};
  for (std::size_t i = 0; i < fresh.size(); ++i) {
    const CUgraphNode node = fresh[i].origin->handle();
    if (fresh[i].parameters().type != exec.nodes[i].parameters().type) {
      return {kUpdateNodeTypeChanged, node, nullptr};
    }
    if (fresh[i].after != exec.nodes[i].after) return {kUpdateTopologyChanged, node, nullptr};
  }
  for (std::size_t i = 0; i < fresh.size(); ++i) exec.nodes[i].work = std::move(fresh[i].work);
  return {kUpdateSuccess, nullptr, nullptr};
}

const char* shape_of(int type) {
  switch (type) {
    case kNodeKernel:
      return "octagon";
    case kNodeMemcpy:
    case kNodeMemset:
      return "invtrapezium";
    case kNodeHost:
      return "rectangle";
    case kNodeGraph:
      return "doubleoctagon";
    default:
      return "ellipse";
  }
}

// The graph as DOT. The nodes of a child graph are drawn as a cluster.
std::string dot_of(Graph& graph) {
  std::vector<NodePointer> nodes;
  {
    std::lock_guard lock(graph.mutex);
    nodes = graph.nodes;
  }
  std::string text =
      fmt::format("subgraph cluster_{} {{\nlabel=\"graph\"\n", static_cast<const void*>(&graph));
  for (const NodePointer& node : nodes) {
    text += fmt::format("\"{}\" [shape={} label=\"{}\"]\n", static_cast<const void*>(node.get()),
                        shape_of(node->parameters.type), node->work.operation.what);
    if (node->parameters.child != nullptr) text += dot_of(*node->parameters.child);
  }
  for (const NodePointer& node : nodes) {
    for (const NodePointer& before : node->after) {
      text += fmt::format("\"{}\" -> \"{}\"\n", static_cast<const void*>(before.get()),
                          static_cast<const void*>(node.get()));
    }
  }
  return text + "}\n";
}

struct CaptureInfo {
  int status = 0;  // CUstreamCaptureStatus: not under capture
  std::uint64_t id = 0;
  CUgraph graph = nullptr;
  const CUgraphNode* nodes = nullptr;
  std::size_t count = 0;
};

CaptureInfo capture_info(CUstream stream) {
  const auto on = find_stream(stream);
  const auto capture = on->capture();
  CaptureInfo info;
  if (capture == nullptr) return info;
  std::lock_guard lock(capture->mutex);
  info.status = capture->invalid ? 2 : 1;
  info.id = capture->id;
  info.graph = capture->graph->handle();
  std::vector<CUgraphNode>& shown = capture->shown[on->handle()];
  shown.clear();
  for (const NodePointer& node : capture->tails[on->handle()]) shown.push_back(node->handle());
  info.nodes = shown.data();
  info.count = shown.size();
  return info;
}

template <typename T>
void give(T* to, const T& value) {
  if (to != nullptr) *to = value;
}

}  // namespace

CUresult graph_instantiate(CUgraphExec* exec, CUgraph graph, unsigned long long flags) {
  return guarded([&]() -> CUresult {
    const auto context = live_context();
    const auto found = find_graph(graph);
    if (exec == nullptr || (flags & ~std::uint64_t{kInstantiateFlags}) != 0) {
      return kCudaInvalidValue;
    }
    *exec = state().graph_execs.add(instantiate(context, *found, flags));
    return kCudaSuccess;
  });
}

// The form before CUDA 12 has a buffer for an error message about the graph. The buffer is left
// empty, because the code reports the error.
CUresult graph_instantiate_logged(CUgraphExec* exec, CUgraph graph, CUgraphNode* wrong, char* log,
                                  std::size_t bytes) {
  give(wrong, CUgraphNode{});
  if (log != nullptr && bytes != 0) *log = '\0';
  return graph_instantiate(exec, graph, 0);
}

CUresult graph_instantiate_with_params(CUgraphExec* exec, CUgraph graph,
                                       InstantiateParameters* parameters) {
  if (parameters == nullptr) return kCudaInvalidValue;
  parameters->wrong_node = nullptr;
  const CUresult code = graph_instantiate(exec, graph, parameters->flags);
  parameters->result = code == kCudaSuccess ? 0 : 1;  // CUgraphInstantiateResult
  return code;
}

CUresult graph_launch(CUgraphExec exec, CUstream stream) {
  return guarded([&]() -> CUresult {
    const auto on = find_stream(stream);
    on->submit(*find_exec(exec));
    return kCudaSuccess;
  });
}

// Nothing has to be copied to the device before a launch.
CUresult graph_upload(CUgraphExec exec, CUstream stream) {
  return guarded([&]() -> CUresult {
    find_stream(stream);
    find_exec(exec);
    return kCudaSuccess;
  });
}

CUresult graph_exec_destroy(CUgraphExec exec) {
  return guarded([&]() -> CUresult {
    return state().graph_execs.remove(exec) == nullptr ? kCudaInvalidValue : kCudaSuccess;
  });
}

CUresult graph_exec_get_flags(CUgraphExec exec, std::uint64_t* flags) {
  return guarded([&]() -> CUresult {
    const auto found = find_exec(exec);
    if (flags == nullptr) return kCudaInvalidValue;
    *flags = found->flags;
    return kCudaSuccess;
  });
}

CUresult graph_exec_update_v2(CUgraphExec exec, CUgraph graph, ExecUpdateResult* result) {
  return guarded([&]() -> CUresult {
    const auto in = find_exec(exec);
    const auto from = find_graph(graph);
    if (result == nullptr) return kCudaInvalidValue;
    *result = update(*in, *from);
    return result->result == kUpdateSuccess ? kCudaSuccess : CUresult{kCudaGraphExecUpdateFailure};
  });
}

CUresult graph_exec_update(CUgraphExec exec, CUgraph graph, CUgraphNode* wrong, int* result) {
  ExecUpdateResult all{};
  const CUresult code = graph_exec_update_v2(exec, graph, &all);
  give(wrong, all.node);
  give(result, all.result);
  return code;
}

CUresult graph_debug_dot_print(CUgraph graph, const char* path, unsigned) {
  return guarded([&]() -> CUresult {
    const auto found = find_graph(graph);
    if (path == nullptr) return kCudaInvalidValue;
    std::ofstream file(path);
    file << "digraph dot {\n" << dot_of(*found) << "}\n";
    file.close();
    return file ? kCudaSuccess : kCudaInvalidValue;
  });
}

CUresult stream_begin_capture_to_graph(CUstream stream, CUgraph graph,
                                       const CUgraphNode* dependencies, const EdgeData* data,
                                       std::size_t count, int mode) {
  return guarded([&]() -> CUresult {
    const auto found = find_graph(graph);
    const std::vector<NodePointer> behind = find_nodes(dependencies, count);
    for (const NodePointer& node : behind) {
      if (node->graph.lock() != found) return kCudaInvalidValue;
    }
    if (data != nullptr) return kCudaNotSupported;
    return begin_capture(stream, found, behind, mode);
  });
}

CUresult stream_get_capture_info(CUstream stream, int* status, std::uint64_t* id) {
  return stream_get_capture_info_v3(stream, status, id, nullptr, nullptr, nullptr, nullptr);
}

CUresult stream_get_capture_info_v2(CUstream stream, int* status, std::uint64_t* id, CUgraph* graph,
                                    const CUgraphNode** nodes, std::size_t* count) {
  return stream_get_capture_info_v3(stream, status, id, graph, nodes, nullptr, count);
}

CUresult stream_get_capture_info_v3(CUstream stream, int* status, std::uint64_t* id, CUgraph* graph,
                                    const CUgraphNode** nodes, const EdgeData** data,
                                    std::size_t* count) {
  return guarded([&]() -> CUresult {
    if (status == nullptr) return kCudaInvalidValue;
    const CaptureInfo info = capture_info(stream);
    *status = info.status;
    if (info.status == 0) return kCudaSuccess;
    give(id, info.id);
    give(graph, info.graph);
    give(nodes, info.nodes);
    give(data, static_cast<const EdgeData*>(nullptr));
    give(count, info.count);
    return kCudaSuccess;
  });
}

CUresult stream_update_capture_dependencies(CUstream stream, CUgraphNode* dependencies,
                                            std::size_t count, unsigned flags) {
  return guarded([&]() -> CUresult {
    const auto on = find_stream(stream);
    const auto capture = on->capture();
    if (capture == nullptr) return kCudaIllegalState;
    if (flags > kSetCaptureDependencies) return kCudaInvalidValue;
    const std::vector<NodePointer> nodes = find_nodes(dependencies, count);
    for (const NodePointer& node : nodes) {
      if (node->graph.lock() != capture->graph) return kCudaInvalidValue;
    }
    std::lock_guard lock(capture->mutex);
    std::vector<NodePointer>& tails = capture->tails[on->handle()];
    if (flags == kSetCaptureDependencies) tails.clear();
    tails.insert(tails.end(), nodes.begin(), nodes.end());
    return kCudaSuccess;
  });
}

CUresult stream_update_capture_dependencies_v2(CUstream stream, CUgraphNode* dependencies,
                                               const EdgeData* data, std::size_t count,
                                               unsigned flags) {
  if (data != nullptr) return kCudaNotSupported;
  return stream_update_capture_dependencies(stream, dependencies, count, flags);
}

}  // namespace annulus::simulator::driver::entry
