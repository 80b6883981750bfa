#ifndef ANNULUS_PROGRAM_RUN_RANK_RUN_H_
#define ANNULUS_PROGRAM_RUN_RANK_RUN_H_

// One rank of a ring. Each rank is a process with a separate device. The ranks meet, exchange rows
// over NCCL, and send their results to rank 0 over NCCL too.

#include <optional>

#include "program/run/ring_run.h"
#include "program/run/run.h"
#include "program/run/seat.h"

namespace annulus::program {

// Returns the answer of all ranks on rank 0, and nothing on other ranks. If a rank is late or has
// died, it throws. With --go-on it starts again with the remaining ranks instead, and another
// process may then be rank 0.
std::optional<RingAnswer> compute_rank(const Seat& seat, const Device& device,
                                       const RunArguments& arguments, const ProblemInput& input);

}  // namespace annulus::program

#endif  // ANNULUS_PROGRAM_RUN_RANK_RUN_H_
