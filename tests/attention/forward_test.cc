// Kernels against the oracle, on the device that --device names: every feature, random problems.

#include <doctest/doctest.h>

#include <cmath>
#include <cstdio>
#include <limits>
#include <thread>

#include "annulus/device.h"
#include "annulus/error.h"
#include "api/impl.h"
#include "attention/dims.h"
#include "attention/kernel_config.h"
#include "base/half.h"
#include "base/thread_pool.h"
#include "device/stream.h"
#include "support/device.h"
#include "support/device_case.h"
#include "support/options.h"

namespace {

using namespace annulus;
using attention::Comparison;
using test::Case;
using test::DeviceAnswer;
using test::DeviceCase;

// One device for all tests of the program: opening one loads libraries.
const Device& device() {
  static const Device opened = Device::open(test::device_name());
  return opened;
}

base::ThreadPool& pool() {
  static base::ThreadPool threads;
  return threads;
}

Comparison compare(const Case& c, const DeviceAnswer& answer) {
  const attention::Reference oracle = attention::reference(c.problem, c.inputs(), pool());
  return attention::compare(c.problem, oracle, answer.result());
}

void check(const Case& c, const DeviceAnswer& answer) {
  const Comparison comparison = compare(c, answer);
  if (!comparison.within_law) {
    FAIL_CHECK(c.text << "\n  row " << comparison.error_row_max << " head " << comparison.error_o
                      << " LSE " << comparison.error_lse << " in " << comparison.wrong_rows
                      << " rows: " << comparison.first_wrong);
  }
}

Problem problem_of(std::int64_t seq_q, std::int64_t seq_k, std::int64_t dim_qk, std::int64_t dim_v,
                   const Pattern& pattern) {
  Problem problem;
  problem.seq_q = seq_q;
  problem.seq_k = seq_k;
  problem.dim_qk = dim_qk;
  problem.dim_v = dim_v;
  problem.pattern = pattern;
  problem.want_lse = true;
  return problem;
}

TEST_CASE("random problems match the oracle") {
  const int count = test::options().problems > 0 ? test::options().problems : 24;
  test::CaseLimits limits;
  if (test::options().length > 0) limits.most_length = test::options().length;
  for (int index = 0; index < count; ++index) {
    const Case c =
        test::random_case(test::options().seed, static_cast<std::uint64_t>(index), limits);
    CAPTURE(index);
    CAPTURE(c.text);
    REQUIRE_NOTHROW(check(c, test::run_case(device(), c)));
    if (count >= 200 && (index + 1) % 100 == 0) {
      std::fprintf(stderr, "%d of %d problems\n", index + 1, count);
    }
  }
}

TEST_CASE("every shipped configuration that fits the device") {
  const jit::Arch arch = jit::parse_arch(device().info().architecture);
  int tried = 0;
  for (const attention::ShippedConfig& shipped : attention::shipped_configs()) {
    if (attention::why_illegal(shipped.config, shipped.dims, arch)) continue;
    // Enough keys to go round the pipeline, and tails on both sides.
    Problem problem = problem_of(150, 333, shipped.dims.qk, shipped.dims.v, causal());
    problem.dtype = tried % 2 == 0 ? Dtype::kBfloat16 : Dtype::kFloat16;
    const Case c = test::make_case(problem, 3);
    PlanOptions options;
    options.config = attention::to_string(shipped.config);
    CAPTURE(options.config);
    check(c, test::run_case(device(), c, options));
    ++tried;
  }
  CHECK(tried >= 14);
}

TEST_CASE("the same call twice gives the same bits, and so do threads that share the plan") {
  Problem problem = problem_of(200, 300, 64, 64, causal() | sink(20));
  problem.heads = 3;
  const Case c = test::make_case(problem, 4);
  const Plan plan = device().plan(problem);
  DeviceCase memory(device(), c);
  plan.run(nullptr, memory.operands());
  const DeviceAnswer first = memory.answer();
  check(c, first);
  memory.reset();
  plan.run(nullptr, memory.operands());
  CHECK(memory.answer() == first);

  std::vector<std::unique_ptr<DeviceCase>> cases;
  for (int i = 0; i < 4; ++i) cases.push_back(std::make_unique<DeviceCase>(device(), c));
  std::vector<std::thread> threads;
  for (auto& one : cases) {
    threads.emplace_back([&plan, &one] { plan.run(nullptr, one->operands()); });
  }
  for (std::thread& thread : threads) thread.join();
  for (auto& one : cases) CHECK(one->answer() == first);
}

TEST_CASE("the order of warps and of copies does not change a bit") {
  if (!device().info().simulated) return;
  const int orders = test::options().orders > 0 ? test::options().orders : 6;
  for (const Problem& problem : {problem_of(150, 280, 128, 128, causal()),
                                 problem_of(100, 200, 32, 32, window(64, 10) | global(5))}) {
    const Case c = test::make_case(problem, 5);
    const Plan plan = device().plan(problem);
    DeviceCase memory(device(), c);
    device().set_simulation({});
    plan.run(nullptr, memory.operands());
    const DeviceAnswer first = memory.answer();
    check(c, first);
    for (int order = 1; order <= orders; ++order) {
      SimulationOptions simulation;
      simulation.seed = test::options().seed * 1000 + static_cast<std::uint64_t>(order);
      device().set_simulation(simulation);
      memory.reset();
      plan.run(nullptr, memory.operands());
      CAPTURE(order);
      CHECK(memory.answer() == first);
    }
    SimulationOptions fast;
    fast.checked = false;
    device().set_simulation(fast);
    memory.reset();
    plan.run(nullptr, memory.operands());
    CHECK(memory.answer() == first);
    device().set_simulation({});
  }
}

// A view of keys [begin, end) of a case, with the state between launches.
Case keys_of(const Case& whole, std::int64_t begin, std::int64_t end) {
  Case part = whole;
  part.problem.seq_k = end - begin;
  part.problem.q0 = whole.problem.q_position();
  part.problem.k0 = whole.problem.k_position() + begin;
  const auto cut = [&](test::HostTensor* tensor) {
    tensor->bits.erase(tensor->bits.begin(), tensor->bits.begin() + begin * tensor->strides.row);
    tensor->rows = end - begin;
  };
  cut(&part.k);
  cut(&part.v);
  return part;
}

TEST_CASE("keys split over launches by a carried state give the answer of one launch") {
  for (const std::int64_t cut : {0, 1, 64, 130, 299}) {
    CAPTURE(cut);
    Problem problem = problem_of(140, 300, 64, 64, causal() & ~window(40, 0));
    problem.heads = 2;
    const Case whole = test::make_case(problem, 6);
    Case first = keys_of(whole, 0, cut);
    first.problem.want_lse = false;
    first.problem.carry_out = true;
    const DeviceAnswer state = test::run_case(device(), first);
    check(first, state);
    Case second = keys_of(whole, cut, 300);
    second.problem.carry_in = true;
    second.state_in = state.state;
    const DeviceAnswer answer = test::run_case(device(), second);
    check(whole, answer);  // the oracle of all keys at once

    // The same through merge() on the host.
    Case other = keys_of(whole, cut, 300);
    other.problem.want_lse = false;
    other.problem.carry_out = true;
    const DeviceAnswer other_state = test::run_case(device(), other);
    const HostState merged = merge(state.state, other_state.state);
    Case all = whole;
    all.problem.want_lse = false;
    all.problem.carry_out = true;
    DeviceAnswer joined;
    joined.carried = true;
    joined.state = merged;
    check(all, joined);
  }
}

TEST_CASE("the state may be updated in place") {
  Problem problem = problem_of(70, 90, 32, 32, dense());
  problem.want_lse = false;
  problem.carry_in = problem.carry_out = true;
  const Case c = test::make_case(problem, 7);
  const DeviceAnswer apart = test::run_case(device(), c);
  check(c, apart);
  DeviceCase memory(device(), c);
  Operands operands = memory.operands();
  operands.state_out = operands.state_in;
  device().plan(problem).run(nullptr, operands);
  device().synchronize();
  HostState state = HostState::empty(70, 32);
  device().copy_to_host(state.acc.data(), operands.state_in.acc, state.acc.size() * 4);
  device().copy_to_host(state.m.data(), operands.state_in.m, state.m.size() * 4);
  device().copy_to_host(state.l.data(), operands.state_in.l, state.l.size() * 4);
  DeviceAnswer in_place;
  in_place.carried = true;
  in_place.state = state;
  CHECK(in_place == apart);
}

TEST_CASE("NaN and infinity reach the rows of tiles that read them and no others") {
  PlanOptions options;
  options.config = "mma m64 n64 w4 s2 x3";
  for (const std::uint16_t poison : {0x7fc0, 0x7f80, 0xff80}) {  // bf16 NaN, inf, -inf
    for (const bool in_value : {false, true}) {
      Problem problem = problem_of(256, 256, 64, 64, causal());
      const Case clean = test::make_case(problem, 8);
      const DeviceAnswer expected = test::run_case(device(), clean, options);
      Case c = clean;
      test::HostTensor& tensor = in_value ? c.v : c.k;
      tensor.bits[static_cast<std::size_t>(tensor.offset(0, 130, 0) + 5)] = poison;
      const DeviceAnswer answer = test::run_case(device(), c, options);
      // Key 130 lies in column tile 2, which tile rows 2 and 3 read.
      for (std::int64_t row = 0; row < 256; ++row) {
        const auto at = static_cast<std::size_t>(answer.o.offset(0, row, 0));
        bool same = answer.lse[static_cast<std::size_t>(row)] ==
                    expected.lse[static_cast<std::size_t>(row)];
        for (std::size_t d = 0; d < 64; ++d) {
          same = same && answer.o.bits[at + d] == expected.o.bits[at + d];
        }
        if (row < 128) {
          if (!same) FAIL("row " << row << " was reached");
        }
      }
      // Whoever sees a NaN says so.
      if (poison == 0x7fc0) {
        for (std::int64_t row = 130; row < 256; ++row) {
          const auto at = static_cast<std::size_t>(answer.o.offset(0, row, 0));
          const std::uint16_t bits = answer.o.bits[at + 5];
          if ((bits & 0x7f80) != 0x7f80) FAIL("row " << row << " hides the NaN");
        }
      }
    }
  }
}

TEST_CASE("scores as large as fp32 can tell apart are right, and larger ones never look right") {
  // Every product of row i is 64 * 2^n (1 + j / 64), exactly; the last key has it all.
  const Case drawn = test::make_case(problem_of(64, 64, 64, 64, dense()), 12);
  for (const int exponent : {0, 10, 20, 25, 26, 27, 28, 30, 40, 80, 110, 118}) {
    Case c = drawn;
    for (std::int64_t row = 0; row < 64; ++row) {
      const float sign = row % 2 ? -1.0f : 1.0f;  // then it is the first key
      for (std::int64_t d = 0; d < 64; ++d) {
        c.q.bits[static_cast<std::size_t>(c.q.offset(0, row, 0) + d)] =
            base::from_float(Dtype::kBfloat16, std::ldexp(sign, exponent));
        c.k.bits[static_cast<std::size_t>(c.k.offset(0, row, 0) + d)] =
            base::from_float(Dtype::kBfloat16, 1 + static_cast<float>(row) / 64);
      }
    }
    CAPTURE(exponent);
    const attention::Reference oracle = attention::reference(c.problem, c.inputs(), pool());
    const DeviceAnswer answer = test::run_case(device(), c);
    const Comparison comparison = attention::compare(c.problem, oracle, answer.result());
    // In base 2 the largest is 64 * 2^n * 2 / 8 * 1.44: 2^31 lies between n = 26 and 27.
    if (exponent <= 26) {
      CHECK_MESSAGE(comparison.within_law, comparison.first_wrong);
    } else if (!comparison.within_law) {
      CHECK(comparison.first_wrong.find("2^31") != std::string::npos);
    }
    for (std::size_t row = 0; row < 64; ++row) {
      const float o =
          base::to_float(Dtype::kBfloat16, answer.o.bits[static_cast<std::size_t>(answer.o.offset(
                                               0, static_cast<std::int64_t>(row), 0))]);
      const double error = std::abs(static_cast<double>(o) - oracle.o[row * 64]);
      CHECK_FALSE(error > 0.1);  // a NaN is not
    }
  }
}

TEST_CASE("a NaN in a query stays in its own row") {
  Problem problem = problem_of(100, 100, 64, 64, dense());
  const Case clean = test::make_case(problem, 9);
  const DeviceAnswer expected = test::run_case(device(), clean);
  Case c = clean;
  c.q.bits[static_cast<std::size_t>(c.q.offset(0, 17, 0))] = 0x7fc0;
  const DeviceAnswer answer = test::run_case(device(), c);
  for (std::int64_t row = 0; row < 100; ++row) {
    const auto at = static_cast<std::size_t>(answer.o.offset(0, row, 0));
    const bool nan = (answer.o.bits[at] & 0x7fff) > 0x7f80;
    CHECK(nan == (row == 17));
    if (row != 17) CHECK(answer.o.bits[at] == expected.o.bits[at]);
  }
}

TEST_CASE("rows that see nothing give 0 and -inf, whatever lies around them") {
  Problem problem = problem_of(200, 100, 96, 96, causal());  // the first 100 rows are empty
  problem.heads = 2;
  const Case c = test::make_case(problem, 10);
  const DeviceAnswer answer = test::run_case(device(), c);
  check(c, answer);
  for (std::int64_t row = 0; row < 100; ++row) {
    CHECK(answer.lse[static_cast<std::size_t>(row)] == -std::numeric_limits<float>::infinity());
    CHECK((answer.o.bits[static_cast<std::size_t>(answer.o.offset(0, row, 1) + 7)] & 0x7fff) == 0);
  }
  problem.seq_k = 0;
  const Case none = test::make_case(problem, 10);
  check(none, test::run_case(device(), none));
}

TEST_CASE("no rows and no batches launch nothing") {
  for (const bool rows : {false, true}) {
    Problem problem = problem_of(rows ? 0 : 10, 10, 64, 64, dense());
    if (!rows) problem.batch = 0;
    const Plan plan = device().plan(problem);
    CHECK(plan.info().launches == 0);
    CHECK(plan.info().source == "none");
    device().counters(true);
    CHECK_NOTHROW(plan.run(nullptr, [] {
      Operands none;
      return none;
    }()));
    if (device().info().simulated) CHECK(device().counters()[0].second == 0);
  }
}

TEST_CASE("a run can be captured in a graph and replayed, on a stream of the caller") {
  const device::ContextPointer& context = api::inside(device()).context;
  const abi::CudaTable& table = context->table();
  if (table.stream_begin_capture == nullptr) return;
  const Problem problem = problem_of(90, 130, 64, 64, causal());
  const Case c = test::make_case(problem, 12);
  const Plan plan = device().plan(problem);
  DeviceCase memory(device(), c);
  plan.run(nullptr, memory.operands());
  const DeviceAnswer expected = memory.answer();
  memory.reset();

  const device::Stream stream(context);
  const device::ContextScope scope(*context);
  abi::CUgraph graph = nullptr;
  abi::CUgraphExec exec = nullptr;
  REQUIRE(table.stream_begin_capture(stream.handle(), 0) == 0);
  plan.run(stream.handle(), memory.operands());
  REQUIRE(table.stream_end_capture(stream.handle(), &graph) == 0);
  CHECK_FALSE(memory.answer() == expected);  // nothing ran yet
  REQUIRE(table.graph_instantiate(&exec, graph, 0) == 0);
  for (int replay = 0; replay < 2; ++replay) {
    memory.reset();
    REQUIRE(table.graph_launch(exec, stream.handle()) == 0);
    stream.synchronize();
    CHECK(memory.answer() == expected);
  }
  CHECK(table.graph_exec_destroy(exec) == 0);
  CHECK(table.graph_destroy(graph) == 0);
}

TEST_CASE("operands that break a rule are refused before anything is launched") {
  Problem problem = problem_of(40, 50, 64, 64, dense());
  const Case c = test::make_case(problem, 11);
  const Plan plan = device().plan(problem);
  DeviceCase memory(device(), c);
  device().counters(true);
  Operands operands = memory.operands();
  operands.q = static_cast<const char*>(operands.q) + 2;
  CHECK_THROWS_AS(plan.run(nullptr, operands), Error);
  operands = memory.operands();
  operands.k_strides.row = 12;
  CHECK_THROWS_AS(plan.run(nullptr, operands), Error);
  operands = memory.operands();
  operands.lse = nullptr;
  CHECK_THROWS_AS(plan.run(nullptr, operands), Error);
  if (device().info().simulated) CHECK(device().counters()[0].second == 0);
}

TEST_CASE("a layout of the wrong number of heads and two layouts are refused") {
  BlockLayout layout;
  layout.block_rows = layout.block_columns = 64;
  layout.seq_q = layout.seq_k = 64;
  layout.heads = 3;
  layout.indptr = {0, 1, 2, 3};
  layout.indices = {0, 0, 0};
  Problem problem = problem_of(64, 64, 64, 64, blocks(layout));
  problem.heads = 2;
  CHECK_THROWS_AS(device().plan(problem), Error);
  problem.heads = 3;
  CHECK_NOTHROW(device().plan(problem));
  PlanOptions options;
  options.block_rows = -1;
  CHECK_THROWS_AS(device().plan(problem, options), Error);
  options = {};
  options.config = "no such";
  CHECK_THROWS_AS(device().plan(problem, options), Error);
}

}  // namespace
