#ifndef ANNULUS_ATTENTION_KERNELS_WITHHELD_H_
#define ANNULUS_ATTENTION_KERNELS_WITHHELD_H_

// Some kernels are withheld, because they were found to fail on an architecture. The heuristic,
// tuned results and the tuner do not take them; a configuration that the caller names runs
// nevertheless. withheld.def is the table of them. Planning reads DeviceLimits::withheld, which is
// this table unless a test gives another one.

#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "attention/kernels/kernel_config.h"

namespace annulus::attention {

struct DeviceLimits;  // device_limits.h

// A row of the table.
struct Withheld {
  std::string_view kernel;        // ConfigFamily::name
  std::int64_t dim_qk = 0;        // head dim of Q and K, or 0 for all
  std::string_view architecture;  // the architecture of the compiled kernel, such as "sm_90a"
  std::string_view reason;        // a sentence for users without its full stop
};

// The rows, and an empty row after them, since an array has at least one element.
inline constexpr Withheld kWithheldRows[] = {
#define WITHHELD(kernel, dim_qk, architecture, reason) {kernel, dim_qk, architecture, reason},
#include "attention/kernels/withheld.def"
#undef WITHHELD
    {}};
// The table.
inline constexpr std::span<const Withheld> kWithheld(kWithheldRows, std::size(kWithheldRows) - 1);

// A sentence that states why a configuration of any kernel is withheld on a device, or nullopt:
// "wgmma kernels of head dim 128 are withheld on sm_90a: ...".
std::optional<std::string> why_withheld(const KernelConfig& config, const Dims& dims,
                                        const DeviceLimits& limits);

// Appends a reason to others, after "; ", unless it is already there.
void add_reason(const std::string& reason, std::string* reasons);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_KERNELS_WITHHELD_H_
