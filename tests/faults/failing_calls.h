#ifndef ANNULUS_TESTS_FAULTS_FAILING_CALLS_H_
#define ANNULUS_TESTS_FAULTS_FAILING_CALLS_H_

// What a library that stands before another one does with each call: counts it, makes one of them
// fail, passes on the others. failing_driver.cc and failing_nvrtc.cc are such libraries, and a
// program finds their FailingCalls by the names below (dlsym of the one, an entry of the other).

#include <array>
#include <atomic>
#include <cstddef>

namespace annulus::test {

// What a driver or a compiler holds for its caller.
enum class Held { kContexts, kStreams, kEvents, kModules, kAllocations, kHostBlocks, kPrograms };
inline constexpr std::size_t kHeldKinds = 7;
using HeldCounts = std::array<long, kHeldKinds>;
inline constexpr const char* kHeldNames[kHeldKinds] = {
    "contexts", "streams", "events", "modules", "allocations", "host blocks", "programs"};

inline constexpr char kFailingDriver[] = "annulusFailingDriver";
inline constexpr char kFailingNvrtc[] = "annulusFailingNvrtc";

class FailingCalls {
 public:
  // The call with this index, counted from 0 at this moment, returns `code` and does nothing else.
  // With a negative index none does, and calls are counted.
  void fail_at(int index, int code) {
    at_ = -1;
    calls_ = 0;
    failed_ = nullptr;
    code_ = code;
    at_ = index;
  }
  int calls() const { return calls_; }
  const char* failed() const { return failed_; }  // the symbol; null where it was not reached
  HeldCounts held() const {
    HeldCounts counts;
    for (std::size_t i = 0; i < kHeldKinds; ++i) counts[i] = held_[i];
    return counts;
  }

  // For the libraries: whether this call is to fail, and with what.
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
