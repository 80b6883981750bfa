#ifndef ANNULUS_SIMULATOR_CHECK_OPERATION_H_
#define ANNULUS_SIMULATOR_CHECK_OPERATION_H_

// The operations of all streams (kernels, copies, fills, ...) and what orders them. One operation
// comes before another where a chain of these leads from it to the other:
//
//   the order of a stream or of a branch of a graph, a wait for an event, the rules of the default
//   stream (Order::submit is told which operations the new one waits for), and
//   the host: it saw that the first had ended (Order::observe) before it submitted the second.
//
// The order in which they really ran does not matter. The host counts as one thread: what any of
// its threads has seen, all know, because the simulator cannot see how threads tell each other.
//
// Operations that wait for each other anyway form a chain, and a position in each chain is all that
// an operation has to know (a vector clock). What the host has seen is left out of the vectors and
// kept as times in the chains, so that a vector has one entry for each busy stream at most.

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace annulus::simulator {

struct Program;

// A sequence of operations each of which comes after the one before it.
class Chain {
 private:
  friend class Order;
  struct Seen {
    std::uint64_t number;  // the host saw the operations up to this one end ...
    std::uint64_t time;    // ... at this time
  };
  std::uint64_t last_ = 0;  // operations so far; they count from 1
  std::vector<Seen> seen_;  // both ascending
};
using ChainPointer = std::shared_ptr<Chain>;

struct Operation {
  // What it is and where it runs, for messages: "kernel scale" or "cuMemcpyAsync", and "stream 2 of
  // device 0".
  std::string what;
  std::string where;
  bool checked = true;          // its accesses are recorded and compared
  std::weak_ptr<void> context;  // the driver's object

  // Set for kernels, and used to find the block of a warp's number and the line of a site.
  std::weak_ptr<const void> module;  // holds the program; expired when the module is unloaded
  const Program* program = nullptr;
  std::uint32_t grid[3] = {1, 1, 1};
  int warp_bits = 0;  // warp of the grid = block << warp_bits | warp

  // Set by Order::submit.
  std::uint64_t serial = 0;  // position among all operations, in the order of the calls

 private:
  friend class Order;
  struct Known {
    ChainPointer chain;
    std::uint64_t number;
  };
  ChainPointer chain_;
  std::uint64_t number_ = 0;     // position in the chain
  std::uint64_t submitted_ = 0;  // time
  std::vector<Known> known_;     // for other chains: their last operation that comes before this
};
using OperationPointer = std::shared_ptr<const Operation>;

// Any thread may call.
class Order {
 public:
  // Makes `operation` the next of `chain`, behind all of `after` (null stands for one that ended
  // long ago). Requires: the caller makes submissions to one chain in their order.
  OperationPointer submit(Operation operation, const ChainPointer& chain,
                          std::span<const OperationPointer> after);
  // `operation` has run. Requires: it is called once for every submitted operation.
  void ended(const Operation& operation);
  // The host has seen that `operation` ended.
  void observe(const Operation& operation);

  bool before(const Operation& first, const Operation& second) const;
  // Whether the host has seen it end.
  bool observed(const Operation& operation) const;
  // Whether it comes before everything that is pending or will ever be submitted.
  bool settled(const Operation& operation) const;

 private:
  static std::uint64_t never() { return ~std::uint64_t{0}; }
  static std::uint64_t time_seen(const Chain& chain, std::uint64_t number);
  void see(Chain& chain, std::uint64_t number);

  mutable std::mutex mutex_;  // guards all below, and the chains
  std::uint64_t time_ = 1;    // rises when the host sees something
  std::uint64_t serial_ = 0;
  std::multiset<std::uint64_t> pending_;  // times of submission of operations that have not ended
};

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_CHECK_OPERATION_H_
