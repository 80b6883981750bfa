// Merging two answers, through the public interface only.
#include "annulus/merge.h"

#include <cmath>
#include <limits>

#include "outside/outside.h"

namespace {

using namespace annulus;

TEST_CASE("two answers of equal weight become their mean, over the first") {
  const Device& device = test::device();
  MergeProblem problem;
  problem.dim_v = 64;
  problem.max_rows = 2;
  REQUIRE_NOTHROW(validate(problem));
  const MergePlan plan = plan_merge(device, problem);
  CHECK(plan.problem().inputs == 2);
  CHECK(plan.info().registers > 0);
  CHECK(plan.info().specialised_source.find("merge_outputs") != std::string::npos);

  // The values 1 and 2 in bf16. The second row has no keys in the first set.
  const std::vector<std::uint16_t> ones(128, 0x3f80), twos(128, 0x4000);
  const std::vector<float> lse = {3, -std::numeric_limits<float>::infinity()}, other_lse = {3, 5};
  const DeviceMemory o = test::upload(device, ones), other = test::upload(device, twos);
  const DeviceMemory on_lse = test::upload(device, lse),
                     on_other_lse = test::upload(device, other_lse);
  const std::vector<MergeInput> inputs = {
      {o.data(), static_cast<const float*>(on_lse.data())},
      {other.data(), static_cast<const float*>(on_other_lse.data())}};
  MergeOperands operands;
  operands.inputs = inputs;
  operands.input_o_strides = operands.o_strides = {.row = 64, .head = 64};
  operands.input_lse_strides = operands.lse_strides = {.row = 1, .head = 1};
  operands.o = o.data(), operands.lse = static_cast<float*>(on_lse.data());
  plan.run(nullptr, operands);
  std::vector<std::uint16_t> merged(128);
  std::vector<float> merged_lse(2);
  device.copy_to_host(merged.data(), o.data(), 256);
  device.copy_to_host(merged_lse.data(), on_lse.data(), 8);
  CHECK((merged[0] == 0x3fc0 && merged[63] == 0x3fc0 && merged[64] == 0x4000));
  CHECK(std::abs(merged_lse[0] - (3 + std::log(2.0f))) < 1e-6f);
  CHECK(merged_lse[1] == 5);
  operands.inputs = {};
  test::check_fails(ErrorCode::kInvalidArgument, "0 inputs were given",
                    [&] { plan.run(nullptr, operands); });
  problem.dtype = Dtype::kFloat8E4M3;
  test::check_fails(ErrorCode::kUnsupported, "convert to fp16 or bf16", [&] { validate(problem); });
}

}  // namespace
