#ifndef ANNULUS_SIMULATOR_NCCL_OPTIONS_H_
#define ANNULUS_SIMULATOR_NCCL_OPTIONS_H_

// How the simulated NCCL behaves, for the whole process (annulus/simulator.h).

#include <optional>
#include <string_view>

#include "abi/nccl_types.h"
#include "annulus/simulator.h"

namespace annulus::simulator::nccl {

struct Options : annulus_simulator_nccl_options {
  Options() : annulus_simulator_nccl_options ANNULUS_SIMULATOR_NCCL_OPTIONS_INIT {}
};

Options options();
void set_options(const Options& options);  // counts calls anew

// Whether NCCL of the version that the options say has a function of this name.
bool has_function(std::string_view symbol);

// Counts a call, and returns the code with which the options let it fail, if they do.
std::optional<abi::NcclResult> planned_failure(std::string_view symbol);

// What the ranks of this process have queued (annulus_simulator_nccl_counters).
void count_group(std::uint64_t messages, std::uint64_t bytes, std::uint64_t predicted_ns);
annulus_simulator_nccl_counters counters(bool clear);

// A number in [0, bound], drawn with the seed of the options.
unsigned draw(unsigned bound);

}  // namespace annulus::simulator::nccl

#endif  // ANNULUS_SIMULATOR_NCCL_OPTIONS_H_
