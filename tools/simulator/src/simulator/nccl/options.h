#ifndef ANNULUS_SIMULATOR_NCCL_OPTIONS_H_
#define ANNULUS_SIMULATOR_NCCL_OPTIONS_H_

// The behaviour of the simulated NCCL, for the whole process (annulus/simulator.h).

#include <optional>
#include <string_view>

#include "abi/nccl_types.h"
#include "annulus/simulator.h"

namespace annulus::simulator::nccl {

struct Options : annulus_simulator_nccl_options {
  Options() : annulus_simulator_nccl_options ANNULUS_SIMULATOR_NCCL_OPTIONS_INIT {}
};

Options options();
void set_options(const Options& options);  // restarts the count of calls

// Whether the NCCL version of the options has a function of this name.
bool has_function(std::string_view symbol);

// Counts a call. If the options make the call fail, returns its code.
std::optional<abi::NcclResult> planned_failure(std::string_view symbol);

// The counters of what the ranks of this process have queued (annulus_simulator_nccl_counters).
void count_group(std::uint64_t messages, std::uint64_t bytes, std::uint64_t predicted_ns);
annulus_simulator_nccl_counters counters(bool clear);

// A number in [0, bound], drawn with the seed of the options.
unsigned draw(unsigned bound);

}  // namespace annulus::simulator::nccl

#endif  // ANNULUS_SIMULATOR_NCCL_OPTIONS_H_
