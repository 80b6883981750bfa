#ifndef ANNULUS_SIMULATOR_CHECK_OPERATION_H_
#define ANNULUS_SIMULATOR_CHECK_OPERATION_H_

// The operations of all streams (kernels, copies, fills, ...) and their order. One operation comes
// before another if a chain of these rules leads from the first to the second:
//
//   the order of a stream or of a branch of a graph, a wait for an event, the rules of the default
//   stream (Order::submit gets the operations that the new one waits for), and
//   the host: it observed the end of the first (Order::observe) before it submitted the second.
//
// The order in which the operations really ran does not matter. The host counts as one thread: what
// one of its threads has observed, all of them have, because the simulator cannot see how threads
// of the host synchronise.
//
// Operations that wait for each other in any case form a chain. The order before an operation is
// then a position in each chain (a vector clock). What the host has observed is not part of the
// vectors. It is stored as times in the chains, so that a vector has at most one entry for each
// busy stream.

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace annulus::simulator {

struct Program;

// A sequence of operations. Each comes after the one before it.
class Chain {
 private:
  friend class Order;
  struct Seen {
    std::uint64_t number;  // the host has observed the end of the operations up to this one ...
    std::uint64_t time;    // ... at this time
  };
  std::uint64_t last_ = 0;  // number of operations so far; they are counted from 1
  std::vector<Seen> seen_;  // numbers and times ascend
};
using ChainPointer = std::shared_ptr<Chain>;

struct Operation {
  // A description of the operation and its place, for messages: "kernel scale" or "cuMemcpyAsync",
  // and "stream 2 of device 0".
  std::string what;
  std::string where;
  bool checked = true;          // its accesses are recorded and compared
  std::weak_ptr<void> context;  // an object of the driver

  // Set for kernels. These members give the block for a warp's number and the line for a site.
  std::weak_ptr<const void> module;  // keeps the program; expired when the module is unloaded
  const Program* program = nullptr;
  std::uint32_t grid[3] = {1, 1, 1};
  int warp_bits = 0;  // warp of the grid = block << warp_bits | warp

  // Order::submit sets the members below.
  std::uint64_t serial = 0;  // position among all operations, in the order of the calls

 private:
  friend class Order;
  struct Known {
    ChainPointer chain;
    std::uint64_t number;
  };
  ChainPointer chain_;
  std::uint64_t number_ = 0;     // its position in its chain
  std::uint64_t submitted_ = 0;  // the time of its submission
  std::vector<Known> known_;  // for other chains: their last operation that comes before this one
};
using OperationPointer = std::shared_ptr<const Operation>;

// The order of all operations. Any thread may call.
class Order {
 public:
  // Makes `operation` the next of `chain`, after all of `after` (null stands for an operation that
  // ended long ago). Requires: the caller submits the operations of a chain in their order.
  OperationPointer submit(Operation operation, const ChainPointer& chain,
                          std::span<const OperationPointer> after);
  // `operation` has run. Requires: it is called once for every submitted operation.
  void ended(const Operation& operation);
  // The host has observed that `operation` ended.
  void observe(const Operation& operation);

  bool before(const Operation& first, const Operation& second) const;
  // Whether the host has observed its end.
  bool observed(const Operation& operation) const;
  // Whether the operation comes before everything that is pending or will ever be submitted.
  bool settled(const Operation& operation) const;

 private:
  static std::uint64_t never() { return ~std::uint64_t{0}; }
  static std::uint64_t time_seen(const Chain& chain, std::uint64_t number);
  void see(Chain& chain, std::uint64_t number);

  mutable std::mutex mutex_;  // guards the members below, and the chains
  std::uint64_t time_ = 1;    // rises when the host observes something
  std::uint64_t serial_ = 0;
  std::multiset<std::uint64_t> pending_;  // times of submission of operations that have not ended
};

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_CHECK_OPERATION_H_
