#ifndef ANNULUS_SIMULATOR_DRIVER_OBJECTS_GRAPH_H_
#define ANNULUS_SIMULATOR_DRIVER_OBJECTS_GRAPH_H_

// Graphs. Nodes that a capture recorded and nodes that a program built by hand are the same. An
// executable graph holds its nodes in an order in which they may run; the nodes of child graphs are
// among them.

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

// The parameters of a node, as a program passes them and may read them back. Members that do not
// belong to the type are empty.
struct NodeParameters {
  int type = kNodeEmpty;
  std::shared_ptr<const KernelCall> kernel;
  std::vector<entry::LaunchAttribute> attributes;  // attributes of a kernel node
  Copy3d copy{};
  MemsetNodeParameters fill{};
  HostNodeParameters host{};
  std::shared_ptr<Graph> child;
  std::shared_ptr<Event> event;
  std::shared_ptr<Context> context;  // the context of a copy or a fill
};

// The work of a node with these parameters, described for messages. Throws Refusal if it cannot be
// done. For a node of an event or a graph the work does nothing itself; Stream::submit handles
// these nodes.
Work work_of(NodeParameters parameters);
// Stores in the work that it is this copy, or this fill.
Work described(Work work, const std::shared_ptr<Context>& context, const Copy3d& copy);
Work described(Work work, const std::shared_ptr<Context>& context, const Fill& fill);

struct GraphNode {
  NodeParameters parameters;
  Work work;
  std::weak_ptr<Graph> graph;
  std::vector<std::shared_ptr<GraphNode>> after;
  std::weak_ptr<GraphNode> original;  // the node that this one was cloned from
  std::vector<void*> shown;           // the pointers that cuGraphKernelNodeGetParams returned

  CUgraphNode handle() { return reinterpret_cast<CUgraphNode>(this); }
};
using NodePointer = std::shared_ptr<GraphNode>;

struct Graph {
  std::mutex mutex;
  std::vector<NodePointer> nodes;  // in the order of the calls
  bool within = false;  // true for the graph of a child node, which is destroyed with that node

  abi::CUgraph handle() { return reinterpret_cast<abi::CUgraph>(this); }
};

std::shared_ptr<Graph> make_graph();
// Removes all nodes, and the handles of the graph and of the graphs within it.
void destroy_graph(Graph& graph);
// A copy of the graph. Each of its nodes stores which node it was cloned from.
std::shared_ptr<Graph> clone(Graph& graph);

// Adds a node that runs after the nodes `after`. The graph's mutex may not be held.
NodePointer add_node(const std::shared_ptr<Graph>& graph, Work work,
                     std::vector<NodePointer> after);

struct ExecNode {
  NodePointer origin;
  Work work;
  std::vector<std::size_t> after;  // indices of earlier nodes
  std::size_t branch = 0;          // the nodes of a branch run in order
  bool enabled = true;

  const NodeParameters& parameters() const;
};

struct GraphExec {
  std::shared_ptr<Context> context;
  std::uint64_t flags = 0;
  std::mutex mutex;  // guards the members below
  std::vector<ExecNode> nodes;
  std::map<std::size_t, ChainPointer> chains;  // by branch
  ItemPointer last;  // the end of the last launch, after which the next launch runs
};

// The nodes in an order in which they may run. Throws Refusal{kCudaInvalidValue} if the edges form
// a cycle.
std::vector<ExecNode> flatten(Graph& graph);
std::shared_ptr<GraphExec> instantiate(const std::shared_ptr<Context>& context, Graph& graph,
                                       std::uint64_t flags);
// A graph of the nodes that the executable graph has now.
std::shared_ptr<Graph> graph_of(GraphExec& exec);

// Find an object by its handle, or throw Refusal{kCudaInvalidValue}.
std::shared_ptr<Graph> find_graph(abi::CUgraph graph);
NodePointer find_node(CUgraphNode node);
std::vector<NodePointer> find_nodes(const CUgraphNode* nodes, std::size_t count);
std::shared_ptr<GraphExec> find_exec(abi::CUgraphExec exec);

}  // namespace annulus::simulator::driver

#endif  // ANNULUS_SIMULATOR_DRIVER_OBJECTS_GRAPH_H_
