// Graphs built by hand. A stream capture makes graphs of the same kind.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "on_device.h"
#include "simulator/driver/entries/entries.h"

namespace annulus::simulator {
namespace {

namespace entry = driver::entry;
using driver::Copy3d;
using driver::CUgraphNode;
using driver::HostNodeParameters;
using driver::KernelNodeParameters;
using driver::MemsetNodeParameters;

struct Graphs : OnDevice {
  CUfunction scales = function(load(), "scale");
  CUgraph graph = nullptr;
  CUdeviceptr memory = allocate(16);
  CUstream stream = nullptr;
  float factor = 0;
  void* parameters[2] = {&memory, &factor};

  Graphs() {
    REQUIRE(entry::graph_create(&graph, 0) == kCudaSuccess);
    REQUIRE(cuda.stream_create(&stream, kStreamNonBlocking) == kCudaSuccess);
    write(memory, 1);
  }
  ~Graphs() { CHECK(cuda.graph_destroy(graph) == kCudaSuccess); }

  KernelNodeParameters kernel(float by) {
    factor = by;
    KernelNodeParameters node{};
    node.function = scales;
    std::fill_n(node.grid, 3, 1u);
    std::fill_n(node.block, 3, 1u);
    node.parameters = parameters;
    return node;
  }
  CUgraphNode add_kernel(float by, const std::vector<CUgraphNode>& after = {}) {
    const KernelNodeParameters node = kernel(by);
    CUgraphNode added = nullptr;
    REQUIRE(entry::graph_add_kernel_node_v2(&added, graph, after.data(), after.size(), &node) ==
            kCudaSuccess);
    return added;
  }
  CUgraphNode add_fill(std::uint32_t bits, const std::vector<CUgraphNode>& after = {}) {
    const MemsetNodeParameters fill{memory, 0, bits, 4, 1, 1};
    CUgraphNode added = nullptr;
    REQUIRE(entry::graph_add_memset_node(&added, graph, after.data(), after.size(), &fill,
                                         context) == kCudaSuccess);
    return added;
  }
  CUgraphExec instantiate() const {
    CUgraphExec exec = nullptr;
    REQUIRE(cuda.graph_instantiate(&exec, graph, 0) == kCudaSuccess);
    return exec;
  }
  float launch(CUgraphExec exec) const {
    CHECK(cuda.graph_launch(exec, stream) == kCudaSuccess);
    CHECK(cuda.stream_synchronize(stream) == kCudaSuccess);
    return read(memory);
  }
};

std::uint32_t bits(float value) {
  std::uint32_t word = 0;
  std::memcpy(&word, &value, sizeof word);
  return word;
}

TEST_CASE("nodes of every kind run in the order of their edges, launch after launch") {
  Graphs on;
  const CUgraphNode filled = on.add_fill(bits(3));
  const CUgraphNode doubled = on.add_kernel(2, {filled});
  float result = 0;
  Copy3d copy{};
  copy.from_type = driver::kMemoryDevice;
  copy.from_device = on.memory;
  copy.to_type = driver::kMemoryHost;
  copy.to_host = &result;
  copy.width = 4;
  copy.height = copy.depth = 1;
  CUgraphNode copied = nullptr;
  CHECK(entry::graph_add_memcpy_node(&copied, on.graph, &doubled, 1, &copy, on.context) ==
        kCudaSuccess);
  float seen = 0;
  struct Pair {
    const float* from;
    float* to;
  } pair{&result, &seen};
  const HostNodeParameters host{[](void* data) {
                                  const Pair& both = *static_cast<Pair*>(data);
                                  *both.to += *both.from;
                                },
                                &pair};
  CUgraphNode called = nullptr;
  CUgraphNode empty = nullptr;
  CHECK(entry::graph_add_empty_node(&empty, on.graph, &copied, 1) == kCudaSuccess);
  CHECK(entry::graph_add_host_node(&called, on.graph, &empty, 1, &host) == kCudaSuccess);
  const CUgraphExec exec = on.instantiate();
  CHECK(on.launch(exec) == 6);
  CHECK(on.launch(exec) == 6);
  CHECK(seen == 12);
  int type = -1;
  CHECK(entry::graph_node_get_type(called, &type) == kCudaSuccess);
  CHECK(type == driver::kNodeHost);
  CHECK(on.cuda.graph_exec_destroy(exec) == kCudaSuccess);
}

TEST_CASE("nodes that no edge orders race, and an edge added later orders them") {
  Graphs on;
  const CUgraphNode one = on.add_fill(bits(1));
  const CUgraphNode two = on.add_kernel(2);
  const CUgraphExec wrong = on.instantiate();
  CHECK(on.cuda.graph_launch(wrong, on.stream) == kCudaSuccess);
  CHECK(on.cuda.stream_synchronize(on.stream) == kCudaLaunchFailed);
  CHECK(on.message().find("missing wait") != std::string::npos);
  CHECK(on.cuda.simulator_clear_fault(on.device) == kCudaSuccess);
  CHECK(entry::graph_add_dependencies(on.graph, &one, &two, 1) == kCudaSuccess);
  CHECK(entry::graph_add_dependencies(on.graph, &one, &two, 1) == kCudaInvalidValue);
  CHECK(on.launch(on.instantiate()) == 2);
  CHECK(entry::graph_add_dependencies(on.graph, &two, &one, 1) == kCudaSuccess);  // a cycle
  CUgraphExec none = nullptr;
  CHECK(on.cuda.graph_instantiate(&none, on.graph, 0) == kCudaInvalidValue);
  CHECK(entry::graph_remove_dependencies(on.graph, &two, &one, 1) == kCudaSuccess);
  CHECK(entry::graph_remove_dependencies(on.graph, &two, &one, 1) == kCudaInvalidValue);
}

TEST_CASE("a graph tells its nodes and edges") {
  Graphs on;
  const CUgraphNode a = on.add_fill(0);
  const CUgraphNode b = on.add_kernel(1, {a});
  const CUgraphNode c = on.add_kernel(1, {a, b});
  std::size_t count = 0;
  CHECK(entry::graph_get_nodes(on.graph, nullptr, &count) == kCudaSuccess);
  CHECK(count == 3);
  CUgraphNode nodes[4] = {a, a, a, a};
  count = 4;
  CHECK(entry::graph_get_nodes(on.graph, nodes, &count) == kCudaSuccess);
  CHECK(count == 3);
  CHECK(nodes[2] == c);
  CHECK(nodes[3] == nullptr);
  count = 1;
  CHECK(entry::graph_get_root_nodes(on.graph, nodes, &count) == kCudaSuccess);
  CHECK(nodes[0] == a);
  CUgraphNode to[4] = {};
  count = 4;
  CHECK(entry::graph_get_edges(on.graph, nodes, to, &count) == kCudaSuccess);
  CHECK(count == 3);
  CHECK(nodes[0] == a);
  CHECK(to[0] == b);
  CHECK(to[2] == c);
  CHECK(entry::graph_node_get_dependencies(c, nullptr, &count) == kCudaSuccess);
  CHECK(count == 2);
  count = 4;
  CHECK(entry::graph_node_get_dependent_nodes(a, nodes, &count) == kCudaSuccess);
  CHECK(count == 2);
  CHECK(nodes[1] == c);
  CHECK(entry::graph_destroy_node(b) == kCudaSuccess);
  CHECK(entry::graph_destroy_node(b) == kCudaInvalidValue);
  CHECK(entry::graph_node_get_dependencies(c, nullptr, &count) == kCudaSuccess);
  CHECK(count == 1);
}

TEST_CASE("parameters are read and changed, in graphs and in executable ones") {
  Graphs on;
  const CUgraphNode filled = on.add_fill(bits(1));
  const CUgraphNode scaled = on.add_kernel(2, {filled});
  const CUgraphExec exec = on.instantiate();
  KernelNodeParameters now{};
  CHECK(entry::graph_kernel_node_get_params_v2(scaled, &now) == kCudaSuccess);
  CHECK(now.function == on.scales);
  CHECK(*static_cast<float*>(now.parameters[1]) == 2);
  CHECK(*static_cast<CUdeviceptr*>(now.parameters[0]) == on.memory);
  KernelNodeParameters other = on.kernel(5);
  CHECK(entry::graph_exec_kernel_node_set_params_v2(exec, scaled, &other) == kCudaSuccess);
  CHECK(on.launch(exec) == 5);
  CHECK(on.launch(on.instantiate()) == 2);  // the graph itself is unchanged
  CHECK(entry::graph_kernel_node_set_params(scaled, &other) == kCudaSuccess);
  CHECK(on.launch(on.instantiate()) == 5);
  MemsetNodeParameters fill{};
  CHECK(entry::graph_memset_node_get_params(filled, &fill) == kCudaSuccess);
  CHECK(fill.value == bits(1));
  fill.value = bits(4);
  CHECK(entry::graph_exec_memset_node_set_params(exec, filled, &fill, on.context) == kCudaSuccess);
  CHECK(on.launch(exec) == 20);
  CHECK(entry::graph_node_set_enabled(exec, scaled, 0) == kCudaSuccess);
  unsigned enabled = 1;
  CHECK(entry::graph_node_get_enabled(exec, scaled, &enabled) == kCudaSuccess);
  CHECK(enabled == 0);
  CHECK(on.launch(exec) == 4);
  other.block[0] = 5000;
  CHECK(entry::graph_kernel_node_set_params(scaled, &other) == kCudaInvalidValue);
  CHECK(entry::graph_kernel_node_set_params(filled, &other) == kCudaInvalidValue);
  fill.to = 5;
  CHECK(entry::graph_memset_node_set_params(filled, &fill) == kCudaInvalidValue);
}

TEST_CASE("an executable graph is brought up to a graph of the same shape") {
  Graphs on;
  const CUgraphNode filled = on.add_fill(bits(1));
  on.add_kernel(2, {filled});
  const CUgraphExec exec = on.instantiate();
  CUgraph second = nullptr;
  CHECK(entry::graph_clone(&second, on.graph) == kCudaSuccess);
  CUgraphNode copy = nullptr;
  CHECK(entry::graph_node_find_in_clone(&copy, filled, second) == kCudaSuccess);
  const MemsetNodeParameters seven{on.memory, 0, bits(7), 4, 1, 1};
  CHECK(entry::graph_memset_node_set_params(copy, &seven) == kCudaSuccess);
  driver::ExecUpdateResult result{};
  CHECK(entry::graph_exec_update_v2(exec, second, &result) == kCudaSuccess);
  CHECK(result.result == driver::kUpdateSuccess);
  CHECK(on.launch(exec) == 14);
  CUgraphNode more = nullptr;
  CHECK(entry::graph_add_empty_node(&more, second, nullptr, 0) == kCudaSuccess);
  CHECK(entry::graph_exec_update_v2(exec, second, &result) == driver::kCudaGraphExecUpdateFailure);
  CHECK(result.result == driver::kUpdateTopologyChanged);
  CHECK(on.launch(exec) == 14);
  CHECK(on.cuda.graph_destroy(second) == kCudaSuccess);
}

TEST_CASE("a graph within a graph runs as one node") {
  Graphs on;
  CUgraph inner = on.graph;
  const CUgraphNode first = on.add_kernel(2);
  on.add_kernel(3, {first});
  CUgraph outer = nullptr;
  REQUIRE(entry::graph_create(&outer, 0) == kCudaSuccess);
  on.graph = outer;
  const CUgraphNode filled = on.add_fill(bits(1));
  CUgraphNode child = nullptr;
  CHECK(entry::graph_add_child_graph_node(&child, outer, &filled, 1, inner) == kCudaSuccess);
  on.add_kernel(5, {child});
  const CUgraphExec exec = on.instantiate();
  CHECK(on.launch(exec) == 30);
  CUgraph within = nullptr;
  CHECK(entry::graph_child_graph_node_get_graph(child, &within) == kCudaSuccess);
  CHECK(within != inner);
  CHECK(on.cuda.graph_destroy(within) == kCudaInvalidValue);
  std::size_t count = 1;
  CUgraphNode root = nullptr;
  CHECK(entry::graph_get_root_nodes(within, &root, &count) == kCudaSuccess);
  const KernelNodeParameters seven = on.kernel(7);
  CHECK(entry::graph_exec_kernel_node_set_params_v2(exec, root, &seven) == kCudaSuccess);
  CHECK(on.launch(exec) == 105);
  CHECK(entry::graph_exec_child_graph_node_set_params(exec, child, inner) == kCudaSuccess);
  CHECK(on.launch(exec) == 30);
  const std::string path = std::filesystem::temp_directory_path() / "annulus_graph_test.dot";
  CHECK(entry::graph_debug_dot_print(outer, path.c_str(), 0) == kCudaSuccess);
  std::ifstream file(path);
  const std::string dot{std::istreambuf_iterator<char>(file), {}};
  CHECK(dot.find("kernel scale") != std::string::npos);
  CHECK(dot.find("->") != std::string::npos);
  std::filesystem::remove(path);
  CHECK(entry::graph_debug_dot_print(outer, "/no/such/folder/x.dot", 0) == kCudaInvalidValue);
  CHECK(on.cuda.graph_destroy(inner) == kCudaSuccess);
}

TEST_CASE("events are recorded and waited for by nodes") {
  Graphs on;
  CUevent event = nullptr;
  REQUIRE(on.cuda.event_create(&event, 0) == kCudaSuccess);
  const CUgraphNode filled = on.add_fill(bits(2));
  CUgraphNode recorded = nullptr;
  CHECK(entry::graph_add_event_record_node(&recorded, on.graph, &filled, 1, event) == kCudaSuccess);
  CUgraph second = nullptr;
  REQUIRE(entry::graph_create(&second, 0) == kCudaSuccess);
  const CUgraphExec first_exec = on.instantiate();
  std::swap(on.graph, second);
  CUgraphNode waited = nullptr;
  CHECK(entry::graph_add_event_wait_node(&waited, on.graph, nullptr, 0, event) == kCudaSuccess);
  on.add_kernel(3, {waited});
  const CUgraphExec second_exec = on.instantiate();
  CUstream other = nullptr;
  REQUIRE(on.cuda.stream_create(&other, kStreamNonBlocking) == kCudaSuccess);
  CHECK(on.cuda.graph_launch(first_exec, other) == kCudaSuccess);
  CHECK(on.launch(second_exec) == 6);
  CHECK(on.cuda.event_query(event) == kCudaSuccess);
  CUevent told = nullptr;
  CHECK(entry::graph_event_wait_node_get_event(waited, &told) == kCudaSuccess);
  CHECK(told == event);
  CHECK(on.cuda.graph_destroy(second) == kCudaSuccess);
}

TEST_CASE("what is captured is a graph like any other, and a capture can go on in one") {
  Graphs on;
  CUgraph captured = nullptr;
  REQUIRE(on.cuda.stream_begin_capture(on.stream, kCaptureRelaxed) == kCudaSuccess);
  CHECK(on.cuda.memset_d32_async(on.memory, bits(2), 1, on.stream) == kCudaSuccess);
  CHECK(on.scale(on.scales, on.memory, 3, on.stream) == kCudaSuccess);
  int status = 0;
  std::uint64_t id = 0;
  CUgraph in = nullptr;
  const CUgraphNode* tails = nullptr;
  std::size_t count = 0;
  CHECK(entry::stream_get_capture_info_v2(on.stream, &status, &id, &in, &tails, &count) ==
        kCudaSuccess);
  CHECK(status == 1);
  REQUIRE(count == 1);
  const CUgraphNode scaled = tails[0];
  CHECK(on.cuda.stream_end_capture(on.stream, &captured) == kCudaSuccess);
  CHECK(in == captured);
  int type = -1;
  CHECK(entry::graph_node_get_type(scaled, &type) == kCudaSuccess);
  CHECK(type == driver::kNodeKernel);
  KernelNodeParameters five = on.kernel(5);
  CHECK(entry::graph_kernel_node_set_params_v2(scaled, &five) == kCudaSuccess);
  std::swap(captured, on.graph);
  CHECK(on.launch(on.instantiate()) == 10);
  CHECK(entry::stream_begin_capture_to_graph(on.stream, on.graph, &scaled, nullptr, 1,
                                             kCaptureRelaxed) == kCudaSuccess);
  CHECK(on.scale(on.scales, on.memory, 7, on.stream) == kCudaSuccess);
  CUgraph same = nullptr;
  CHECK(on.cuda.stream_end_capture(on.stream, &same) == kCudaSuccess);
  CHECK(same == on.graph);
  CHECK(on.launch(on.instantiate()) == 70);
  CHECK(on.cuda.graph_destroy(captured) == kCudaSuccess);
}

TEST_CASE("what is no node, or cannot be one, is refused") {
  Graphs on;
  CUgraphNode node = nullptr;
  KernelNodeParameters kernel = on.kernel(1);
  kernel.function = nullptr;
  CHECK(entry::graph_add_kernel_node_v2(&node, on.graph, nullptr, 0, &kernel) == kCudaInvalidValue);
  CHECK(entry::graph_add_kernel_node_v2(&node, on.graph, nullptr, 0, nullptr) == kCudaInvalidValue);
  CHECK(entry::graph_add_empty_node(&node, nullptr, nullptr, 0) == kCudaInvalidValue);
  const auto stray = reinterpret_cast<CUgraphNode>(&node);
  CHECK(entry::graph_add_empty_node(&node, on.graph, &stray, 1) == kCudaInvalidValue);
  driver::AnyNodeParameters any{};
  any.type = 10;  // an allocation node
  CHECK(entry::graph_add_node(&node, on.graph, nullptr, 0, &any) == kCudaNotSupported);
  any.type = driver::kNodeHost;
  CHECK(entry::graph_add_node(&node, on.graph, nullptr, 0, &any) == kCudaInvalidValue);
  any.type = driver::kNodeKernel;
  any.kernel = on.kernel(4);
  CHECK(entry::graph_add_node(&node, on.graph, nullptr, 0, &any) == kCudaSuccess);
  CHECK(on.launch(on.instantiate()) == 4);
  CUgraphExec exec = nullptr;
  CHECK(on.cuda.graph_instantiate(&exec, on.graph, 4) == kCudaInvalidValue);
  driver::EdgeData edge{};
  edge.bytes[2] = 1;
  CHECK(entry::graph_add_node_v2(&node, on.graph, &node, &edge, 1, &any) == kCudaNotSupported);
}

}  // namespace
}  // namespace annulus::simulator
