#ifndef ANNULUS_PROGRAM_RANK_RUN_H_
#define ANNULUS_PROGRAM_RANK_RUN_H_

// One rank of a ring whose ranks are processes, each with a device of its own. They meet, exchange
// rows over NCCL, and send what they computed to rank 0 the same way.

#include <optional>

#include "program/ring_run.h"
#include "program/seat.h"

namespace annulus::program {

// The answer of all ranks on rank 0, nothing on others. Throws where this rank fails, or another
// one does not come.
std::optional<RingAnswer> compute_rank(const Seat& seat, const Device& device,
                                       const RunArguments& arguments, const ProblemInput& input);

}  // namespace annulus::program

#endif  // ANNULUS_PROGRAM_RANK_RUN_H_
