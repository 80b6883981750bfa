// Merging answers over several sets of keys, compared with float64 and with states on the host.

#include "annulus/merge.h"
#include "annulus/problem.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include "annulus/types.h"
#include "api/impl.h"
#include "base/half.h"
#include "batch/merge_case.h"
#include "device/stream.h"
#include "support/device.h"

namespace {

using namespace annulus;
using test::MergeCase;
using test::MergeLayout;
using test::MergeRow;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

const Device& device() {
  static const Device opened = Device::open(test::device_name());
  return opened;
}

MergeProblem problem_of(std::int64_t inputs, std::int64_t dim = 64) {
  return {.heads = 3, .dim_v = dim, .inputs = inputs, .max_rows = 7};
}

TEST_CASE("inputs are merged as in float64, in every form and layout") {
  int turn = 0;
  for (const std::int64_t inputs : {2, 3, 16}) {
    for (const std::int64_t dim : {8, 64, 136}) {
      CAPTURE(inputs);
      CAPTURE(dim);
      MergeProblem problem = problem_of(inputs, dim);
      problem.dtype = turn % 2 == 0 ? Dtype::kBfloat16 : Dtype::kFloat16;
      problem.lse_base = turn % 3 == 0 ? LseBase::kTwo : LseBase::kNatural;
      MergeCase made(device(), problem,
                     {.heads_first = turn % 4 >= 2,
                      .in_place = turn % 2 == 1,
                      .want_lse = turn != 4,
                      .nan_where_empty = turn % 3 == 1,
                      .seed = static_cast<std::uint64_t>(turn)});
      made.upload(problem.max_rows - 1);
      MergeOperands operands = made.operands();
      operands.rows = made.put(6);
      plan_merge(device(), problem).run(nullptr, operands);
      CHECK(made.first_wrong() == "");
      ++turn;
    }
  }
}

TEST_CASE("inputs are merged as states are on the host") {
  const MergeProblem problem = problem_of(3);
  MergeCase made(device(), problem, {});
  made.upload(problem.max_rows);
  plan_merge(device(), problem).run(nullptr, made.operands());
  for (std::int64_t row = 0; row < problem.max_rows; ++row) {
    for (std::int64_t head = 0; head < problem.heads; ++head) {
      const MergeRow& given = made.at(row, head);
      HostState all = HostState::empty(1, problem.dim_v);
      for (std::size_t input = 0; input < 3; ++input) {
        HostState state = HostState::empty(1, problem.dim_v);
        if (given.lse[input] != -kInfinity) {
          state.m[0] = given.lse[input] * std::numbers::log2e_v<float>;
          state.l[0] = 1;
          for (std::size_t d = 0; d < state.acc.size(); ++d) {
            state.acc[d] = base::bf16_to_float(given.o[input][d]);
          }
        }
        all = merge(all, state);
      }
      const FinishedRows expected = finish(all, LseBase::kNatural);
      if (expected.lse[0] == -kInfinity) {
        CHECK(made.lse(row, head) == -kInfinity);
      } else {
        CHECK(std::abs(made.lse(row, head) - expected.lse[0]) <= 1e-5);
      }
      const std::vector<std::uint16_t> o = made.o(row, head);
      double worst = 0;
      for (std::size_t d = 0; d < o.size(); ++d) {
        worst = std::max(worst,
                         static_cast<double>(std::abs(base::bf16_to_float(o[d]) - expected.o[d]) -
                                             0x1p-8f * std::abs(expected.o[d])));
      }
      CHECK(worst <= 1e-5);
    }
  }
}

// Rows 0 to 6 of head 0 get special values of LSE and O. All other rows are unchanged.
TEST_CASE("rows that are not ordinary stay in their rows") {
  const MergeProblem problem = problem_of(3);
  MergeCase made(device(), problem, {});
  const auto give = [&](std::int64_t row, std::vector<float> lse, std::vector<float> o) {
    MergeRow& at = made.at(row, 0);
    at.lse = std::move(lse);
    for (std::size_t input = 0; input < 3; ++input) {
      std::fill(at.o[input].begin(), at.o[input].end(), base::float_to_bf16(o[input]));
    }
  };
  give(0, {kInfinity, 3, kInfinity}, {1, 50, 2});  // both inputs with the largest LSE count equally
  give(1, {kNan, 3, 2}, {1, 50, 2});
  give(2, {kNan, -kInfinity, -kInfinity}, {-0.0f, 50, 2});
  give(3, {1, kInfinity, -kInfinity}, {9, kNan, 2});
  give(4, {-kInfinity, -0.0f, -kInfinity}, {7, -0.0f, 2});  // the bits of one input
  give(5, {3e38f, 1, -3e38f}, {4, 50, 2});
  give(6, {0, 0, -kInfinity}, {kNan, 1, 2});
  made.upload(problem.max_rows);
  plan_merge(device(), problem).run(nullptr, made.operands());
  const auto o = [&](std::int64_t row) { return base::bf16_to_float(made.o(row, 0)[17]); };
  CHECK((made.lse(0, 0) == kInfinity && o(0) == 1.5f));
  CHECK((std::isnan(made.lse(1, 0)) && std::isnan(o(1))));
  CHECK((std::isnan(made.lse(2, 0)) && made.o(2, 0)[63] == 0x8000));
  CHECK((made.lse(3, 0) == kInfinity && std::isnan(o(3))));
  CHECK((made.lse(4, 0) == 0 && std::signbit(made.lse(4, 0)) && made.o(4, 0)[0] == 0x8000));
  CHECK((made.lse(5, 0) == 3e38f && o(5) == 4));
  CHECK((std::abs(made.lse(6, 0) - std::numbers::ln2_v<float>) < 1e-6f && std::isnan(o(6))));
  for (std::int64_t row = 0; row < problem.max_rows; ++row) {
    // The other rows have no NaN. first_wrong() checks them in the first test.
    for (const std::uint16_t bits : made.o(row, 1)) CHECK((bits & 0x7fff) <= 0x7f80);
  }
}

TEST_CASE("one captured graph merges every number of rows") {
  const device::ContextPointer& context = api::inside(device()).context;
  const abi::CudaTable& table = context->table();
  if (table.stream_begin_capture == nullptr) return;
  const MergeProblem problem = problem_of(2);
  const MergePlan plan = plan_merge(device(), problem);
  CHECK(plan.info().ctas == 2);
  const device::Stream stream(context);
  for (const std::int32_t rows : {7, 2, 0}) {
    CAPTURE(rows);
    MergeCase made(device(), problem, {.seed = 5});
    made.upload(rows);
    MergeOperands operands = made.operands();
    std::int32_t* const count = made.put(-1);
    operands.rows = count;
    const device::ContextScope scope(*context);
    abi::CUgraph graph = nullptr;
    abi::CUgraphExec exec = nullptr;
    REQUIRE(table.stream_begin_capture(stream.handle(), 0) == 0);
    plan.run(stream.handle(), operands);
    REQUIRE(table.stream_end_capture(stream.handle(), &graph) == 0);
    REQUIRE(table.graph_instantiate(&exec, graph, 0) == 0);
    // A negative number of rows means none, and a number beyond the bound means all.
    REQUIRE(table.graph_launch(exec, stream.handle()) == 0);
    stream.synchronize();
    const std::int32_t told = rows == problem.max_rows ? 1 << 30 : rows;
    device().copy_to_device(count, &told, 4);
    REQUIRE(table.graph_launch(exec, stream.handle()) == 0);
    stream.synchronize();
    CHECK(made.first_wrong() == "");
    CHECK(table.graph_exec_destroy(exec) == 0);
    CHECK(table.graph_destroy(graph) == 0);
  }
}

TEST_CASE("what the host can see is a typed error") {
  constexpr auto kWrong = ErrorCode::kInvalidArgument;
  constexpr auto kNone = ErrorCode::kUnsupported;
  const auto refused = [](const char* what, ErrorCode code,
                          const std::function<void(MergeProblem*)>& spoil) {
    CAPTURE(what);
    MergeProblem problem = problem_of(2);
    spoil(&problem);
    try {
      plan_merge(device(), problem);
      FAIL_CHECK("it was planned");
    } catch (const Error& error) {
      CHECK(error.code() == code);
    }
  };
  refused("no heads", kWrong, [](MergeProblem* p) { p->heads = 0; });
  refused("no head dim", kWrong, [](MergeProblem* p) { p->dim_v = 0; });
  refused("an odd head dim", kNone, [](MergeProblem* p) { p->dim_v = 36; });
  refused("a huge head dim", kWrong, [](MergeProblem* p) { p->dim_v = 2048; });
  refused("fp32", kNone, [](MergeProblem* p) { p->dtype = Dtype::kFloat32; });
  refused("no base", kWrong, [](MergeProblem* p) { p->lse_base = static_cast<LseBase>(0); });
  refused("one input", kWrong, [](MergeProblem* p) { p->inputs = 1; });
  refused("too many inputs", kWrong, [](MergeProblem* p) { p->inputs = 17; });
  refused("no rows", kWrong, [](MergeProblem* p) { p->max_rows = 0; });
  refused("too many rows", kWrong, [](MergeProblem* p) { p->max_rows = std::int64_t{1} << 30; });

  const MergeProblem problem = problem_of(2);
  const MergePlan plan = plan_merge(device(), problem);
  MergeCase made(device(), problem, {});
  made.upload(problem.max_rows);
  const MergeOperands right = made.operands();
  CHECK_NOTHROW(plan.run(nullptr, right));
  const std::vector<MergeInput> good(right.inputs.begin(), right.inputs.end());
  const std::vector<std::function<void(MergeOperands*, std::vector<MergeInput>*)>> spoilers = {
      [](MergeOperands* o, auto*) { o->o = nullptr; },
      [](MergeOperands* o, auto*) { o->o = static_cast<std::byte*>(o->o) + 8; },
      [](MergeOperands* o, auto*) { o->o_strides.row = 0; },
      [](MergeOperands* o, auto*) { o->o_strides.head += 4; },
      // The rows or heads overlap.
      [](MergeOperands* o, auto*) { o->o_strides.row = o->o_strides.head; },
      [](MergeOperands* o, auto*) { o->o_strides.head = 8; },
      [](MergeOperands* o, auto*) { o->lse_strides = {.row = 1, .head = -1}; },
      [](MergeOperands* o, auto*) { o->lse_strides = {}; },
      [](MergeOperands* o, auto*) { o->input_o_strides = {}; },
      [](MergeOperands* o, auto*) { o->input_o_strides.row += 1; },
      [](MergeOperands* o, auto*) { o->input_lse_strides.head = 0; },
      [](MergeOperands* o, auto*) { o->lse = reinterpret_cast<float*>(2); },
      [](MergeOperands* o, auto*) { o->rows = reinterpret_cast<std::int32_t*>(6); },
      [](MergeOperands*, auto* inputs) { inputs->pop_back(); },
      [](MergeOperands*, auto* inputs) { inputs->push_back((*inputs)[0]); },
      [](MergeOperands*, auto* inputs) { (*inputs)[1].o = nullptr; },
      [](MergeOperands*, auto* inputs) { (*inputs)[1].lse = nullptr; },
      // Operands that are written over other operands.
      [](MergeOperands* o, auto* inputs) { (*inputs)[1].o = o->o; },
      [](MergeOperands* o, auto* inputs) { (*inputs)[1].lse = o->lse; },
      // O has other strides than the input.
      [](MergeOperands* o, auto* inputs) { (*inputs)[0].o = o->o; },
      [](MergeOperands* o, auto* inputs) { (*inputs)[0].lse = o->lse; },
      [](MergeOperands* o, auto*) { o->lse = static_cast<float*>(o->o); },
      [](MergeOperands* o, auto*) { o->rows = reinterpret_cast<std::int32_t*>(o->lse); }};
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
