#include "simulator/run/virtual_clock.h"

#include <cstddef>

#include "simulator/machine/cta.h"

namespace annulus::simulator {

std::uint64_t work_done(const Cluster& cluster) {
  std::uint64_t sum = 0;
  for (const auto& cta : cluster.ctas) {
    const std::uint64_t products = cta->counts.by_class[static_cast<std::size_t>(Class::kMatrix)];
    sum += cta->executed + (kMatrixCost - 1) * products + (kOrderedCost - 1) * cta->ordered;
  }
  return sum;
}

}  // namespace annulus::simulator
