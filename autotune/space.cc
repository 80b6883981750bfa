#include "autotune/space.h"

#include <fmt/core.h>

#include <algorithm>

namespace annulus::autotune {
namespace {

using attention::KernelConfig;

constexpr int kMostResident = 8;
constexpr int kMostWgmmaColumns = 192;  // of a step, which attention::why_illegal holds to it

// Whether heads may share a CTA or a cluster depends on the problem; candidates_of (tuner.h) asks.
void add_wgmma(const attention::Dims& dims, Dtype dtype, const attention::DeviceLimits& limits,
               Space* space) {
  const attention::Family family =
      dtype == Dtype::kFloat8E4M3 ? attention::Family::kWgmma8 : attention::Family::kWgmma;
  const auto add = [&](KernelConfig config) {
    for (const bool query_in_registers : {false, true}) {
      config.query_in_registers = query_in_registers;
      for (config.cluster = 1; config.cluster <= 2; ++config.cluster) {
        if (!why_outside(config, dims, dtype, limits)) space->candidates.push_back(config);
      }
    }
  };
  for (const int warps : {4, 8, 12}) {
    for (const int heads : {1, 2, 3}) {
      for (const int blocks : {1, 2}) {
        for (int columns = 16; columns <= kMostWgmmaColumns; columns += 16) {
          for (int stages = 1; stages <= 4; ++stages) {
            add({warps * 16 / heads, columns, warps, stages, false, 1, family, blocks, heads});
          }
        }
      }
    }
  }
}

}  // namespace

std::optional<std::string> why_outside(const KernelConfig& config, const attention::Dims& dims,
                                       Dtype dtype, const attention::DeviceLimits& limits) {
  if (auto reason = attention::why_not(config, dtype)) return reason;
  if (auto reason = attention::why_not(config, dims, limits)) return reason;
  if (attention::is_wgmma(config.family)) return std::nullopt;
  const int needed = attention::least_registers(config, dims);
  if (needed > attention::most_registers(config)) {
    return fmt::format(
        "{} resident CTAs of {} threads leave each thread {} registers, and it needs about {}",
        config.resident, attention::threads(config), attention::most_registers(config), needed);
  }
  return std::nullopt;
}

Space enumerate(const attention::Dims& dims, Dtype dtype, const attention::DeviceLimits& limits,
                const attention::PipeDevice& pipes, bool simulated) {
  Space space;
  // Of one tile: from many resident CTAs to few, so that the first of each number of registers is
  // the largest that fits.
  const auto add = [&](KernelConfig config) {
    int registers = 0;
    for (config.resident = kMostResident; config.resident >= 1; --config.resident) {
      if (why_outside(config, dims, dtype, limits)) continue;
      if (config.resident > attention::resident_ctas(pipes, config, dims)) continue;
      if (attention::most_registers(config) == registers || (simulated && registers != 0)) {
        ++space.equal;
        continue;
      }
      registers = attention::most_registers(config);
      space.candidates.push_back(config);
    }
  };
  for (const int warps : {4, 8}) {
    for (const int rows : {16, 32}) {
      for (int columns = 16; columns <= 128; columns += 16) {
        for (int stages = 1; stages <= 4; ++stages) {
          for (const bool query_in_registers : {false, true}) {
            add({rows * warps, columns, warps, stages, query_in_registers, 1});
          }
        }
      }
    }
  }
  add_wgmma(dims, dtype, limits, &space);
  return space;
}

}  // namespace annulus::autotune
