// Kernels that NVRTC refuses: which other one a plan takes then, and what it says.

#include <doctest/doctest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "annulus/error.h"
#include "planner/planner.h"
#include "planner/tuned_entry.h"
#include "support/context.h"
#include "support/nvrtc.h"

namespace annulus::planner {
namespace {

// The templates, of which the mma family does not compile where `broken` holds of its Shape.
std::shared_ptr<const jit::TemplateSet> templates_without(const std::string& broken) {
  std::map<std::string, std::string> files = jit::TemplateSet::embedded()->files();
  std::string& kernel = files.at("kernels/mma/mma_forward.cu");
  const std::string before = "  using Element = typename Shape::Element;\n";
  const std::size_t at = kernel.find(before);
  REQUIRE(at != std::string::npos);
  kernel.insert(at, "  static_assert(!(" + broken + "), \"broken for the test\");\n");
  return std::make_shared<const jit::TemplateSet>(std::move(files));
}

struct Device {
  std::vector<std::string> log;
  Planner planner;
};

std::unique_ptr<Device> open(const std::string& broken) {
  const auto nvrtc = test::nvrtc();
  if (nvrtc == nullptr) return nullptr;
  auto device = std::make_unique<Device>();
  Planner& planner = device->planner;
  planner.context = test::open_context("sim:sm_80");
  const device::DeviceInfo& info = planner.context->info();
  planner.limits = {{80, '\0'}, info.multiprocessors, info.shared_bytes_per_block_optin};
  const auto compiler =
      std::make_shared<const jit::Compiler>(nvrtc, templates_without(broken), jit::ImageKind::kPtx);
  planner.kernels = std::make_shared<jit::KernelCache>(
      planner.context, compiler, std::make_shared<jit::DiskCache>(jit::DiskCacheOptions{}));
  planner.tuned =
      std::make_shared<autotune::TunedStore>(test::tuned_store(planner.limits).options());
  planner.tiles = std::make_shared<attention::TileCache>(base::CacheLimits{1 << 20, 16});
  planner.device_tiles =
      std::make_shared<attention::DeviceTileCache>(planner.context, base::CacheLimits{1 << 20, 16});
  planner.log = base::Log(
      [log = &device->log](base::LogLevel, std::string_view text) { log->emplace_back(text); });
  return device;
}

const Problem& problem() {
  static const Problem of = test::planned_problem("causal", 300, 64);
  return of;
}

// The configuration that the heuristic takes.
std::string chosen(const Planner& planner) {
  return attention::to_string(attention::choose_config(problem(), planner.limits).config);
}

std::string shape_is(int rows, int columns) {
  return "Shape::kTileRows == " + std::to_string(rows) +
         " && Shape::kTileColumns == " + std::to_string(columns) + " && !tile::General<Shape>::kIs";
}

TEST_CASE("where the heuristic's kernel does not compile its next choice is taken, and said once") {
  const auto whole = open("false");
  if (!whole) return;
  const Prepared first = whole->planner.prepare({problem(), {}});
  const auto device = open(shape_is(first.info.tile_rows, first.info.tile_columns));
  const Prepared next = device->planner.prepare({problem(), {}});
  CHECK(first.info.config == chosen(device->planner));
  CHECK(next.info.config != first.info.config);
  CHECK_FALSE(next.info.general);
  CHECK(device->planner.context->tally().total(base::Count::recovered_plans) >= 1);
  const std::string said = "the kernel " + first.info.config + " does not work here";
  const auto mentions = [&](const std::vector<std::string>& lines) {
    return std::ranges::count_if(
        lines, [&](const std::string& line) { return line.find(said) != std::string::npos; });
  };
  CHECK(mentions(next.info.decisions) == 1);
  CHECK(mentions(device->log) == 1);
  device->planner.prepare({problem(), {}});
  CHECK(mentions(device->log) == 1);

  PlanOptions asked;
  asked.config = first.info.config;
  CHECK_THROWS_AS(device->planner.prepare({problem(), asked}), Error);
  device->planner.own_templates = true;
  CHECK_THROWS_AS(device->planner.prepare({problem(), {}}), Error);
}

TEST_CASE(
    "where no other kernel compiles a general one is taken, and not for a plan that has one") {
  const auto device = open("!tile::General<Shape>::kIs");
  if (!device) return;
  const Prepared general = device->planner.prepare({problem(), {}});
  CHECK(general.info.general);
  CHECK_THROWS_AS(device->planner.prepare({problem(), {}, nullptr, false}), Error);

  PlanOptions options;
  options.wait = false;
  const PreparedLate late = device->planner.prepare_late({problem(), options});
  REQUIRE(late.late != nullptr);
  CHECK(late.late->wait(-1));
  CHECK(late.late->state() == PlanState::kGeneral);
  CHECK(late.late->problem().find("broken for the test") != std::string::npos);
  CHECK(late.late->own() == nullptr);
}

TEST_CASE("where not even a general kernel compiles the error is the heuristic's") {
  const auto device = open("true");
  if (!device) return;
  try {
    device->planner.prepare({problem(), {}});
    FAIL_CHECK("there is no kernel to plan with");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kCompile);
    CHECK(std::string(error.what()).find("broken for the test") != std::string::npos);
  }
  PlanOptions options;
  options.wait = false;
  CHECK_THROWS_AS(device->planner.prepare_late({problem(), options}), Error);
}

}  // namespace
}  // namespace annulus::planner
