// Patterns and scores through the public interface. Each constructor must mean the same as its
// text.
#include <array>

#include "annulus/pattern.h"
#include "annulus/problem.h"
#include "annulus/score.h"
#include "annulus/types.h"
#include "outside/outside.h"

namespace {

using namespace annulus;

BlockLayout lower_triangle() {
  BlockLayout layout;
  layout.block_rows = layout.block_columns = 16;
  layout.seq_q = layout.seq_k = 32;
  layout.indptr = {0, 1, 3};
  layout.indices = {0, 0, 1};
  return layout;
}

TEST_CASE("every constructor of a pattern says what its text says") {
  const std::array<std::int64_t, 2> starts = {0, 40};
  const std::array<std::int64_t, 2> columns = {1, 9}, slashes = {0, 17};
  const std::array<HierarchyLevel, 1> levels = {HierarchyLevel{2, 3, 16}};
  const std::array<Pattern, 2> two = {dense(), causal()};
  const std::pair<Pattern, const char*> same[] = {
      {Pattern(), "dense"},
      {dense(), "dense"},
      {causal(), "causal"},
      {window(31, 2), "window(31,2)"},
      {sink(4), "sink(4)"},
      {prefix(7), "prefix(7)"},
      {global(3), "global(3)"},
      {global({1, 9}), "global([1,9])"},
      {global(columns), "global([1,9])"},
      {documents({0, 40}), "documents([0,40])"},
      {documents(starts), "documents([0,40])"},
      {dilated(3), "dilated(3)"},
      {block_dilated(2, 16), "block_dilated(2,16)"},
      {strided(4, 3, 16), "strided(4,3,16)"},
      {random(2, 1, 32), "random(2,1,32)"},
      {segment(64, 2), "segment(64,2)"},
      {axial(8, 16), "axial(8,16)"},
      {natten(8, 8, 3), "natten(8,8,3)"},
      {queries(0, 9), "queries(0,9)"},
      {keys(-4, 90), "keys(-4,90)"},
      {every(5, 3), "every(5,3)"},
      {head_groups(2, {causal(), dense()}), "head_groups(2,causal,dense)"},
      {head_groups(2, two), "head_groups(2,dense,causal)"},
      {vertical_slash({1, 9}, {0, 17}), "vertical_slash([1,9],[0,17])"},
      {vertical_slash(columns, slashes), "vertical_slash([1,9],[0,17])"},
      {hierarchical({{2, 3, 16}}), "hierarchical([(2,3,16)])"},
      {hierarchical(levels), "hierarchical([(2,3,16)])"},
      {heads({dense(), causal()}), "heads(dense, causal)"},
      {heads(two), "heads(dense, causal)"},
      {batches({dense(), causal()}), "batches(dense, causal)"},
      {batches(two), "batches(dense, causal)"},
      {sum({dense(), causal()}), "sum(dense, causal)"},
      {sum(two), "sum(dense, causal)"},
      {causal() & (window(3, 0) | ~sink(2)), "causal & (window(3,0) | ~sink(2))"},
      {preset("bigbird"), "preset(bigbird)"},
  };
  for (const auto& [made, text] : same) {
    CAPTURE(text);
    const Pattern parsed = Pattern::parse(text);
    CHECK(made == parsed);
    CHECK(Pattern::parse(made.to_string()) == made);
    for (std::int64_t q = 0; q < 64; q += 7) {
      for (std::int64_t k = 0; k < 64; k += 5) {
        if (made.branches().size() > 1) continue;
        CHECK(made.visible(0, q, k, {64, 0, 1}) == parsed.visible(0, q, k, {64, 0, 1}));
      }
    }
  }

  CHECK(heads({dense(), causal()}).distinct_heads(8) == 2);
  CHECK(batches({dense(), causal()}).batches() == 2);
  CHECK(batches({dense(), causal()}).distinct_batches(1) == 1);
  CHECK(batches({dense(), causal()}).of_batch(3) == causal());
  CHECK(sum({dense(), causal()}).branches().size() == 2);
  REQUIRE(!pattern_words().empty());
  CHECK(pattern_words()[0].form == "dense");
  REQUIRE(!presets().empty());
  CHECK(preset(presets()[0].name) == Pattern::parse(presets()[0].expression));
}

TEST_CASE("a block layout is a pattern, from memory, from a file and in a text") {
  const test::ScratchFolder scratch;
  const BlockLayout layout = lower_triangle();
  REQUIRE_NOTHROW(layout.validate());
  CHECK(layout.rows() == 2);
  CHECK(layout.columns() == 2);
  CHECK(layout.row(0, 1).size() == 2);
  CHECK(block_density(layout).value == doctest::Approx(0.75));
  const std::string path = scratch.path("triangle.layout");
  save_layout(layout, path);
  CHECK(load_layout(path) == layout);
  const auto shared = std::make_shared<const BlockLayout>(layout);
  for (const Pattern& pattern :
       {blocks(layout), blocks(shared), blocks(path), Pattern::parse("blocks()", shared),
        blocks(layout, OutsideLayout::kHidden), blocks(shared, OutsideLayout::kHidden),
        blocks(path, OutsideLayout::kHidden)}) {
    CHECK(pattern.visible(0, 20, 3));
    CHECK_FALSE(pattern.visible(0, 3, 20));
  }
  BlockLayout of_heads = layout;
  of_heads.heads = 2;
  of_heads.indptr = {0, 1, 3, 4, 6};
  of_heads.indices = {0, 0, 1, 0, 0, 1};
  CHECK(blocks(of_heads).heads() == 2);
  BlockLayout wrong = layout;
  wrong.indices.back() = 7;
  test::check_fails(ErrorCode::kInvalidArgument, "7", [&] { wrong.validate(); });
}

TEST_CASE("score expressions are made of operators or of text") {
  const ScoreVariables at = score_variables();
  const ScoreTable slopes = ScoreTable::reals({0.5, 0.25});
  const ScoreTable codes = ScoreTable::integers({0, 1, 1, 0}, 2);
  const ScoreExpression made =
      where(eq(codes(mod(at.q, ScoreExpression(2)), at.k - at.k), ScoreExpression(0)),
            at.score * ScoreExpression(0.5) + slopes(at.h) * (at.k - at.q), at.score);
  CHECK(ScoreExpression::parse(made.to_string()) == made);
  CHECK(ScoreExpression() == at.score);
  Score score;
  score.score_mod = at.score + ScoreExpression(1);
  CHECK(Score::parse(score.to_string()) == score);
  test::check_fails(ErrorCode::kParse, "column", [] { Score::parse("softcap("); });
}

TEST_CASE("problems are checked, and say what follows from them") {
  Problem problem;
  problem.seq_q = 10, problem.seq_k = 30;
  problem.dim_qk = problem.dim_v = 64;
  REQUIRE_NOTHROW(validate(problem));
  CHECK(problem.effective_scale() == doctest::Approx(0.125));
  CHECK(problem.context().seq_k == 30);
  const std::vector<HeadDims> dims = supported_dims();
  CHECK(std::find(dims.begin(), dims.end(), HeadDims{192, 128}) != dims.end());
  for (const HeadDims& each : dims) {
    problem.dim_qk = each.qk, problem.dim_v = each.v;
    REQUIRE_NOTHROW(validate(problem));
  }
  problem.dim_v = 7;
  test::check_fails(ErrorCode::kUnsupported, "7", [&] { validate(problem); });
}

TEST_CASE("a pattern of somebody else has a limit and names no file") {
  const ParseOptions options = {.allow_files = false, .work = {.steps = 1'000'000}};
  Problem problem;
  problem.pattern = Pattern::parse("causal & strided(8, 4, 64)", options);
  test::check_fails(ErrorCode::kParse, "names a file",
                    [&] { Pattern::parse("blocks(\"/etc/passwd\")", options); });
  problem.seq_q = problem.seq_k = kMaxPosition;
  problem.dim_qk = problem.dim_v = 64;
  test::check_fails(ErrorCode::kLimit, "1000000 steps",
                    [&] { pair_density(problem, {.steps = 1'000'000}); });
  const WorkLimit ended = {.steps = 0, .cancelled = [] { return true; }};
  test::check_fails(ErrorCode::kCancelled, "cancelled", [&] { pair_density(problem, ended); });
}

TEST_CASE("enumerators have names") {
  CHECK(std::string(to_string(Dtype::kFloat8E4M3)) == "e4m3");
  CHECK(std::string(to_string(LseBase::kTwo)) == "two");
  CHECK(std::string(to_string(ErrorCode::kParse)) == "parse error");
  CHECK(std::string(to_string(ErrorCode::kCancelled)) == "cancelled");
}

}  // namespace
