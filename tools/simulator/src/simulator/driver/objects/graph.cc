#include "simulator/driver/objects/graph.h"

#include <algorithm>
#include <set>
#include <utility>

namespace annulus::simulator::driver {
namespace {

Work nothing(const char* what) {
  return make_work(what, [](const OperationPointer&) {});
}

Work host_work(const HostNodeParameters& host) {
  // The function runs after all work that was queued before it, and it can notify the rest of the
  // program. So the host has observed the end of that work.
  Work work = make_work("cuLaunchHostFunc", [host](const OperationPointer& operation) {
    state().detector.order.observe(*operation);
    host.function(host.data);
  });
  work.on_host = true;
  return work;
}

Work record_work(const std::shared_ptr<Event>& event) {
  return make_work("cuEventRecord", [event](const OperationPointer&) {
    std::lock_guard lock(event->mutex);
    event->recorded = true;
    event->time = std::chrono::steady_clock::now();
  });
}

Work unnamed_work(const NodeParameters& parameters) {
  switch (parameters.type) {
    case kNodeKernel:
      return kernel_work(parameters.kernel);
    case kNodeMemcpy:
      return copy_work("cuMemcpy", read_copy(*parameters.context, parameters.copy));
    case kNodeMemset: {
      const MemsetNodeParameters& fill = parameters.fill;
      const Fill wanted{.to = fill.to,
                        .pitch = fill.pitch,
                        .value = fill.value,
                        .unit = static_cast<int>(std::min(fill.element_bytes, 8u)),
                        .width = fill.width,
                        .height = fill.height};
      return fill_work("cuMemset", *parameters.context, wanted);
    }
    case kNodeHost:
      if (parameters.host.function == nullptr) throw Refusal{abi::kCudaInvalidValue};
      return host_work(parameters.host);
    case kNodeRecordEvent:
      return record_work(parameters.event);
    case kNodeWaitEvent:
      return nothing("cuStreamWaitEvent");
    case kNodeGraph:
    case kNodeEmpty:
      return nothing("an empty node");
    default:
      throw Refusal{abi::kCudaNotSupported};
  }
}

void sort_unique(std::vector<std::size_t>* indices) {
  std::ranges::sort(*indices);
  indices->erase(std::unique(indices->begin(), indices->end()), indices->end());
}

// The nodes in an order in which each comes after the nodes that it waits for. Apart from that they
// keep the order in which they were made.
std::vector<NodePointer> ordered(const std::vector<NodePointer>& nodes) {
  std::map<const GraphNode*, std::size_t> place;
  for (std::size_t i = 0; i < nodes.size(); ++i) place[nodes[i].get()] = i;
  std::vector<std::size_t> waits(nodes.size());
  std::vector<std::vector<std::size_t>> before(nodes.size());
  std::set<std::size_t> ready;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    waits[i] = nodes[i]->after.size();
    for (const NodePointer& one : nodes[i]->after) before[place.at(one.get())].push_back(i);
    if (waits[i] == 0) ready.insert(i);
  }
  std::vector<NodePointer> result;
  while (!ready.empty()) {
    const std::size_t next = *ready.begin();
    ready.erase(ready.begin());
    result.push_back(nodes[next]);
    for (const std::size_t later : before[next]) {
      if (--waits[later] == 0) ready.insert(later);
    }
  }
  if (result.size() != nodes.size()) throw Refusal{abi::kCudaInvalidValue};
  return result;
}

// Appends the nodes, to run after those of `first`. Returns the indices of the nodes that no other
// one waits for.
std::vector<std::size_t> flatten_into(Graph& graph, const std::vector<std::size_t>& first,
                                      std::vector<ExecNode>* nodes) {
  std::vector<NodePointer> all;
  {
    std::lock_guard lock(graph.mutex);
    all = ordered(graph.nodes);
  }
  std::map<const GraphNode*, std::vector<std::size_t>> ends;
  std::set<const GraphNode*> last;
  for (const NodePointer& node : all) {
    std::vector<std::size_t> after;
    for (const NodePointer& one : node->after) {
      const auto& before = ends[one.get()];
      after.insert(after.end(), before.begin(), before.end());
      last.erase(one.get());
    }
    if (node->after.empty()) after = first;
    sort_unique(&after);
    last.insert(node.get());
    if (node->parameters.type == kNodeGraph) {
      ends[node.get()] = flatten_into(*node->parameters.child, after, nodes);
    } else {
      ends[node.get()] = {nodes->size()};
      nodes->push_back({node, node->work, std::move(after), 0, true});
    }
  }
  if (all.empty()) return first;
  std::vector<std::size_t> result;
  for (const GraphNode* node : last) {
    result.insert(result.end(), ends[node].begin(), ends[node].end());
  }
  sort_unique(&result);
  return result;
}

// A node continues the branch of a node that it waits for, if no other node continues that branch
// yet. Otherwise it begins a branch.
void find_branches(std::vector<ExecNode>* nodes) {
  std::vector<bool> taken(nodes->size());
  std::size_t branches = 0;
  for (ExecNode& node : *nodes) {
    const auto found =
        std::ranges::find_if(node.after, [&](std::size_t index) { return !taken[index]; });
    if (found == node.after.end()) {
      node.branch = branches++;
    } else {
      taken[*found] = true;
      node.branch = (*nodes)[*found].branch;
    }
  }
}

}  // namespace

Work work_of(NodeParameters parameters) {
  Work work = unnamed_work(parameters);
  work.node = std::make_shared<const NodeParameters>(std::move(parameters));
  return work;
}

Work described(Work work, const std::shared_ptr<Context>& context, const Copy3d& copy) {
  NodeParameters parameters;
  parameters.type = kNodeMemcpy;
  parameters.copy = copy;
  parameters.context = context;
  work.node = std::make_shared<const NodeParameters>(std::move(parameters));
  return work;
}

Work described(Work work, const std::shared_ptr<Context>& context, const Fill& fill) {
  NodeParameters parameters;
  parameters.type = kNodeMemset;
  parameters.fill = {fill.to,    fill.pitch, fill.value, static_cast<unsigned>(fill.unit),
                     fill.width, fill.height};
  parameters.context = context;
  work.node = std::make_shared<const NodeParameters>(std::move(parameters));
  return work;
}

const NodeParameters& ExecNode::parameters() const {
  return work.node != nullptr ? *work.node : origin->parameters;
}

std::shared_ptr<Graph> make_graph() {
  auto graph = std::make_shared<Graph>();
  state().graphs.add(graph);
  return graph;
}

void destroy_graph(Graph& graph) {
  state().graphs.remove(graph.handle());
  std::vector<NodePointer> nodes;
  {
    std::lock_guard lock(graph.mutex);
    nodes.swap(graph.nodes);
  }
  for (const NodePointer& node : nodes) {
    state().graph_nodes.remove(node->handle());
    node->after.clear();
    if (node->parameters.child != nullptr) destroy_graph(*node->parameters.child);
  }
}

std::shared_ptr<Graph> clone(Graph& graph) {
  auto copy = make_graph();
  std::vector<NodePointer> nodes;
  {
    std::lock_guard lock(graph.mutex);
    nodes = graph.nodes;
  }
  std::map<const GraphNode*, NodePointer> copies;
  for (const NodePointer& node : nodes) {
    Work work = node->work;
    if (node->parameters.type == kNodeGraph) {
      NodeParameters parameters = node->parameters;
      parameters.child = clone(*parameters.child);
      parameters.child->within = true;
      work = work_of(std::move(parameters));
    }
    copies[node.get()] = add_node(copy, std::move(work), {});
    copies[node.get()]->original = node;
  }
  for (const NodePointer& node : nodes) {
    for (const NodePointer& one : node->after) {
      copies[node.get()]->after.push_back(copies.at(one.get()));
    }
  }
  return copy;
}

NodePointer add_node(const std::shared_ptr<Graph>& graph, Work work,
                     std::vector<NodePointer> after) {
  auto node = std::make_shared<GraphNode>();
  if (work.node != nullptr) node->parameters = *work.node;
  node->work = std::move(work);
  node->graph = graph;
  node->after = std::move(after);
  {
    std::lock_guard lock(graph->mutex);
    graph->nodes.push_back(node);
  }
  state().graph_nodes.add(node);
  return node;
}

std::vector<ExecNode> flatten(Graph& graph) {
  std::vector<ExecNode> nodes;
  flatten_into(graph, {}, &nodes);
  find_branches(&nodes);
  return nodes;
}

std::shared_ptr<GraphExec> instantiate(const std::shared_ptr<Context>& context, Graph& graph,
                                       std::uint64_t flags) {
  auto exec = std::make_shared<GraphExec>();
  exec->context = context;
  exec->flags = flags;
  exec->nodes = flatten(graph);
  return exec;
}

std::shared_ptr<Graph> graph_of(GraphExec& exec) {
  auto graph = make_graph();
  std::lock_guard lock(exec.mutex);
  std::vector<NodePointer> made;
  for (const ExecNode& node : exec.nodes) {
    std::vector<NodePointer> after;
    for (const std::size_t index : node.after) after.push_back(made[index]);
    made.push_back(add_node(graph, node.enabled ? node.work : work_of({}), std::move(after)));
  }
  return graph;
}

std::shared_ptr<Graph> find_graph(abi::CUgraph graph) {
  auto found = state().graphs.find(graph);
  if (found == nullptr) throw Refusal{abi::kCudaInvalidValue};
  return found;
}

NodePointer find_node(CUgraphNode node) {
  auto found = state().graph_nodes.find(node);
  if (found == nullptr) throw Refusal{abi::kCudaInvalidValue};
  return found;
}

std::vector<NodePointer> find_nodes(const CUgraphNode* nodes, std::size_t count) {
  if (count != 0 && nodes == nullptr) throw Refusal{abi::kCudaInvalidValue};
  std::vector<NodePointer> found;
  for (std::size_t i = 0; i < count; ++i) found.push_back(find_node(nodes[i]));
  return found;
}

std::shared_ptr<GraphExec> find_exec(abi::CUgraphExec exec) {
  auto found = state().graph_execs.find(exec);
  if (found == nullptr) throw Refusal{abi::kCudaInvalidValue};
  return found;
}

}  // namespace annulus::simulator::driver
