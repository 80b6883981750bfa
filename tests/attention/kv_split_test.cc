// Which rows are split, and into which parts.

#include "attention/tiles/kv_split.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "attention/plan/choose_split.h"
#include "attention/plan/plan.h"
#include "attention/plan/predict_plan.h"
#include "attention/tiles/tile_counts.h"

namespace annulus::attention {
namespace {

const DeviceLimits kA100 = {{80, '\0'}, 108, 163 * 1024};
const DeviceLimits kH100 = {{90, 'a'}, 132, 227 * 1024};

Problem problem_of(std::int64_t seq_q, std::int64_t seq_k, const char* pattern) {
  Problem problem;
  problem.heads = 8;
  problem.kv_heads = 2;
  problem.seq_q = seq_q;
  problem.seq_k = seq_k;
  problem.dim_qk = problem.dim_v = 128;
  problem.pattern = Pattern::parse(pattern);
  return problem;
}

LaunchPlan plan_of(const Problem& problem, const DeviceLimits& limits, int parts = 0) {
  return make_plan(problem, choose_config(problem, limits), limits, {.kv_splits = parts});
}

TEST_CASE("parts are every tile of a row once, in order, and no longer than asked") {
  for (const char* pattern : {"causal", "window(63,0) | global(8)", "heads(causal, sink(900))",
                              "strided(3,1,64)", "causal & ~window(800,0)"}) {
    const TileList tiles = make_tile_list(problem_of(900, 1500, pattern), 64, 64, nullptr);
    for (const std::int64_t step : {1, 2}) {
      for (const std::int64_t most : {2, 5, 8, 100}) {
        CAPTURE(pattern);
        CAPTURE(most);
        const KvSplit split = kv_splits(tiles, most, step);
        if (split.empty()) {
          CHECK(tiles.longest_row <= most / step * step);
          continue;
        }
        for (std::int64_t which = 0; which < tiles.lists; ++which) {
          const kernels::RowSegment* const first =
              split.segments.data() + which * split.segment_count;
          const std::vector<kernels::RowSegment> segments(first, first + split.segment_count);
          const kernels::MergedRow* const merged = split.merged.data() + which * split.merged_count;
          for (std::int64_t row = 0; row < tiles.row_tiles; ++row) {
            std::vector<kernels::RowSegment> of_row;
            for (const kernels::RowSegment& segment : segments) {
              if (segment.row == row) of_row.push_back(segment);
            }
            std::ranges::sort(of_row, {}, &kernels::RowSegment::first);
            int next = 0;
            for (const kernels::RowSegment& segment : of_row) {
              CHECK(segment.first == next);
              CHECK(segment.first % step == 0);
              CHECK(segment.count <= most);
              next += segment.count;
            }
            CHECK(next == tiles.row_length(which, row));
            if (of_row.size() == 1) {
              CHECK(of_row[0].slot == -1);
              continue;
            }
            bool found = false;
            for (std::int64_t i = 0; i < split.merged_count; ++i) {
              if (merged[i].slots == 0 || merged[i].row != row) continue;
              found = true;
              REQUIRE(merged[i].slots == static_cast<int>(of_row.size()));
              for (int part = 0; part < merged[i].slots; ++part) {
                CHECK(of_row[static_cast<std::size_t>(part)].slot == merged[i].first_slot + part);
              }
              CHECK(merged[i].first_slot + merged[i].slots <= split.slots);
            }
            CHECK(found);
          }
        }
      }
    }
  }
}

TEST_CASE("rows are split where multiprocessors would be idle, and the plan says so") {
  const auto says = [](const LaunchPlan& plan, const std::string& part) {
    return std::ranges::any_of(plan.decisions, [&](const std::string& line) {
      return line.find(part) != std::string::npos;
    });
  };
  for (const DeviceLimits& limits : {kA100, kH100}) {
    // A few queries with a long context.
    const LaunchPlan decode = plan_of(problem_of(16, 131072, "dense"), limits);
    CHECK_FALSE(decode.split.empty());
    CHECK(decode.workspace_bytes > 0);
    CHECK(says(decode, "long tile rows: split into"));
    CHECK(says(decode, "joins in their order"));
    const LaunchPlan whole = plan_of(problem_of(16, 131072, "dense"), limits, 1);
    CHECK(whole.split.empty());
    CHECK(whole.workspace_bytes == 0);
    const PipeDevice device = pipe_device(limits);
    CHECK(predict(device, decode).predicted_cycles < predict(device, whole).predicted_cycles / 3);
    // One row is a hundred times as long as the others.
    CHECK_FALSE(
        plan_of(problem_of(65536, 65536, "window(255,0) | global(16)"), limits).split.empty());
    // There are enough rows, or rows so short that a second launch would take longer.
    CHECK(plan_of(problem_of(16384, 16384, "dense"), limits).split.empty());
    CHECK(plan_of(problem_of(16384, 16384, "causal"), limits).split.empty());
    CHECK(plan_of(problem_of(300, 300, "dense"), limits).split.empty());
    CHECK(plan_of(problem_of(0, 600, "dense"), limits).split.empty());
    CHECK(plan_of(problem_of(std::int64_t{1} << 30, std::int64_t{1} << 30, "causal"), limits)
              .split.empty());
  }
}

TEST_CASE("forced parts are taken as they are") {
  const LaunchPlan plan = plan_of(problem_of(64, 1024, "dense"), kA100, 4);
  REQUIRE_FALSE(plan.split.empty());
  CHECK(plan.split.slots == 4);
  CHECK(plan.split.merged_count == plan.tiles->row_tiles);
  CHECK(jit::source_text(plan.spec).find("kSplit = true") != std::string::npos);
  CHECK(plan.workspace_bytes == 8 * 4 * plan.tiles->tile_rows * (128 + 2) * 4);
  const TileCounts counts = count_parts(*plan.tiles, plan.split, plan.problem);
  CHECK(counts.tiles() == count_tiles(plan).tiles());
  CHECK(counts.ctas == plan.split.segment_count * 8);
}

}  // namespace
}  // namespace annulus::attention
