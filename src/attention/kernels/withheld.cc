#include "attention/kernels/withheld.h"

#include <fmt/core.h>

#include "attention/kernels/config_family.h"
#include "attention/kernels/device_limits.h"

namespace annulus::attention {

std::optional<std::string> why_withheld(const KernelConfig& config, const Dims& dims,
                                        const DeviceLimits& limits) {
  for (const Withheld& row : limits.withheld) {
    if (row.kernel != config.family->name) continue;
    if (row.dim_qk != 0 && row.dim_qk != dims.qk) continue;
    if (row.architecture != jit::to_string(limits.arch)) continue;
    return fmt::format("{} kernels{} are withheld on {}: {}", row.kernel,
                       row.dim_qk == 0 ? "" : fmt::format(" of head dim {}", row.dim_qk),
                       row.architecture, row.reason);
  }
  return std::nullopt;
}

void add_reason(const std::string& reason, std::string* reasons) {
  if (reasons->find(reason) != std::string::npos) return;
  *reasons += (reasons->empty() ? "" : "; ") + reason;
}

}  // namespace annulus::attention
