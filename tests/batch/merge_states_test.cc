// Merging states, and attention sinks that count once, compared with float64.

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include "annulus/merge.h"
#include "annulus/problem.h"
#include "annulus/types.h"
#include "base/half.h"
#include "base/random.h"
#include "batch/partial_answers.h"
#include "support/device.h"

namespace {

using namespace annulus;
using test::PartialAnswers;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

const Device& device() {
  static const Device opened = Device::open(test::device_name());
  return opened;
}

MergeProblem problem_of(std::int64_t inputs, std::int64_t dim) {
  return {.heads = 3, .dim_v = dim, .inputs = inputs, .max_rows = 7};
}

TEST_CASE("states, and answers with sinks, are merged as in float64") {
  int turn = 0;
  for (const std::int64_t inputs : {2, 3, 16}) {
    for (const std::int64_t dim : {8, 64, 136}) {
      for (const PartialForm form : {PartialForm::kOutputs, PartialForm::kStates}) {
        MergeProblem problem = problem_of(inputs, dim);
        problem.form = form;
        problem.dtype = turn % 3 == 0 ? Dtype::kFloat16 : Dtype::kBfloat16;
        problem.lse_base = turn % 4 >= 2 ? LseBase::kTwo : LseBase::kNatural;
        problem.sink_logits = form == PartialForm::kOutputs || turn % 4 == 1;
        CAPTURE(inputs);
        CAPTURE(dim);
        CAPTURE(static_cast<int>(form));
        CAPTURE(problem.sink_logits);
        PartialAnswers partial(device(), problem, static_cast<std::uint64_t>(turn));
        plan_merge(device(), problem).run(nullptr, partial.operands());
        CHECK(partial.first_wrong() == "");
        ++turn;
      }
    }
  }
}

TEST_CASE("merged states are those of the host, and may go over the first") {
  for (const bool in_place : {false, true}) {
    MergeProblem problem = problem_of(3, 72);
    problem.form = PartialForm::kStates;
    problem.carry_out = true;
    PartialAnswers partial(device(), problem, 5);
    const MergePlan plan = plan_merge(device(), problem);
    MergeOperands operands = partial.operands();
    const StatePointers written = in_place ? operands.inputs[0].state : operands.state;
    operands.state = written;
    plan.run(nullptr, operands);
    HostState expected = partial.state(0);
    expected = merge(merge(expected, partial.state(1)), partial.state(2));
    HostState got = HostState::empty(expected.rows, expected.dim_v);
    device().copy_to_host(got.acc.data(), written.acc, got.acc.size() * 4);
    device().copy_to_host(got.m.data(), written.m, got.m.size() * 4);
    device().copy_to_host(got.l.data(), written.l, got.l.size() * 4);
    std::int64_t alone = 0;
    for (std::size_t row = 0; row < got.m.size(); ++row) {
      CAPTURE(row);
      int counted = 0;
      for (int input = 0; input < 3; ++input) counted += partial.state(input).l[row] != 0;
      alone += counted == 1;
      if (counted == 0) {
        // If no input counts, m and acc are compared with those of an empty state.
        expected.m[row] = -kInfinity;
        std::fill_n(expected.acc.begin() + static_cast<std::int64_t>(row) * 72, 72, 0.0f);
      }
      CHECK(got.m[row] == expected.m[row]);
      CHECK(std::abs(got.l[row] - expected.l[row]) <= 1e-6f * expected.l[row]);
      for (std::size_t d = 0; d < 72; ++d) {
        const float a = got.acc[row * 72 + d], b = expected.acc[row * 72 + d];
        const bool same = std::memcmp(&a, &b, 4) == 0;
        if (counted <= 1 ? !same : std::abs(a - b) > 1e-5f * (1 + std::abs(b))) {
          FAIL_CHECK("acc " << a << " is not " << b);
        }
      }
    }
    CHECK(alone > 0);
  }
}

TEST_CASE("a NaN of a state stays in its row, and a row without keys has its sink alone") {
  MergeProblem problem = problem_of(2, 64);
  problem.form = PartialForm::kStates;
  problem.sink_logits = true;
  PartialAnswers partial(device(), problem, 9);
  const float nan = std::numeric_limits<float>::quiet_NaN(), none = 0;
  const StatePointers first = partial.operands().inputs[0].state;
  const StatePointers second = partial.operands().inputs[1].state;
  device().copy_to_device(first.acc + 4 * 64 + 5, &nan, 4);  // the row of head 1, row 1
  device().copy_to_device(first.l + 4, &nan, 4);
  device().copy_to_device(first.l + 2, &none, 4);  // head 2, row 0: no keys
  device().copy_to_device(second.l + 2, &none, 4);
  plan_merge(device(), problem).run(nullptr, partial.operands());
  const std::vector<float> lse = partial.merged_lse();
  const std::vector<std::uint16_t> o = partial.merged_o();
  CHECK(std::isnan(lse[4]));
  CHECK(lse[2] == doctest::Approx(partial.sinks()[2]));
  for (std::size_t row = 0; row < lse.size(); ++row) {
    for (std::size_t d = 0; d < 64; ++d) {
      const float value = base::to_float(problem.dtype, o[row * 64 + d]);
      if (row == 2) CHECK(value == 0);
      if (row != 4) CHECK(!std::isnan(value));
    }
    if (row != 4) CHECK(!std::isnan(lse[row]));
  }
}

TEST_CASE("what states and sinks do not go with is refused") {
  const auto refused = [](const std::function<void(MergeProblem*)>& spoil) {
    MergeProblem problem = problem_of(2, 64);
    spoil(&problem);
    try {
      validate(problem);
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::kInternal;
  };
  CHECK(refused([](MergeProblem* of) { of->form = static_cast<PartialForm>(3); }) ==
        ErrorCode::kInvalidArgument);
  CHECK(refused([](MergeProblem* of) { of->carry_out = true; }) == ErrorCode::kInvalidArgument);
  CHECK(refused([](MergeProblem* of) {
          of->form = PartialForm::kStates;
          of->carry_out = of->sink_logits = true;
        }) == ErrorCode::kInvalidArgument);

  MergeProblem problem = problem_of(2, 64);
  problem.form = PartialForm::kStates;
  problem.sink_logits = true;
  const PartialAnswers partial(device(), problem, 1);
  const MergePlan plan = plan_merge(device(), problem);
  const MergeOperands right = partial.operands();
  CHECK_NOTHROW(plan.run(nullptr, right));
  const std::vector<MergeInput> good(right.inputs.begin(), right.inputs.end());
  const std::vector<std::function<void(MergeOperands*, std::vector<MergeInput>*)>> spoilers = {
      [](MergeOperands* o, auto*) { o->sink_logits = nullptr; },
      [](MergeOperands* o, auto*) { o->sink_logits = reinterpret_cast<const float*>(2); },
      [](MergeOperands* o, auto*) { o->sink_logits = o->lse; },
      [](MergeOperands* o, auto* inputs) { o->state = (*inputs)[0].state; },
      [](MergeOperands* o, auto* inputs) { o->o = (*inputs)[1].state.acc; },
      [](MergeOperands*, auto* inputs) { (*inputs)[1].state.l = nullptr; },
      [](MergeOperands*, auto* inputs) { (*inputs)[1].state.acc += 1; },
      [](MergeOperands* o, auto* inputs) { (*inputs)[1].o = o->o; }};
  for (std::size_t i = 0; i < spoilers.size(); ++i) {
    CAPTURE(i);
    MergeOperands operands = right;
    std::vector<MergeInput> inputs = good;
    spoilers[i](&operands, &inputs);
    operands.inputs = inputs;
    CHECK_THROWS_AS(plan.run(nullptr, operands), Error);
  }
}

}  // namespace
