#ifndef ANNULUS_TESTS_PLANNER_BROKEN_PLANNER_H_
#define ANNULUS_TESTS_PLANNER_BROKEN_PLANNER_H_

// Planners on a simulated device for which some kernels do not compile.

#include <doctest/doctest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "planner/planner.h"
#include "planner/tuned_entry.h"
#include "support/context.h"
#include "support/nvrtc.h"

namespace annulus::test {

// The templates, changed so that the mma family does not compile if `broken` is true for its Shape.
inline std::shared_ptr<const jit::TemplateSet> templates_without(const std::string& broken) {
  std::map<std::string, std::string> files = jit::TemplateSet::embedded()->files();
  std::string& kernel = files.at("kernels/mma/mma_forward.cu");
  const std::string before = "using Element = typename Shape::Element;\n";
  const std::size_t at = kernel.find(before);
  REQUIRE(at != std::string::npos);
  kernel.insert(at, "  static_assert(!(" + broken + "), \"broken for the test\");\n");
  return std::make_shared<const jit::TemplateSet>(std::move(files));
}

struct OpenedPlanner {
  std::vector<std::string> log;
  planner::Planner planner;
};

// Returns null without NVRTC.
inline std::unique_ptr<OpenedPlanner> open_planner(const std::string& broken) {
  const auto library = nvrtc();
  if (library == nullptr) return nullptr;
  auto device = std::make_unique<OpenedPlanner>();
  planner::Planner& planner = device->planner;
  planner.context = open_context("sim:sm_80");
  const device::DeviceInfo& info = planner.context->info();
  planner.limits = {{80, '\0'}, info.multiprocessors, info.shared_bytes_per_block_optin};
  const auto compiler = std::make_shared<const jit::Compiler>(library, templates_without(broken),
                                                              jit::ImageKind::kPtx);
  planner.kernels = std::make_shared<jit::KernelCache>(
      planner.context, compiler, std::make_shared<jit::DiskCache>(jit::DiskCacheOptions{}));
  planner.tuned = std::make_shared<tuned::TunedStore>(tuned_store(planner.limits).options());
  planner.tiles = std::make_shared<attention::TileCache>(base::CacheLimits{1 << 20, 16});
  planner.device_tiles =
      std::make_shared<attention::DeviceTileCache>(planner.context, base::CacheLimits{1 << 20, 16});
  planner.log = base::Log(
      [log = &device->log](base::LogLevel, std::string_view text) { log->emplace_back(text); });
  return device;
}

// A condition for open_planner(): all kernels with that tile, except general kernels.
inline std::string shape_is(int rows, int columns) {
  return "Shape::kTileRows == " + std::to_string(rows) +
         " && Shape::kTileColumns == " + std::to_string(columns) + " && !tile::General<Shape>::kIs";
}

}  // namespace annulus::test

#endif  // ANNULUS_TESTS_PLANNER_BROKEN_PLANNER_H_
