#include "autotune/stand_in.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "autotune/tuner.h"
#include "pattern/classify.h"
#include "pattern/node.h"
#include "selection/selection_plan.h"
#include "tuned/gpus.h"
#include "tuned/shape_key.h"

namespace annulus::autotune {
namespace {

Problem problem() {
  Problem made;
  made.heads = 8;
  made.kv_heads = 2;
  made.seq_q = made.seq_k = 2048;
  made.dim_qk = made.dim_v = 64;
  made.pattern = causal();
  return made;
}

Selection selection(std::int64_t most, std::int64_t rows = 128, std::int64_t columns = 64) {
  Selection made;
  made.block_rows = rows;
  made.block_columns = columns;
  made.max_blocks = most;
  return made;
}

// Valid as long as the problem. Null if its pattern has no layout.
const BlockLayout* layout_of(const Problem& problem) {
  const BlockLayout* layout = nullptr;
  pattern::any_leaf(problem.pattern.node(), [&](const pattern::leaves::Structure& leaf) {
    if (leaf.layout != nullptr) layout = leaf.layout;
    return false;
  });
  return layout;
}

TEST_CASE("a stand-in keeps what a run always keeps, and as many blocks as a row may have") {
  const Problem whole = problem();
  const Selection chosen = selection(5);
  const Problem made = stand_in(whole, chosen, 7);
  validate(made);
  const BlockLayout* const layout = layout_of(made);
  REQUIRE(layout);
  layout->validate();
  CHECK(layout->heads == 8);
  std::set<std::vector<std::int32_t>> rows;
  for (std::int64_t head = 0; head < layout->heads; ++head) {
    for (std::int64_t row = 0; row < layout->rows(); ++row) {
      const auto kept = layout->row(head, row);
      const std::int64_t seen = 2 * (row + 1);  // blocks of 64 keys up to the diagonal
      CHECK(static_cast<std::int64_t>(kept.size()) == std::min<std::int64_t>(5, seen));
      CHECK(kept.front() == 0);
      CHECK(kept.back() == seen - 1);
      rows.insert({kept.begin(), kept.end()});
    }
  }
  CHECK(rows.size() > 60);  // most of the 128 rows differ
  CHECK(stand_in(whole, chosen, 7).pattern == made.pattern);
  CHECK(stand_in(whole, chosen, 8).pattern != made.pattern);

  const Problem small = small_stand_in(whole, chosen, 7);
  validate(small);
  CHECK(small.kv_heads == 1);
  CHECK(small.heads == 4);
  Problem many = whole;
  many.heads = many.kv_heads = 64;
  const Problem alike = stand_in(many, chosen, 7);
  CHECK(layout_of(alike)->heads == 16);
  many.pattern = heads({window(100, 0), causal(), causal()});
  const Problem unlike = stand_in(many, chosen, 7);
  CHECK(layout_of(unlike)->heads == 18);  // each of the three layouts six times
}

TEST_CASE("a stand-in of many small blocks takes time and memory for those that it keeps") {
  Problem whole = problem();
  whole.heads = whole.kv_heads = 64;
  whole.seq_q = whole.seq_k = 32768;
  const Problem made = stand_in(whole, selection(8, 16, 16), 7);
  const BlockLayout* const layout = layout_of(made);
  REQUIRE(layout);
  CHECK(layout->heads == 16);
  CHECK(layout->row(3, 0).size() == 1);
  CHECK(layout->row(3, 5).size() == 6);
  CHECK(layout->row(3, 2047).size() == 8);
  // All blocks of all rows of sixteen heads would be 2^25 blocks.
  const Problem all = stand_in(whole, selection(4096, 16, 16), 7);
  CHECK(layout_of(all)->heads == 4);
  CHECK(layout_of(all)->row(3, 2047).size() == 2048);
}

TEST_CASE("how many blocks a row may have follows from the rule") {
  Selection chosen = selection(5);
  CHECK(tuned::blocks_of_row(chosen) == 5);
  chosen.sink_blocks = 8;
  CHECK(tuned::blocks_of_row(chosen) == 9);
  chosen.rule = SelectionRule::kGiven;
  CHECK(tuned::blocks_of_row(chosen) == 14);
  chosen = selection(0);
  chosen.rule = SelectionRule::kTopP;
  CHECK(tuned::blocks_of_row(chosen) == 16);
}

TEST_CASE("the key of chosen blocks has their size, and the share that rows may keep") {
  const tuned::ShapeKey key = tuned::shape_key(problem(), selection(8));
  CHECK(tuned::kind_text(key) == "D64 bf16, chosen blocks of 128 x 64, about 0.25 of the blocks");
  CHECK(tuned::shape_key(problem(), selection(8)) == key);
  for (const tuned::ShapeKey& other :
       {tuned::shape_key(problem(), selection(2)), tuned::shape_key(problem()),
        tuned::shape_key(problem(), selection(8, 64, 64)),
        tuned::shape_key(problem(), selection(8, 128, 128))}) {
    CHECK(other != key);
    CHECK(digest(other) != digest(key));
    CHECK(to_string(other) != to_string(key));
  }
  // A look-up must not classify all rows of a plan, which would take seconds here.
  Problem longest = problem();
  longest.heads = longest.kv_heads = 32;
  longest.seq_q = longest.seq_k = 1 << 20;
  std::vector<Pattern> windows;
  for (int head = 0; head < 32; ++head) windows.push_back(window(100 + 37 * head, 0) | sink(1));
  longest.pattern = heads(windows);
  CHECK(tuned::shape_key(longest, selection(4, 8, 64)).density == 24);
  longest.pattern = causal();
  CHECK(tuned::shape_key(longest, selection(1 << 20, 64, 64)).density == 2);
  // A row keeps no more blocks than it sees.
  CHECK(tuned::shape_key(problem(), selection(1000)).density == 2);
}

TEST_CASE("candidates for chosen blocks are those that a selection can be planned with") {
  const attention::DeviceLimits hopper = test::limits_of_gpu(90);
  const Selection chosen = selection(8);
  const Target target = target_of(problem(), chosen, hopper, 0);
  CHECK(target.standard == selection::choose_config(problem(), chosen, hopper).config);
  const auto made = candidates_of(target, hopper, attention::pipe_device(test::gpu(90)), true,
                                  [] { return false; });
  REQUIRE(made);
  CHECK(made->trials.size() > 20);
  for (const tuned::Trial& trial : made->trials) {
    CHECK_NOTHROW(
        selection::make_plan(problem(), chosen, {trial.config, "a candidate", {}}, hopper));
  }
}

}  // namespace
}  // namespace annulus::autotune
