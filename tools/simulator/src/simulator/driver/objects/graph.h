#ifndef ANNULUS_SIMULATOR_DRIVER_OBJECTS_GRAPH_H_
#define ANNULUS_SIMULATOR_DRIVER_OBJECTS_GRAPH_H_

// Graphs: what capture records and what programs build by hand are the same nodes. An executable
// graph has them in an order in which they may run, with the nodes of graphs within it among them.

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "simulator/driver/entries/entries.h"
#include "simulator/driver/objects/copies.h"
#include "simulator/driver/objects/launch_call.h"
#include "simulator/driver/objects/state.h"

namespace annulus::simulator::driver {

// What a node does, as a program says it and may ask for it. Members of other types are empty.
struct NodeParameters {
  int type = kNodeEmpty;
  std::shared_ptr<const KernelCall> kernel;
  std::vector<entry::LaunchAttribute> attributes;  // of a kernel
  Copy3d copy{};
  MemsetNodeParameters fill{};
  HostNodeParameters host{};
  std::shared_ptr<Graph> child;
  std::shared_ptr<Event> event;
  std::shared_ptr<Context> context;  // of a copy or a fill
};

// The work of such a node, with what it is. Throws Refusal where it cannot be done. Those of events
// and of graphs do nothing themselves (Stream::submit).
Work work_of(NodeParameters parameters);
// Says of work that it is this copy, or this fill.
Work described(Work work, const std::shared_ptr<Context>& context, const Copy3d& copy);
Work described(Work work, const std::shared_ptr<Context>& context, const Fill& fill);

struct GraphNode {
  NodeParameters parameters;
  Work work;
  std::weak_ptr<Graph> graph;
  std::vector<std::shared_ptr<GraphNode>> after;
  std::weak_ptr<GraphNode> original;  // of which it is a clone
  std::vector<void*> shown;           // as cuGraphKernelNodeGetParams gave them

  CUgraphNode handle() { return reinterpret_cast<CUgraphNode>(this); }
};
using NodePointer = std::shared_ptr<GraphNode>;

struct Graph {
  std::mutex mutex;
  std::vector<NodePointer> nodes;  // in the order of the calls
  bool within = false;             // in a node of another graph, with which it is destroyed

  abi::CUgraph handle() { return reinterpret_cast<abi::CUgraph>(this); }
};

std::shared_ptr<Graph> make_graph();
// Forgets all nodes, and the handles of the graph and of those within it.
void destroy_graph(Graph& graph);
// A copy, whose nodes know of which they are.
std::shared_ptr<Graph> clone(Graph& graph);

// Adds a node behind others of the graph. The graph's mutex may not be held.
NodePointer add_node(const std::shared_ptr<Graph>& graph, Work work,
                     std::vector<NodePointer> after);

struct ExecNode {
  NodePointer origin;
  Work work;
  std::vector<std::size_t> after;  // indices of earlier nodes
  std::size_t branch = 0;          // nodes of one branch are in order
  bool enabled = true;

  const NodeParameters& parameters() const;
};

struct GraphExec {
  std::shared_ptr<Context> context;
  std::uint64_t flags = 0;
  std::mutex mutex;  // guards below
  std::vector<ExecNode> nodes;
  std::map<std::size_t, ChainPointer> chains;  // by branch
  ItemPointer last;  // that of the last launch, behind which the next runs
};

// Throws Refusal{kCudaInvalidValue} where the edges lead in a circle.
std::vector<ExecNode> flatten(Graph& graph);
std::shared_ptr<GraphExec> instantiate(const std::shared_ptr<Context>& context, Graph& graph,
                                       std::uint64_t flags);
// A graph of the nodes that the executable one has now.
std::shared_ptr<Graph> graph_of(GraphExec& exec);

// Lookups, which throw Refusal{kCudaInvalidValue}.
std::shared_ptr<Graph> find_graph(abi::CUgraph graph);
NodePointer find_node(CUgraphNode node);
std::vector<NodePointer> find_nodes(const CUgraphNode* nodes, std::size_t count);
std::shared_ptr<GraphExec> find_exec(abi::CUgraphExec exec);

}  // namespace annulus::simulator::driver

#endif  // ANNULUS_SIMULATOR_DRIVER_OBJECTS_GRAPH_H_
