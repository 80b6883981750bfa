#ifndef ANNULUS_PROGRAM_RUN_RANK_RUN_H_
#define ANNULUS_PROGRAM_RUN_RANK_RUN_H_

// One rank of a ring whose ranks are processes, each with a device of its own. They meet, exchange
// rows over NCCL, and send what they computed to rank 0 the same way.

#include <optional>

#include "program/run/ring_run.h"
#include "program/run/run.h"
#include "program/run/seat.h"

namespace annulus::program {

// The answer of all ranks on rank 0, nothing on others. Where a rank is late or has died, throws,
// or with --go-on begins again with those that are left, of which another one may be rank 0 then.
std::optional<RingAnswer> compute_rank(const Seat& seat, const Device& device,
                                       const RunArguments& arguments, const ProblemInput& input);

}  // namespace annulus::program

#endif  // ANNULUS_PROGRAM_RUN_RANK_RUN_H_
