// Joining partial answers over ranks. Every slice must have the bits of one merge of all answers,
// whichever rank computes it. Ranks that have seen no keys must not affect the answer.

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>

#include "annulus/join.h"
#include "annulus/problem.h"
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
  bool heads_first = false;  // the order of LSE
  std::uint32_t empty = 0;   // percentage of a rank's (row, head) pairs without keys
  bool nan_where_empty = false;

  RowStrides o_strides() const { return {problem.heads * problem.dim_v, problem.dim_v}; }
  RowStrides lse_strides(std::int64_t of_rows, std::int64_t heads) const {
    return heads_first ? RowStrides{1, of_rows} : RowStrides{heads, 1};
  }
};

struct Partial {
  Bits o;                  // [rows, H, Dv]
  std::vector<float> lse;  // in the order of the case
  HostState state;         // used instead of both if the case has states
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
  drawn.problem.max_rows = drawn.rows + random.below(3);
  if (random.below(2) == 0) drawn.problem.form = PartialForm::kStates;
  drawn.problem.carry_out = drawn.problem.form == PartialForm::kStates && random.below(2) == 0;
  drawn.problem.sink_logits = !drawn.problem.carry_out && random.below(2) == 0;
  drawn.heads_first = random.below(2) != 0;
  const std::uint32_t shares[] = {0, 30, 90, 100};
  drawn.empty = shares[random.below(4)];
  drawn.nan_where_empty = random.below(2) != 0;
  return drawn;
}

constexpr float kInfinity = std::numeric_limits<float>::infinity();

Partial draw_partial(const Case& of, int rank, std::uint64_t seed) {
  base::Random random(seed * 100 + static_cast<std::uint64_t>(rank));
  Partial partial;
  const std::int64_t all = of.rows * of.problem.heads;
  partial.lse.resize(static_cast<std::size_t>(all));
  partial.state = HostState::empty(all, of.problem.dim_v);
  for (std::int64_t i = 0; i < all; ++i) {
    const bool empty = random.below(100) < of.empty;
    const std::int64_t row = i / of.problem.heads, head = i % of.problem.heads;
    const RowStrides strides = of.lse_strides(of.rows, of.problem.heads);
    const float lse = empty ? -kInfinity : 8 * random.normal();
    partial.lse[static_cast<std::size_t>(row * strides.row + head * strides.head)] = lse;
    const auto at = static_cast<std::size_t>(i);
    partial.state.l[at] = empty ? 0 : 1 + static_cast<float>(random.uniform());
    partial.state.m[at] = empty && of.nan_where_empty ? std::nanf("") : lse;
    for (std::int64_t d = 0; d < of.problem.dim_v; ++d) {
      const float value = empty && of.nan_where_empty ? std::nanf("") : random.normal();
      partial.o.push_back(base::from_float(of.problem.dtype, value));
      partial.state.acc[static_cast<std::size_t>(i * of.problem.dim_v + d)] = value;
    }
  }
  return partial;
}

std::vector<float> draw_sinks(const Case& of, std::uint64_t seed) {
  base::Random random(seed + 12345);
  std::vector<float> sinks;
  for (std::int64_t head = 0; head < of.problem.heads; ++head) {
    sinks.push_back(random.below(5) == 0 ? -kInfinity : 8 * random.normal());
  }
  return sinks;
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

// A partial answer on a device, or memory for a joined one.
struct OnDevice {
  DeviceMemory o, lse, acc, m, l;
  StatePointers state() const {
    return {static_cast<float*>(acc.data()), static_cast<float*>(m.data()),
            static_cast<float*>(l.data())};
  }
};
OnDevice upload(const Device& device, const Partial& partial) {
  return {upload(device, partial.o), upload(device, partial.lse), upload(device, partial.state.acc),
          upload(device, partial.state.m), upload(device, partial.state.l)};
}
OnDevice allocate(const Device& device, std::int64_t rows, std::int64_t dim) {
  const auto memory = [&](std::int64_t bytes) {
    return device.allocate(static_cast<std::size_t>(bytes));
  };
  return {memory(rows * dim * 2), memory(rows * 4), memory(rows * dim * 4), memory(rows * 4),
          memory(rows * 4)};
}
// Copies the outputs of the problem to the host. The other tensors stay empty.
Partial download(const Device& device, const JoinProblem& problem, const OnDevice& memory) {
  Partial got;
  if (problem.carry_out) {
    got.state.acc = download<float>(device, memory.acc);
    got.state.m = download<float>(device, memory.m);
    got.state.l = download<float>(device, memory.l);
  } else {
    got.o = download<std::uint16_t>(device, memory.o);
    got.lse = download<float>(device, memory.lse);
  }
  return got;
}

// The answer [rows, H] of one merge of all partial answers on one device. A single partial answer
// is merged with one that has seen no keys.
Partial merged(const Case& of, std::vector<Partial> partials, const std::vector<float>& sinks) {
  if (of.ranks == 1) {
    partials.push_back(partials[0]);
    std::fill(partials[1].lse.begin(), partials[1].lse.end(), -kInfinity);
    std::fill(partials[1].state.l.begin(), partials[1].state.l.end(), 0.0f);
  }
  const Device device = test::rank_device(0);
  const MergePlan plan = plan_merge(device, {.heads = of.problem.heads,
                                             .dim_v = of.problem.dim_v,
                                             .dtype = of.problem.dtype,
                                             .lse_base = of.problem.lse_base,
                                             .inputs = std::ssize(partials),
                                             .max_rows = of.rows,
                                             .form = of.problem.form,
                                             .carry_out = of.problem.carry_out,
                                             .sink_logits = of.problem.sink_logits});
  const bool states = of.problem.form == PartialForm::kStates;
  std::vector<OnDevice> memory;
  std::vector<MergeInput> inputs;
  for (const Partial& one : partials) {
    memory.push_back(upload(device, one));
    const OnDevice& last = memory.back();
    if (states) {
      inputs.push_back({.o = nullptr, .lse = nullptr, .state = last.state()});
    } else {
      inputs.push_back(
          {.o = last.o.data(), .lse = static_cast<const float*>(last.lse.data()), .state = {}});
    }
  }
  const OnDevice out = allocate(device, of.rows * of.problem.heads, of.problem.dim_v);
  const DeviceMemory logits = upload(device, sinks);
  MergeOperands operands;
  operands.inputs = inputs;
  operands.input_o_strides = operands.o_strides = of.o_strides();
  operands.input_lse_strides = of.lse_strides(of.rows, of.problem.heads);
  operands.lse_strides = {of.problem.heads, 1};
  if (of.problem.sink_logits) operands.sink_logits = static_cast<const float*>(logits.data());
  if (of.problem.carry_out) {
    operands.state = out.state();
  } else {
    operands.o = out.o.data();
    operands.lse = static_cast<float*>(out.lse.data());
  }
  plan.run(nullptr, operands);
  return download(device, of.problem, out);
}

// The first error in the answer of a rank, or "".
std::string wrong(const Case& of, const Partial& want, const Communicator& rank,
                  const JoinPlan& plan, const Device& on, const Partial& mine,
                  const std::vector<float>& sinks) {
  const std::int64_t heads = of.problem.heads, dim = of.problem.dim_v;
  SliceRange rows = {0, of.rows}, own_heads = {0, heads};
  if (of.problem.slices == JoinedSlices::kRows) rows = slice_of(of.rows, rank.ranks(), rank.rank());
  if (of.problem.slices == JoinedSlices::kHeads) {
    own_heads = slice_of(heads, rank.ranks(), rank.rank());
  }
  const std::int64_t count = rows.end - rows.begin, width = own_heads.end - own_heads.begin;
  const OnDevice given = upload(on, mine), joined = allocate(on, count * width, dim);
  const DeviceMemory workspace = on.allocate(plan.workspace_bytes()), logits = upload(on, sinks);
  JoinOperands operands;
  operands.rows = of.rows;
  if (of.problem.form == PartialForm::kStates) {
    operands.state = given.state();
  } else {
    operands.o = given.o.data();
    operands.lse = static_cast<const float*>(given.lse.data());
  }
  if (of.problem.sink_logits) operands.sink_logits = static_cast<const float*>(logits.data());
  operands.o_strides = of.o_strides();
  operands.lse_strides = of.lse_strides(of.rows, heads);
  if (of.problem.carry_out) {
    operands.joined_state = joined.state();
  } else {
    operands.joined_o = joined.o.data();
    operands.joined_lse = static_cast<float*>(joined.lse.data());
  }
  operands.joined_o_strides = {width * dim, dim};
  operands.joined_lse_strides = {width, 1};
  std::string first;
  // Compares rows of heads of the result with the expected rows, bit by bit.
  const auto compare = [&](const char* what, const auto& got, const auto& all,
                           std::int64_t of_row) {
    for (std::int64_t i = 0; i < count * width && !got.empty() && first.empty(); ++i) {
      const std::int64_t at = (rows.begin + i / width) * heads + own_heads.begin + i % width;
      if (std::memcmp(&got[static_cast<std::size_t>(i * of_row)],
                      &all[static_cast<std::size_t>(at * of_row)],
                      static_cast<std::size_t>(of_row) * sizeof(got[0])) != 0) {
        first = what + std::to_string(at);
      }
    }
  };
  for (int time = 0; time < 2; ++time) {
    plan.run(nullptr, operands, workspace.data());
    on.synchronize();
    const Partial got = download(on, of.problem, joined);
    compare("LSE ", got.lse, want.lse, 1);
    compare("O ", got.o, want.o, dim);
    compare("acc ", got.state.acc, want.state.acc, dim);
    compare("m ", got.state.m, want.state.m, 1);
    compare("l ", got.state.l, want.state.l, 1);
  }
  return first;
}

void check_case(const Case& of, std::uint64_t seed) {
  std::vector<Partial> partials;
  for (int rank = 0; rank < of.ranks; ++rank) partials.push_back(draw_partial(of, rank, seed));
  const std::vector<float> sinks = draw_sinks(of, seed);
  const Partial want = merged(of, partials, sinks);
  std::vector<std::string> found(static_cast<std::size_t>(of.ranks));
  test::on_ranks(of.ranks, {}, [&](const Communicator& rank, const Device& on) {
    const auto at = static_cast<std::size_t>(rank.rank());
    const JoinPlan plan = plan_join(on, rank, of.problem);
    found[at] = wrong(of, want, rank, plan, on, partials[at], sinks);
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
    large.problem.max_rows = large.rows;
    large.empty = 20;
    check_case(large, 9);
    Case of_states = large;
    of_states.rows = of_states.problem.max_rows = large.rows / 2;
    of_states.problem.form = PartialForm::kStates;
    of_states.problem.carry_out = heads == 40;
    of_states.problem.sink_logits = heads == 3;
    check_case(of_states, 10);
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
    problem.max_rows = 1 + random.below(i % 2 == 0 ? 40 : 4000);
    const std::int64_t most = join::max_workspace(problem, drawn.ranks);
    for (int time = 0; time < 50; ++time) {
      const std::int64_t rows = 1 + random.below(static_cast<std::uint32_t>(problem.max_rows));
      for (int rank = 0; rank < drawn.ranks; ++rank) {
        const join::Layout layout = join::lay_out(problem, rows, drawn.ranks, rank);
        REQUIRE(layout.end <= most);
        if (drawn.ranks == 1) continue;
        REQUIRE(layout.received_at >=
                layout.partial.begin(drawn.ranks - 1) + layout.partial.at(drawn.ranks - 1).bytes);
      }
    }
  }
}

TEST_CASE("every rank gets the queries of all heads") {
  base::Random random(3);
  for (int i = 0; i < 12; ++i) {
    GatherProblem problem = {.heads = 1 + random.below(9), .dim = 8 * (1 + random.below(17))};
    problem.max_rows = 1 + random.below(16);
    const int ranks = 1 + static_cast<int>(random.below(6));
    const std::int64_t rows = 1 + random.below(static_cast<std::uint32_t>(problem.max_rows));
    const bool heads_first = random.below(2) == 0;
    Bits all;
    for (std::int64_t at = 0; at < rows * problem.heads * problem.dim; ++at) {
      all.push_back(static_cast<std::uint16_t>(random.below(65536)));
    }
    CAPTURE(i);
    CAPTURE(ranks);
    std::vector<int> same(static_cast<std::size_t>(ranks), 0);
    test::on_ranks(ranks, {}, [&](const Communicator& rank, const Device& on) {
      const SliceRange own = slice_of(problem.heads, ranks, rank.rank());
      const std::int64_t heads = own.end - own.begin;
      // Rows of these heads only, in either order.
      const RowStrides strides = heads_first ? RowStrides{problem.dim, rows * problem.dim}
                                             : RowStrides{heads * problem.dim, problem.dim};
      Bits mine(static_cast<std::size_t>(rows * heads * problem.dim));
      for (std::int64_t row = 0; row < rows; ++row) {
        for (std::int64_t head = 0; head < heads; ++head) {
          std::copy_n(all.begin() + (row * problem.heads + own.begin + head) * problem.dim,
                      problem.dim, mine.begin() + row * strides.row + head * strides.head);
        }
      }
      const GatherPlan plan = plan_gather(on, rank, problem);
      const DeviceMemory q = upload(on, mine), workspace = on.allocate(plan.workspace_bytes());
      const DeviceMemory gathered = on.allocate(all.size() * 2);
      GatherOperands operands;
      operands.rows = rows;
      operands.q = heads > 0 ? q.data() : nullptr;
      operands.gathered = gathered.data();
      operands.q_strides = strides;
      operands.gathered_strides = {problem.dim, problem.dim};  // the rows overlap
      if (rows > 1 && problem.heads > 1) {
        CHECK_THROWS_WITH_AS(plan.run(nullptr, operands, workspace.data()),
                             doctest::Contains("elements would overlap; give at least"), Error);
      }
      operands.gathered_strides = {problem.heads * problem.dim, problem.dim};
      plan.run(nullptr, operands, workspace.data());
      on.synchronize();
      same[static_cast<std::size_t>(rank.rank())] = download<std::uint16_t>(on, gathered) == all;
    });
    for (const int one : same) CHECK(one == 1);
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
    JoinProblem problem = {.heads = 2, .dim_v = 64, .max_rows = 4};
    const auto refused = [&](JoinProblem changed) {
      return code_of([&] { plan_join(on, rank, changed); });
    };
    JoinProblem wrong = problem;
    wrong.dim_v = 20;
    CHECK(refused(wrong) == ErrorCode::kUnsupported);
    wrong = problem;
    wrong.max_rows = 0;
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
    wrong = problem;
    wrong.carry_out = true;
    CHECK(refused(wrong) == ErrorCode::kInvalidArgument);
    wrong.form = PartialForm::kStates;
    wrong.sink_logits = true;
    CHECK(refused(wrong) == ErrorCode::kInvalidArgument);
    CHECK(code_of([&] { plan_gather(on, rank, {.heads = 2, .dim = 12, .max_rows = 1}); }) ==
          ErrorCode::kUnsupported);
    CHECK_THROWS_WITH_AS(
        plan_gather(on, rank, {.heads = 2, .dim = 16, .dtype = Dtype::kFloat32, .max_rows = 1}),
        doctest::Contains("Q of fp32 has no kernel"), Error);
    CHECK(code_of([&] {
            plan_gather(test::rank_device(1), rank, {.heads = 2, .dim = 16, .max_rows = 1});
          }) == ErrorCode::kInvalidArgument);
    const GatherPlan gather = plan_gather(on, rank, {.heads = 2, .dim = 16, .max_rows = 1});
    GatherOperands queries;
    queries.rows = 2;
    CHECK(code_of([&] { gather.run(nullptr, queries, nullptr); }) == ErrorCode::kInvalidArgument);
    queries.rows = 1;
    CHECK(code_of([&] { gather.run(nullptr, queries, nullptr); }) == ErrorCode::kInvalidArgument);
    CHECK(code_of([] { slice_of(4, 2, 2); }) == ErrorCode::kInvalidArgument);
    CHECK(slice_of(INT64_MAX, 4, 2).end == slice_of(INT64_MAX, 4, 3).begin);
    CHECK(slice_of(INT64_MAX, 4, 3).begin == INT64_MAX / 4 * 3 + 2);
    CHECK(slice_of(INT64_MAX, INT32_MAX, INT32_MAX - 1).end == INT64_MAX);
  });
}

}  // namespace
}  // namespace annulus
