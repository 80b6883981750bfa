#ifndef ANNULUS_TOOLS_BENCH_CORE_PIPES_H_
#define ANNULUS_TOOLS_BENCH_CORE_PIPES_H_

// How long instructions occupy the pipes of a sub-core: counts that need no simulation. Used by the
// cycle model (sub_core.h).

#include <array>

#include "sub_core.h"

namespace annulus::bench {

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

}  // namespace annulus::bench

#endif  // ANNULUS_TOOLS_BENCH_CORE_PIPES_H_
