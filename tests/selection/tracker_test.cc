// Recall, and blocks that change gradually, compared with results of the host from the same
// numbers.

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "annulus/selection.h"
#include "annulus/types.h"
#include "base/half.h"
#include "selection/choosing.h"
#include "support/options.h"

namespace {

using namespace annulus;
using test::Case;
using test::device;
using test::DeviceCase;
using test::problem_of;

template <typename T>
std::vector<T> fetch(const DeviceMemory& memory) {
  std::vector<T> values(memory.bytes() / sizeof(T));
  device().copy_to_host(values.data(), memory.data(), memory.bytes());
  return values;
}

template <typename T>
DeviceMemory store(const std::vector<T>& values) {
  DeviceMemory memory = device().allocate(values.size() * sizeof(T));
  device().copy_to_device(memory.data(), values.data(), memory.bytes());
  return memory;
}

double lse_of(const Reference& oracle, std::size_t row) {
  return (oracle.m[row] + std::log2(oracle.l[row])) * std::numbers::ln2;
}

// The float64 oracle over the problem's pattern and, if they are given, the chosen blocks of its
// only batch.
Reference oracle_of(const Case& c, const Selection& selection,
                    const selection::HostBlocks* blocks) {
  Problem problem = c.problem;
  if (blocks != nullptr) {
    problem.pattern =
        problem.pattern & annulus::blocks(selection::layout_of(problem, selection, *blocks, 0));
  }
  return attention::reference(problem, c.inputs(), test::pool());
}

TEST_CASE("recall is the share of attention that the chosen blocks have") {
  for (const LseBase lse_base : {LseBase::kNatural, LseBase::kTwo}) {
    Problem problem = problem_of(130, 300, 64, 64, causal() & ~window(3, 0));
    problem.q0 = -2;  // the first rows see nothing
    problem.heads = 2;
    problem.lse_base = lse_base;
    const Case c = test::make_case(problem, 31);
    Selection selection;
    selection.block_rows = selection.block_columns = 32;
    selection.max_blocks = 3;
    selection.diagonal_blocks = 0;
    const Plan plan = device().plan(problem, selection);
    const RecallMeter meter(device(), problem);
    DeviceCase memory(device(), c);
    const DeviceMemory workspace =
        device().allocate(std::max(plan.workspace_bytes(), meter.workspace_bytes()));
    const DeviceMemory recall = device().allocate(2 * 130 * sizeof(float));
    plan.run(nullptr, memory.operands(), workspace.data());
    meter.run(nullptr, memory.operands(), static_cast<float*>(recall.data()), workspace.data());
    const std::vector<float> measured = fetch<float>(recall);
    // The blocks of the oracle without its attention, because positions are not the default ones.
    const selection::HostBlocks blocks = selection::reference(problem, selection, c.inputs());
    const Reference all = oracle_of(c, selection, nullptr);
    const double scale = problem.effective_scale();
    std::size_t partial = 0;
    for (std::size_t row = 0; row < measured.size(); ++row) {
      const auto head = static_cast<std::int64_t>(row) / 130;
      const auto i = static_cast<std::int64_t>(row) % 130;
      double seen = all.l[row] == 0 ? 1 : 0;
      for (std::int64_t j = 0; j < 300; ++j) {
        if (!problem.pattern.visible(head, i - 2, j, problem.context())) continue;
        if (!blocks.chosen[blocks.at(0, head, i / 32, j / 32)]) continue;
        double score = 0;
        for (std::int64_t d = 0; d < 64; ++d) {
          const auto q = static_cast<std::size_t>(c.q.offset(0, i, head) + d);
          const auto k = static_cast<std::size_t>(c.k.offset(0, j, 0) + d);
          score += static_cast<double>(base::to_float(problem.dtype, c.q.bits[q])) *
                   static_cast<double>(base::to_float(problem.dtype, c.k.bits[k]));
        }
        seen += std::exp(score * scale - lse_of(all, row));
      }
      CAPTURE(row);
      CHECK(static_cast<double>(measured[row]) == doctest::Approx(seen).epsilon(1e-3));
      partial += seen > 0 && seen < 0.999;
    }
    CHECK(partial > 50);
    const RecallSummary summary = summarise_recall(measured);
    CHECK(summary.mean > 0.2);
    CHECK(summary.least == doctest::Approx(*std::min_element(measured.begin(), measured.end())));
  }
}

// The input of the kernels for a row of blocks.
struct Row {
  const float* scores;
  const std::uint8_t* visible;
  const std::uint64_t* mass;
  std::int64_t columns;
};

float power(float x) {  // the same steps as in templates/tile/exact_math.cuh
  if (!(x >= -125.0f)) return 0.0f;
  const float whole = std::nearbyint(x);
  float sum = 1.5403530e-4f;
  for (const float coefficient :
       {1.3333558e-3f, 9.6181291e-3f, 5.5504109e-2f, 2.4022651e-1f, 6.9314718e-1f, 1.0f}) {
    sum = std::fma(sum, x - whole, coefficient);
  }
  return std::bit_cast<float>(std::bit_cast<std::int32_t>(sum) +
                              (static_cast<std::int32_t>(whole) << 23));
}

// The rule of annulus/selection.h. `kept` has the given blocks, and `forced` the blocks that always
// stay.
void update(const Row& row, std::int64_t most, const TrackerOptions& options,
            const std::vector<bool>& forced, std::vector<bool>* kept) {
  float peak = -std::numeric_limits<float>::max();
  std::uint64_t powers = 0;
  std::uint64_t measured = 0;
  std::int64_t count = 0;
  const auto at = [](std::int64_t j) { return static_cast<std::size_t>(j); };
  for (std::int64_t j = 0; j < row.columns; ++j) {
    if (row.visible[j]) peak = std::max(peak, row.scores[j]);
    if ((*kept)[at(j)] || forced[at(j)]) measured += row.mass[j];
    count += (*kept)[at(j)] && !forced[at(j)];
  }
  const auto share = [&](std::int64_t j) {
    return static_cast<std::uint64_t>(power(row.scores[j] - peak) * 16777216.0f);
  };
  std::vector<std::int64_t> outside, inside;
  for (std::int64_t j = 0; j < row.columns; ++j) {
    if (row.visible[j]) powers += share(j);
    if (forced[at(j)]) continue;
    if ((*kept)[at(j)]) {
      inside.push_back(j);
    } else if (row.visible[j]) {
      outside.push_back(j);
    }
  }
  std::stable_sort(outside.begin(), outside.end(),
                   [&](std::int64_t a, std::int64_t b) { return row.scores[a] > row.scores[b]; });
  std::stable_sort(inside.begin(), inside.end(), [&](std::int64_t a, std::int64_t b) {
    return row.mass[a] < row.mass[b] || (row.mass[a] == row.mass[b] && a > b);
  });
  std::size_t dropped = 0;
  for (std::size_t added = 0; added < outside.size(); ++added) {
    if (static_cast<std::int64_t>(added) == options.max_added) break;
    const std::int64_t comes = outside[added];
    if (count < most) {
      ++count;
    } else {
      if (static_cast<std::int64_t>(dropped) == options.max_dropped) break;
      if (dropped == inside.size()) break;
      const std::int64_t goes = inside[dropped];
      const float of_new = static_cast<float>(share(comes)) / static_cast<float>(powers);
      const float of_old =
          measured == 0 ? 0.0f : static_cast<float>(row.mass[goes]) / static_cast<float>(measured);
      if (!(of_new > of_old)) break;
      (*kept)[at(goes)] = false;
      ++dropped;
    }
    (*kept)[at(comes)] = true;
  }
}

TEST_CASE("masses are the attention of each block, and updates change few blocks by them") {
  Problem problem = problem_of(150, 400, 64, 64, causal() & ~dilated(7));
  problem.heads = 4;
  problem.kv_heads = 2;
  problem.score.softcap = 8;
  const Case c = test::make_case(problem, 32);
  Selection selection;
  selection.block_rows = 24;
  selection.block_columns = 40;
  selection.rule = SelectionRule::kGiven;
  selection.max_blocks = 4;
  const TrackerOptions options = {.max_added = 2, .max_dropped = 1};
  const Plan plan = device().plan(problem, selection);
  const ImportanceTracker tracker(device(), problem, selection, options);
  const std::int64_t rows = selection.rows(150), columns = selection.columns(400);

  DeviceCase memory(device(), c);
  const DeviceMemory workspace =
      device().allocate(std::max(plan.workspace_bytes(), tracker.workspace_bytes()));
  const DeviceMemory state = store(std::vector<std::byte>(tracker.state_bytes()));
  std::vector<std::int32_t> given(static_cast<std::size_t>(4 * rows * 4), -1);
  // Even rows begin full, and odd rows begin with one block.
  for (std::size_t i = 0; i < given.size(); ++i) {
    const std::size_t steps[] = {0, 2, 5, 7};
    if (i % 4 == 0 || i / 4 % 2 == 0) {
      given[i] = static_cast<std::int32_t>((i / 4 + steps[i % 4]) % 10);
    }
  }
  const DeviceMemory list = store(given);
  auto* const indices = static_cast<std::int32_t*>(list.data());
  SelectionBuffers buffers;
  buffers.given = indices;

  Selection scoring = selection;
  scoring.rule = SelectionRule::kTopK;
  const selection::HostBlocks scored = selection::reference(problem, scoring, c.inputs());
  std::size_t changed = 0;
  std::size_t dropped = 0;
  for (int step = 0; step < 5; ++step) {
    CAPTURE(step);
    plan.run(nullptr, memory.operands(), workspace.data(), buffers);
    tracker.measure(nullptr, memory.operands(), indices, state.data(), workspace.data());
    const std::vector<std::uint64_t> mass = fetch<std::uint64_t>(state);
    const selection::HostBlocks kept =
        selection::reference(problem, selection, c.inputs(), given.data());
    const std::vector<std::int32_t> none(given.size(), -1);
    const selection::HostBlocks forced =
        selection::reference(problem, selection, c.inputs(), none.data());

    // The masses are compared with float64. The masses of every query add up to 1.
    const Reference oracle = oracle_of(c, selection, &kept);
    for (std::int64_t head = 0; head < 4; ++head) {
      for (std::int64_t row = 0; row < rows; ++row) {
        double expected = 0;
        double sum = 0;
        for (std::int64_t i = row * 24; i < std::min<std::int64_t>(150, (row + 1) * 24); ++i) {
          expected += oracle.l[static_cast<std::size_t>(head * 150 + i)] > 0;
        }
        for (std::int64_t column = 0; column < columns; ++column) {
          const std::size_t at = kept.at(0, head, row, column);
          if (!kept.chosen[at]) CHECK(mass[at] == 0);
          sum += static_cast<double>(mass[at]) / 4294967296.0;
        }
        CHECK(sum == doctest::Approx(expected).epsilon(2e-4));
      }
    }
    if (step == 0 && device().info().simulated) {
      for (std::uint64_t seed = 1; seed <= 2; ++seed) {
        SimulationOptions simulation;
        simulation.seed = seed;
        device().set_simulation(simulation);
        const DeviceMemory again = store(std::vector<std::byte>(tracker.state_bytes()));
        tracker.measure(nullptr, memory.operands(), indices, again.data(), workspace.data());
        CHECK(fetch<std::uint64_t>(again) == mass);
      }
      device().set_simulation({});
    }

    tracker.update(nullptr, memory.operands(), indices, state.data(), workspace.data());
    const std::vector<std::int32_t> updated = fetch<std::int32_t>(list);
    std::vector<std::int32_t> expected;
    for (std::size_t line = 0; line < static_cast<std::size_t>(4 * rows); ++line) {
      const std::size_t begin = line * static_cast<std::size_t>(columns);
      std::vector<bool> of_kept(kept.chosen.begin() + static_cast<std::ptrdiff_t>(begin),
                                kept.chosen.begin() + static_cast<std::ptrdiff_t>(begin) + columns);
      const std::vector<bool> of_forced(
          forced.chosen.begin() + static_cast<std::ptrdiff_t>(begin),
          forced.chosen.begin() + static_cast<std::ptrdiff_t>(begin) + columns);
      update({scored.scores.data() + begin, scored.visible.data() + begin, mass.data() + begin,
              columns},
             4, options, of_forced, &of_kept);
      const std::size_t end = expected.size() + 4;
      for (std::size_t j = 0; j < of_kept.size(); ++j) {
        if (of_kept[j] && !of_forced[j]) expected.push_back(static_cast<std::int32_t>(j));
      }
      expected.resize(end, -1);
    }
    CHECK(updated == expected);
    for (std::size_t i = 0; i < given.size(); i += 8) {  // rows that were full
      for (std::size_t j = i; j < i + 4; ++j) {
        dropped += std::find(updated.begin() + static_cast<std::ptrdiff_t>(i),
                             updated.begin() + static_cast<std::ptrdiff_t>(i) + 4,
                             given[j]) == updated.begin() + static_cast<std::ptrdiff_t>(i) + 4;
      }
    }
    changed += updated != given;
    given = updated;
    const std::vector<std::uint64_t> after = fetch<std::uint64_t>(state);
    CHECK(std::all_of(after.begin(), after.end(), [](std::uint64_t m) { return m == 0; }));
  }
  CHECK(changed >= 2);
  CHECK(dropped > 10);
}

TEST_CASE("a mass is that of its own block") {
  // There is one dense head, and the keys are zero except for one block, so the block's share is
  // known.
  Problem problem = problem_of(64, 256, 64, 64, dense());
  Case c = test::make_case(problem, 33);
  std::fill(c.k.bits.begin(), c.k.bits.end(), std::uint16_t{0});
  Selection selection;
  selection.block_rows = 64;
  selection.block_columns = 32;
  selection.rule = SelectionRule::kGiven;
  selection.max_blocks = 4;
  selection.sink_blocks = selection.diagonal_blocks = 0;
  const ImportanceTracker tracker(device(), problem, selection);
  const Plan plan = device().plan(problem, selection);
  DeviceCase memory(device(), c);
  const DeviceMemory workspace =
      device().allocate(std::max(plan.workspace_bytes(), tracker.workspace_bytes()));
  const DeviceMemory list = store(std::vector<std::int32_t>{1, 4, 6, 7});
  const DeviceMemory state = store(std::vector<std::byte>(tracker.state_bytes()));
  SelectionBuffers buffers;
  buffers.given = static_cast<const std::int32_t*>(list.data());
  plan.run(nullptr, memory.operands(), workspace.data(), buffers);
  for (int turn = 1; turn <= 2; ++turn) {
    tracker.measure(nullptr, memory.operands(), buffers.given, state.data(), workspace.data());
    const std::vector<std::uint64_t> mass = fetch<std::uint64_t>(state);
    for (std::size_t j = 0; j < 8; ++j) {
      const bool kept = j == 1 || j == 4 || j == 6 || j == 7;
      CHECK(static_cast<double>(mass[j]) / 4294967296.0 ==
            doctest::Approx(kept ? 16.0 * turn : 0.0).epsilon(1e-4));
    }
  }
}

TEST_CASE("rows that see no key have no mass") {
  // The first 64 queries come before all keys. They are a tile row without tiles.
  Problem problem = problem_of(192, 256, 64, 64, causal());
  problem.q0 = -64;
  const Case c = test::make_case(problem, 34);
  Selection selection;
  selection.block_rows = selection.block_columns = 64;
  selection.rule = SelectionRule::kGiven;
  selection.max_blocks = 4;
  const ImportanceTracker tracker(device(), problem, selection);
  const Plan plan = device().plan(problem, selection);
  DeviceCase memory(device(), c);
  const DeviceMemory workspace =
      device().allocate(std::max(plan.workspace_bytes(), tracker.workspace_bytes()));
  const DeviceMemory list = store(std::vector<std::int32_t>(12, -1));
  const DeviceMemory state = store(std::vector<std::byte>(tracker.state_bytes()));
  SelectionBuffers buffers;
  buffers.given = static_cast<const std::int32_t*>(list.data());
  plan.run(nullptr, memory.operands(), workspace.data(), buffers);
  tracker.measure(nullptr, memory.operands(), buffers.given, state.data(), workspace.data());
  device().synchronize();
  const std::vector<std::uint64_t> mass = fetch<std::uint64_t>(state);
  for (std::size_t row = 0; row < 3; ++row) {
    double sum = 0;
    for (std::size_t j = 0; j < 4; ++j) sum += static_cast<double>(mass[4 * row + j]);
    CHECK(sum / 4294967296.0 == doctest::Approx(row == 0 ? 0.0 : 64.0).epsilon(2e-4));
  }
}

TEST_CASE("what cannot be tracked or judged is refused") {
  Problem problem = problem_of(64, 64, 64, 64, dense());
  Selection selection;
  selection.rule = SelectionRule::kGiven;
  selection.max_blocks = 2;
  CHECK_NOTHROW(ImportanceTracker(device(), problem, selection));
  const auto refused = [&](auto change) {
    Problem p = problem;
    Selection s = selection;
    TrackerOptions o;
    change(p, s, o);
    CHECK_THROWS_AS(ImportanceTracker(device(), p, s, o), Error);
  };
  refused([](Problem& p, Selection&, TrackerOptions&) { p.want_lse = false; });
  refused([](Problem&, Selection& s, TrackerOptions&) { s.rule = SelectionRule::kTopK; });
  refused([](Problem&, Selection& s, TrackerOptions&) { s.block_rows = 20; });
  refused([](Problem&, Selection& s, TrackerOptions&) { s.pool = Pool::kAntidiagonal; });
  refused([](Problem&, Selection&, TrackerOptions& o) { o.max_added = -1; });
  Problem without = problem;
  without.want_lse = false;
  CHECK_THROWS_AS(RecallMeter(device(), without), Error);
}

template <typename Run>
void refused_operands(const Run& run) {
  device().counters(true);
  try {
    run();
    FAIL_CHECK("nothing was thrown");
  } catch (const Error& error) {
    CHECK_MESSAGE(error.code() == ErrorCode::kInvalidArgument, error.what());
  }
  if (device().info().simulated) CHECK(device().counters()[0].second == 0);
}

TEST_CASE("operands that cannot be measured are refused before a launch") {
  Problem problem = problem_of(64, 64, 64, 64, dense());
  Selection selection;
  selection.rule = SelectionRule::kGiven;
  selection.max_blocks = 2;
  const Case c = test::make_case(problem, 1);
  DeviceCase memory(device(), c);
  const ImportanceTracker tracker(device(), problem, selection);
  const DeviceMemory state = device().allocate(tracker.state_bytes());
  const DeviceMemory workspace = device().allocate(tracker.workspace_bytes());
  const DeviceMemory given = device().allocate(2 * sizeof(std::int32_t));
  auto* const blocks = static_cast<std::int32_t*>(given.data());
  void (*const changes[])(Operands&) = {
      [](Operands& operands) { operands.q = nullptr; },
      [](Operands& operands) { operands.k = nullptr; },
      [](Operands& operands) { operands.k = static_cast<const char*>(operands.k) + 2; },
      [](Operands& operands) { operands.q_strides.row += 1; },
      [](Operands& operands) { operands.k_strides.row = INT64_MIN; },
      [](Operands& operands) { operands.lse = nullptr; }};
  for (const auto& change : changes) {
    CAPTURE(&change - changes);
    Operands operands = memory.operands();
    change(operands);
    refused_operands(
        [&] { tracker.measure(nullptr, operands, blocks, state.data(), workspace.data()); });
    refused_operands(
        [&] { tracker.update(nullptr, operands, blocks, state.data(), workspace.data()); });
  }
  const RecallMeter meter(device(), problem);
  const DeviceMemory own = device().allocate(meter.workspace_bytes() + 16);
  const DeviceMemory recall = device().allocate(65 * sizeof(float));
  auto* const shares = static_cast<float*>(recall.data());
  refused_operands(
      [&] { meter.run(nullptr, memory.operands(), shares, static_cast<char*>(own.data()) + 4); });
  refused_operands([&] {
    auto* const between = reinterpret_cast<float*>(static_cast<char*>(recall.data()) + 2);
    meter.run(nullptr, memory.operands(), between, own.data());
  });
  refused_operands([&] { meter.run(nullptr, memory.operands(), nullptr, own.data()); });
}

}  // namespace
