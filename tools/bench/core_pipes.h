#ifndef ANNULUS_TOOLS_BENCH_CORE_PIPES_H_
#define ANNULUS_TOOLS_BENCH_CORE_PIPES_H_

// The pipes of a sub-core, for its cycle model (sub_core.h): how long instructions occupy them, and
// the queues in front of some.

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>

#include "sub_core.h"

namespace annulus::bench {

using Cycle = std::int64_t;

inline constexpr double kSharedBytes = 128;  // that shared memory moves in a cycle

// Wavefronts of an instruction that passes through the pipe of shared memory; 0: it does not.
int shared_wavefronts(const Sass& one);

// Bytes that a product of a warpgroup reads from shared memory: B has 32 bytes for each column, and
// A, if it is there, for each of 64 rows.
double operand_bytes(const Sass& one);

// Bytes that everything but products moves in shared memory for a step.
double other_shared_bytes(const CoreProblem& problem, const CoreAssumptions& assumptions);

// Cycles that each pipe is busy for a step.
std::array<double, kPipes> busy_pipes(const CoreProblem& problem,
                                      const CoreAssumptions& assumptions);

// A pipe with a queue in front of it: instructions wait there while their warp goes on.
class QueuedPipe {
 public:
  bool takes(Cycle now, int queue) {
    while (!starts_.empty() && starts_.front() <= now) starts_.pop_front();
    return free_ <= now || static_cast<int>(starts_.size()) < queue;
  }
  // Returns when the instruction leaves the queue.
  Cycle add(Cycle now, int cycles) {
    const Cycle start = std::max(now, free_);
    if (start > now) starts_.push_back(start);
    free_ = start + cycles;
    return start;
  }

 private:
  Cycle free_ = 0;
  std::deque<Cycle> starts_;
};

}  // namespace annulus::bench

#endif  // ANNULUS_TOOLS_BENCH_CORE_PIPES_H_
