#ifndef ANNULUS_TESTS_FAULTS_FAILING_CALLS_H_
#define ANNULUS_TESTS_FAULTS_FAILING_CALLS_H_

// The part of a replaced library that handles each call: it counts the call, and makes it fail or
// passes it on. failing_driver.cc and failing_nvrtc.cc are such libraries. A program finds their
// FailingCalls under the names below, by dlsym for NVRTC and by an entry for the driver.

#include <array>
#include <atomic>
#include <cstddef>

namespace annulus::test {

// The objects that a driver or a compiler holds for its caller.
enum class Held { kContexts, kStreams, kEvents, kModules, kAllocations, kHostBlocks, kPrograms };
inline constexpr std::size_t kHeldKinds = 7;
using HeldCounts = std::array<long, kHeldKinds>;
inline constexpr const char* kHeldNames[kHeldKinds] = {
    "contexts", "streams", "events", "modules", "allocations", "host blocks", "programs"};

inline constexpr char kFailingDriver[] = "annulusFailingDriver";
inline constexpr char kFailingNvrtc[] = "annulusFailingNvrtc";

class FailingCalls {
 public:
  // Makes the call with this index return `code` and do nothing else. Calls are counted from 0,
  // starting now. If the index is negative, no call fails, and calls are only counted.
  void fail_at(int index, int code) {
    at_ = -1;
    calls_ = 0;
    failed_ = nullptr;
    code_ = code;
    at_ = index;
  }
  int calls() const { return calls_; }
  const char* failed() const { return failed_; }  // the symbol; null if the call was not reached
  HeldCounts held() const {
    HeldCounts counts;
    for (std::size_t i = 0; i < kHeldKinds; ++i) counts[i] = held_[i];
    return counts;
  }

  // For the libraries: returns whether this call must fail, and sets its error code.
  bool fails(const char* symbol, int* code) {
    if (calls_++ != at_) return false;
    failed_ = symbol;
    *code = code_;
    return true;
  }
  void add(Held kind, long count) { held_[static_cast<std::size_t>(kind)] += count; }

 private:
  std::atomic<int> calls_{0}, at_{-1}, code_{0};
  std::atomic<const char*> failed_{nullptr};
  std::array<std::atomic<long>, kHeldKinds> held_{};
};

}  // namespace annulus::test

#endif  // ANNULUS_TESTS_FAULTS_FAILING_CALLS_H_
