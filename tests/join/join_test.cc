// Joining partial answers over ranks: every slice has the bits of one merge of all of them, whoever
// computes it, and what ranks have not seen counts for nothing.

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>

#include "annulus/join.h"
#include "base/half.h"
#include "base/random.h"
#include "exchange/ranks.h"
#include "join/joiner.h"
#include "support/options.h"

namespace annulus {
namespace {

using Bits = std::vector<std::uint16_t>;

struct Case {
  int ranks = 2;
  std::int64_t rows = 1;
  JoinProblem problem;
  bool heads_first = false;  // of LSE
  std::uint32_t empty = 0;   // percent of the rows of heads of a rank
  bool nan_where_empty = false;

  RowStrides o_strides() const { return {problem.heads * problem.dim_v, problem.dim_v}; }
  RowStrides lse_strides(std::int64_t of_rows, std::int64_t heads) const {
    return heads_first ? RowStrides{1, of_rows} : RowStrides{heads, 1};
  }
};

struct Partial {
  Bits o;                  // [rows, H, Dv]
  std::vector<float> lse;  // as the case has it
};

Case draw_case(std::uint64_t seed) {
  base::Random random(seed);
  Case drawn;
  drawn.ranks = 1 + static_cast<int>(random.below(8));
  drawn.rows = 1 + random.below(12);
  drawn.problem.heads = 1 + random.below(10);
  drawn.problem.dim_v = 8 * (1 + random.below(20));
  drawn.problem.dtype = random.below(2) != 0 ? Dtype::kBfloat16 : Dtype::kFloat16;
  drawn.problem.lse_base = random.below(2) != 0 ? LseBase::kNatural : LseBase::kTwo;
  drawn.problem.most_rows = drawn.rows + random.below(3);
  drawn.heads_first = random.below(2) != 0;
  const std::uint32_t shares[] = {0, 30, 90, 100};
  drawn.empty = shares[random.below(4)];
  drawn.nan_where_empty = random.below(2) != 0;
  return drawn;
}

Partial draw_partial(const Case& of, int rank, std::uint64_t seed) {
  base::Random random(seed * 100 + static_cast<std::uint64_t>(rank));
  Partial partial;
  const std::int64_t all = of.rows * of.problem.heads;
  partial.lse.resize(static_cast<std::size_t>(all));
  for (std::int64_t i = 0; i < all; ++i) {
    const bool empty = random.below(100) < of.empty;
    const std::int64_t row = i / of.problem.heads, head = i % of.problem.heads;
    const RowStrides strides = of.lse_strides(of.rows, of.problem.heads);
    partial.lse[static_cast<std::size_t>(row * strides.row + head * strides.head)] =
        empty ? -std::numeric_limits<float>::infinity() : 8 * random.normal();
    for (std::int64_t d = 0; d < of.problem.dim_v; ++d) {
      const float value = empty && of.nan_where_empty ? std::nanf("") : random.normal();
      partial.o.push_back(base::from_float(of.problem.dtype, value));
    }
  }
  return partial;
}

template <typename T>
DeviceMemory upload(const Device& device, const std::vector<T>& values) {
  DeviceMemory memory = device.allocate(values.size() * sizeof(T));
  device.copy_to_device(memory.data(), values.data(), memory.bytes());
  return memory;
}
template <typename T>
std::vector<T> download(const Device& device, const DeviceMemory& memory) {
  std::vector<T> values(memory.bytes() / sizeof(T));
  if (!values.empty()) device.copy_to_host(values.data(), memory.data(), memory.bytes());
  return values;
}

// O and LSE [rows, H] of one merge of all partial answers on one device.
Partial merged(const Case& of, const std::vector<Partial>& partials) {
  if (of.ranks == 1) {
    Partial same = partials[0];
    for (std::int64_t i = 0; i < of.rows * of.problem.heads; ++i) {
      const RowStrides strides = of.lse_strides(of.rows, of.problem.heads);
      const std::int64_t row = i / of.problem.heads, head = i % of.problem.heads;
      same.lse[static_cast<std::size_t>(i)] =
          partials[0].lse[static_cast<std::size_t>(row * strides.row + head * strides.head)];
      if (std::isinf(same.lse[static_cast<std::size_t>(i)])) {
        std::fill_n(same.o.begin() + i * of.problem.dim_v, of.problem.dim_v, std::uint16_t{0});
      }
    }
    return same;
  }
  const Device device = test::rank_device(0);
  const MergePlan plan = plan_merge(device, {.heads = of.problem.heads,
                                             .dim_v = of.problem.dim_v,
                                             .dtype = of.problem.dtype,
                                             .lse_base = of.problem.lse_base,
                                             .inputs = of.ranks,
                                             .most_rows = of.rows});
  std::vector<DeviceMemory> memory;
  std::vector<MergeInput> inputs;
  for (const Partial& one : partials) {
    memory.push_back(upload(device, one.o));
    memory.push_back(upload(device, one.lse));
    inputs.push_back(
        {memory[memory.size() - 2].data(), static_cast<const float*>(memory.back().data())});
  }
  const DeviceMemory o = device.allocate(partials[0].o.size() * 2);
  const DeviceMemory lse = device.allocate(partials[0].lse.size() * 4);
  MergeOperands operands;
  operands.inputs = inputs;
  operands.input_o_strides = operands.o_strides = of.o_strides();
  operands.input_lse_strides = of.lse_strides(of.rows, of.problem.heads);
  operands.lse_strides = {of.problem.heads, 1};
  operands.o = o.data();
  operands.lse = static_cast<float*>(lse.data());
  plan.run(nullptr, operands);
  return {download<std::uint16_t>(device, o), download<float>(device, lse)};
}

// What is wrong with the answer of a rank; empty: nothing.
std::string wrong(const Case& of, const Partial& want, const Communicator& rank,
                  const JoinPlan& plan, const Device& on, const Partial& mine) {
  const std::int64_t heads = of.problem.heads, dim = of.problem.dim_v;
  SliceRange rows = {0, of.rows}, own_heads = {0, heads};
  if (of.problem.slices == JoinedSlices::kRows) rows = slice_of(of.rows, rank.ranks(), rank.rank());
  if (of.problem.slices == JoinedSlices::kHeads) {
    own_heads = slice_of(heads, rank.ranks(), rank.rank());
  }
  const std::int64_t count = rows.end - rows.begin, width = own_heads.end - own_heads.begin;
  const DeviceMemory o = upload(on, mine.o), lse = upload(on, mine.lse);
  const DeviceMemory joined_o = on.allocate(static_cast<std::size_t>(count * width * dim) * 2);
  const DeviceMemory joined_lse = on.allocate(static_cast<std::size_t>(count * width) * 4);
  const DeviceMemory workspace = on.allocate(plan.workspace_bytes());
  JoinOperands operands;
  operands.rows = of.rows;
  operands.o = o.data();
  operands.lse = static_cast<const float*>(lse.data());
  operands.o_strides = of.o_strides();
  operands.lse_strides = of.lse_strides(of.rows, heads);
  operands.joined_o = joined_o.data();
  operands.joined_lse = static_cast<float*>(joined_lse.data());
  operands.joined_o_strides = {width * dim, dim};
  operands.joined_lse_strides = {width, 1};
  std::string first;
  const auto note = [&](const char* what, std::int64_t at) {
    if (first.empty()) first = what + std::to_string(at);
  };
  for (int time = 0; time < 2; ++time) {
    plan.run(nullptr, operands, workspace.data());
    on.synchronize();
    const Bits got = download<std::uint16_t>(on, joined_o);
    const std::vector<float> got_lse = download<float>(on, joined_lse);
    for (std::int64_t i = 0; i < count * width; ++i) {
      const std::int64_t at = (rows.begin + i / width) * heads + own_heads.begin + i % width;
      if (std::memcmp(&got_lse[static_cast<std::size_t>(i)],
                      &want.lse[static_cast<std::size_t>(at)], 4) != 0) {
        note("LSE ", at);
      }
      if (!std::equal(got.begin() + i * dim, got.begin() + (i + 1) * dim,
                      want.o.begin() + at * dim)) {
        note("O ", at);
      }
    }
  }
  return first;
}

void check_case(const Case& of, std::uint64_t seed) {
  std::vector<Partial> partials;
  for (int rank = 0; rank < of.ranks; ++rank) partials.push_back(draw_partial(of, rank, seed));
  const Partial want = merged(of, partials);
  std::vector<std::string> found(static_cast<std::size_t>(of.ranks));
  test::on_ranks(of.ranks, {}, [&](const Communicator& rank, const Device& on) {
    const auto at = static_cast<std::size_t>(rank.rank());
    const JoinPlan plan = plan_join(on, rank, of.problem);
    found[at] = wrong(of, want, rank, plan, on, partials[at]);
  });
  for (const std::string& one : found) CHECK(one == "");
}

TEST_CASE("slices have the bits of one merge, whoever computes them") {
  const int problems = test::options().problems > 0 ? test::options().problems : 20;
  for (int problem = 1; problem <= problems; ++problem) {
    const std::uint64_t seed = test::seed_of(static_cast<std::uint64_t>(problem));
    Case drawn = draw_case(seed);
    for (const JoinedSlices slices :
         {JoinedSlices::kAll, JoinedSlices::kHeads, JoinedSlices::kRows}) {
      CAPTURE(seed);
      CAPTURE(to_string(slices));
      drawn.problem.slices = slices;
      check_case(drawn, seed);
    }
  }
}

TEST_CASE("large answers for all ranks are merged in slices, which a second exchange spreads") {
  for (const std::int64_t heads : {3, 40}) {
    Case large;
    large.ranks = 3;
    large.rows = heads == 3 ? 1100 : 30;
    large.problem.heads = heads;
    large.problem.dim_v = heads == 3 ? 512 : 1024;
    large.problem.most_rows = large.rows;
    large.empty = 20;
    check_case(large, 9);
    test::on_ranks(3, {}, [&](const Communicator& rank, const Device& on) {
      const JoinPlan plan = plan_join(on, rank, large.problem);
      const bool spreads = large.rows * heads * (large.problem.dim_v * 2 + 4) * 2 > (4 << 20);
      CHECK(plan.info().exchanges == (spreads ? 2 : 1));
      CHECK(plan.info().reason.find(spreads ? "two exchanges" : "one exchange") == 0);
    });
  }
}

TEST_CASE("no run needs more workspace than the plan says") {
  base::Random random(5);
  for (int i = 0; i < 300; ++i) {
    const Case drawn = draw_case(static_cast<std::uint64_t>(i));
    JoinProblem problem = drawn.problem;
    problem.slices = static_cast<JoinedSlices>(1 + random.below(3));
    problem.most_rows = 1 + random.below(i % 2 == 0 ? 40 : 4000);
    const std::int64_t most = join::most_workspace(problem, drawn.ranks);
    for (int time = 0; time < 50; ++time) {
      const std::int64_t rows = 1 + random.below(static_cast<std::uint32_t>(problem.most_rows));
      for (int rank = 0; rank < drawn.ranks; ++rank) {
        const join::Layout layout = join::lay_out(problem, rows, drawn.ranks, rank);
        REQUIRE(layout.end <= most);
        const auto last = static_cast<std::size_t>(drawn.ranks - 1);
        REQUIRE(layout.received_at >= layout.begins[last] + layout.slices[last].bytes);
      }
    }
  }
}

TEST_CASE("what a join is given is checked") {
  const auto code_of = [](const std::function<void()>& call) {
    try {
      call();
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::kInternal;
  };
  test::on_ranks(1, {}, [&](const Communicator& rank, const Device& on) {
    JoinProblem problem = {.heads = 2, .dim_v = 64, .most_rows = 4};
    const auto refused = [&](JoinProblem changed) {
      return code_of([&] { plan_join(on, rank, changed); });
    };
    JoinProblem wrong = problem;
    wrong.dim_v = 20;
    CHECK(refused(wrong) == ErrorCode::kUnsupported);
    wrong = problem;
    wrong.most_rows = 0;
    CHECK(refused(wrong) == ErrorCode::kInvalidArgument);
    wrong = problem;
    wrong.slices = static_cast<JoinedSlices>(7);
    CHECK(refused(wrong) == ErrorCode::kInvalidArgument);
    CHECK(code_of([&] { plan_join(test::rank_device(1), rank, problem); }) ==
          ErrorCode::kInvalidArgument);
    const JoinPlan plan = plan_join(on, rank, problem);
    CHECK(plan.info().exchanges == 0);
    JoinOperands operands;
    operands.rows = 5;
    CHECK(code_of([&] { plan.run(nullptr, operands, nullptr); }) == ErrorCode::kInvalidArgument);
    operands.rows = 1;
    CHECK(code_of([&] { plan.run(nullptr, operands, nullptr); }) == ErrorCode::kInvalidArgument);
    operands.rows = 0;
    CHECK_NOTHROW(plan.run(nullptr, operands, nullptr));
    CHECK(code_of([] { slice_of(4, 2, 2); }) == ErrorCode::kInvalidArgument);
  });
}

}  // namespace
}  // namespace annulus
