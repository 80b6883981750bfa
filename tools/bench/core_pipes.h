#ifndef ANNULUS_TOOLS_BENCH_CORE_PIPES_H_
#define ANNULUS_TOOLS_BENCH_CORE_PIPES_H_

// The pipes of a sub-core for its cycle model (sub_core.h): how long instructions occupy them, and
// the queues in front of some pipes.

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>

#include "sub_core.h"

namespace annulus::bench {

using Cycle = std::int64_t;

inline constexpr double kSharedBytes = 128;  // the bytes that shared memory moves in a cycle

// The number of wavefronts of an instruction in the pipe of shared memory. 0 if it does not use
// that pipe.
int shared_wavefronts(const Sass& one);

// The bytes that a product of a warpgroup reads from shared memory. B has 32 bytes for each column.
// If A is in shared memory, it has 32 bytes for each of 64 rows.
double operand_bytes(const Sass& one);

// The bytes of a step that move through shared memory for anything except products.
double other_shared_bytes(const CoreProblem& problem, const CoreAssumptions& assumptions);

// The number of cycles of a step in which each pipe is busy.
std::array<double, kPipes> busy_pipes(const CoreProblem& problem,
                                      const CoreAssumptions& assumptions);

// A pipe with a queue in front of it. Instructions wait in the queue while their warp continues.
class QueuedPipe {
 public:
  bool takes(Cycle now, int queue) {
    while (!starts_.empty() && starts_.front() <= now) starts_.pop_front();
    return free_ <= now || static_cast<int>(starts_.size()) < queue;
  }
  // Returns the cycle in which the instruction leaves the queue.
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
