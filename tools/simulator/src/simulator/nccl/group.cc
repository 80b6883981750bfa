#include "simulator/nccl/group.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/of_thread.h"

namespace annulus::simulator::nccl {

using abi::NcclResult;

Group& Group::of_thread() { return base::of_thread<Group>(); }

NcclResult Group::end() {
  if (depth_ == 0) return abi::kNcclInvalidUsage;
  if (--depth_ > 0) return abi::kNcclSuccess;
  return act();
}

void Group::leave() noexcept {
  if (depth_ == 0 || --depth_ > 0) return;
  failure_ = abi::kNcclSuccess;
  calls_.clear();
  started_.clear();
}

NcclResult Group::fail(NcclResult code) {
  if (depth_ > 0) failure_ = code;
  return code;
}

NcclResult Group::add(const Call& call) {
  calls_.push_back(call);
  return depth_ > 0 ? abi::kNcclSuccess : act();
}

NcclResult Group::add(const CommunicatorPointer& started) {
  started_.push_back(started);
  return depth_ > 0 ? abi::kNcclSuccess : act();
}

NcclResult Group::act() {
  const NcclResult failure = std::exchange(failure_, abi::kNcclSuccess);
  NcclResult code = failure;
  if (failure == abi::kNcclSuccess) {
    if (!calls_.empty() && !started_.empty()) {
      code = abi::kNcclInvalidUsage;
    } else {
      code = started_.empty() ? exchange() : meet();
    }
  }
  calls_.clear();
  started_.clear();
  return code;
}

NcclResult Group::meet() {
  NcclResult code = abi::kNcclSuccess;
  for (const CommunicatorPointer& one : started_) {
    const NcclResult of_one = one->blocking() ? one->finish() : abi::kNcclInProgress;
    if (code == abi::kNcclSuccess) code = of_one;
  }
  return code;
}

// All communicators send a greeting to their peers before any of them waits.
NcclResult Group::exchange() {
  std::vector<CommunicatorPointer> communicators;
  for (const Call& call : calls_) {
    if (std::ranges::find(communicators, call.communicator) == communicators.end()) {
      communicators.push_back(call.communicator);
    }
  }
  for (const CommunicatorPointer& one : communicators) {
    if (one->blocking() != communicators.front()->blocking()) return abi::kNcclInvalidArgument;
    // A message to the rank itself has its other half in the same group.
    const auto to_self = [&](Operation operation) {
      return std::ranges::count_if(calls_, [&](const Call& call) {
        return call.communicator == one && call.operation == operation && call.root == one->rank();
      });
    };
    if (to_self(Operation::kSend) != to_self(Operation::kReceive)) return abi::kNcclInvalidUsage;
  }
  for (const CommunicatorPointer& one : communicators) {
    std::vector<std::shared_ptr<driver::Stream>> streams;
    for (const Call& call : calls_) {
      if (call.communicator == one && std::ranges::find(streams, call.stream) == streams.end()) {
        streams.push_back(call.stream);
      }
    }
    std::vector<GroupWork> works;
    std::vector<int> peers;
    for (const auto& stream : streams) {
      std::vector<Call> of_stream;
      std::ranges::copy_if(calls_, std::back_inserter(of_stream), [&](const Call& call) {
        return call.communicator == one && call.stream == stream;
      });
      works.push_back({stream, messages_work(of_stream, &peers), driver::last_item(*stream)});
    }
    one->enqueue(std::move(works), peers);
  }
  NcclResult code = abi::kNcclSuccess;
  for (const CommunicatorPointer& one : communicators) {
    const NcclResult of_one = one->blocking() ? one->finish() : abi::kNcclInProgress;
    if (code == abi::kNcclSuccess) code = of_one;
  }
  return code;
}

}  // namespace annulus::simulator::nccl
