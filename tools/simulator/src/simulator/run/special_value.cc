#include "simulator/run/special_value.h"

namespace annulus::simulator {
namespace {

std::uint32_t thread_index(const std::uint32_t* block, std::uint32_t thread, int dimension) {
  if (dimension == 0) return thread % block[0];
  return dimension == 1 ? thread / block[0] % block[1] : thread / block[0] / block[1];
}

std::uint32_t vector_value(const Cta& cta, const std::uint32_t* cluster, SpecialVector vector,
                           std::uint32_t thread, int dimension) {
  switch (vector) {
    case SpecialVector::kTid:
      return thread_index(cta.block, thread, dimension);
    case SpecialVector::kNtid:
      return cta.block[dimension];
    case SpecialVector::kCtaid:
      return cta.index[dimension];
    case SpecialVector::kNctaid:
      return cta.grid[dimension];
    case SpecialVector::kClusterid:
      return cta.index[dimension] / cluster[dimension];
    case SpecialVector::kNclusterid:
      return cta.grid[dimension] / cluster[dimension];
    case SpecialVector::kClusterCtaid:
      return cta.index[dimension] % cluster[dimension];
    case SpecialVector::kClusterNctaid:
      return cluster[dimension];
    case SpecialVector::kCount:
      break;
  }
  return 0;
}

}  // namespace

std::uint32_t special_value(const Cta& cta, const LaunchRequest& request, Special special,
                            std::uint32_t thread) {
  const int number = static_cast<int>(special);
  if (number < 3 * static_cast<int>(SpecialVector::kCount)) {
    return vector_value(cta, request.cluster, static_cast<SpecialVector>(number / 3), thread,
                        number % 3);
  }
  const std::uint32_t lane = thread % kLanes;
  // For lane 31 the shift gives 0 and the difference all ones, because all lanes are up to the last
  // one.
  const std::uint32_t below = (1u << lane) - 1;
  const std::uint32_t up_to = (2u << lane) - 1;
  switch (special) {
    case Special::kLaneid:
      return lane;
    case Special::kWarpid:
      return thread / kLanes;
    case Special::kNwarpid:
      return cta.warp_count();
    // The values are those of a single multiprocessor and a single grid, so that results do not
    // depend on which host thread runs a CTA.
    case Special::kSmid:
      return 0;
    case Special::kNsmid:
    case Special::kGridid:
      return 1;
    case Special::kLanemaskEq:
      return 1u << lane;
    case Special::kLanemaskLe:
      return up_to;
    case Special::kLanemaskLt:
      return below;
    case Special::kLanemaskGe:
      return ~below;
    case Special::kLanemaskGt:
      return ~up_to;
    case Special::kDynamicShared:
      return request.dynamic_shared_bytes;
    case Special::kTotalShared:
      return request.dynamic_shared_bytes + cta.program->info.static_shared_bytes;
    case Special::kClusterCtarank:
      return cta.rank;
    case Special::kClusterNctarank:
      return request.cluster[0] * request.cluster[1] * request.cluster[2];
    // The address of the state of grid-wide barriers of cooperative launches, the upper half first.
    case Special::kEnvreg1:
      return static_cast<std::uint32_t>(request.grid_workspace >> 32);
    case Special::kEnvreg2:
      return static_cast<std::uint32_t>(request.grid_workspace);
// The vectors were handled above. They are named here instead of a default, so that the compiler
// warns about a scalar that is missing.
#define VECTOR(name, text) \
  case Special::name##X:   \
  case Special::name##Y:   \
  case Special::name##Z:
#include "simulator/program/specials.def"
      break;
  }
  return 0;
}

}  // namespace annulus::simulator
