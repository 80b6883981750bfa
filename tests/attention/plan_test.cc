#include "attention/plan/plan.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "annulus/types.h"
#include "attention/kernels/family.h"
#include "attention/tiles/pattern_facts.h"
#include "base/random.h"

namespace {

using namespace annulus;
using attention::Choice;
using attention::DeviceLimits;
using attention::LaunchPlan;

const DeviceLimits kA100 = {{80, '\0'}, 108, 163 * 1024};
const DeviceLimits kH100 = {{90, 'a'}, 132, 227 * 1024};
// Rows with three segments, for which every kernel reads positions row by row.
const attention::Segments kThreeSegments = {.most = 3};
const DeviceLimits kRtx = {{86, '\0'}, 82, 99 * 1024};

Problem problem_of(std::int64_t dim_qk, std::int64_t dim_v, std::int64_t seq) {
  Problem problem;
  problem.batch = 2;
  problem.heads = 16;
  problem.kv_heads = 4;
  problem.seq_q = problem.seq_k = seq;
  problem.dim_qk = dim_qk;
  problem.dim_v = dim_v;
  problem.pattern = causal();
  return problem;
}

LaunchPlan plan_of(const Problem& problem, const DeviceLimits& limits = kA100) {
  validate(problem);
  return attention::make_plan(problem, attention::choose_config(problem, limits), limits);
}

bool says(const std::vector<std::string>& lines, const std::string& part) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& line) { return line.find(part) != std::string::npos; });
}

TEST_CASE("every supported head dim has a configuration on large and small devices") {
  for (const attention::Dims& dims : attention::supported_dims()) {
    for (const DeviceLimits& limits : {kA100, kRtx}) {
      for (const std::int64_t seq : {1, 60, 1000}) {
        const Problem problem = problem_of(dims.qk, dims.v, seq);
        const Choice choice = attention::choose_config(problem, limits);
        CHECK(attention::shared_bytes(choice.config, dims) <= limits.shared_bytes_per_block);
        CHECK_FALSE(choice.reason.empty());
        std::size_t of_dims = 0;
        for (const attention::ShippedConfig& shipped : attention::shipped_configs()) {
          of_dims += shipped.dims.qk == dims.qk && shipped.dims.v == dims.v &&
                     !attention::why_not(shipped.config, problem.dtype);
        }
        CHECK(of_dims >= 2);
        // Each of the other configurations, with a reason.
        CHECK(choice.rejected.size() == of_dims - 1);
        for (const attention::Rejected& rejected : choice.rejected) {
          CHECK_FALSE(rejected.reason.empty());
          CHECK_FALSE(rejected.config == choice.config);
        }
      }
    }
  }
}

TEST_CASE("few rows or few CTAs take a lower tile") {
  Problem problem = problem_of(128, 128, 4096);
  const Choice large = attention::choose_config(problem, kA100);
  problem.seq_q = 16;
  const Choice small = attention::choose_config(problem, kA100);
  CHECK(small.config.tile_rows < large.config.tile_rows);
  problem = problem_of(128, 128, 512);
  problem.batch = 1;
  problem.heads = problem.kv_heads = 4;  // 16 CTAs of 128 rows for 108 multiprocessors
  const Choice few = attention::choose_config(problem, kA100);
  CHECK(few.config.tile_rows < large.config.tile_rows);
  CHECK(few.reason.find("the fastest of") != std::string::npos);

  // This also applies on Hopper, among tiles of the wgmma family. It does not apply if one
  // multiprocessor would still compute as many rows as before.
  const auto config_of = [](const Problem& of) {
    return attention::to_string(attention::choose_config(of, kH100).config);
  };
  CHECK(config_of(problem) == "wgmma m64 n64 w4 s2 b2");
  problem.heads = problem.kv_heads = 32;  // 128 CTAs of 128 rows for 132 multiprocessors
  CHECK(config_of(problem) == "wgmma m128 n128 w8 s2");

  // One query: heads that share K and V read them only once.
  problem = problem_of(128, 128, 4096);  // 16 heads, 4 of K and V
  problem.seq_q = 1;
  problem.batch = 64;
  CHECK(config_of(problem) == "wgmma m64 n64 w8 s2 b2 h2");
  problem.kv_heads = 16;
  CHECK(attention::cta_shape(attention::choose_config(problem, kH100).config).packed_heads() == 1);
}

TEST_CASE("Hopper takes the wgmma family, and the tile that fits the pattern's blocks") {
  const auto config_of = [](const Problem& problem) {
    return attention::to_string(attention::choose_config(problem, kH100).config);
  };
  Problem problem = problem_of(128, 128, 16384);  // 16 heads, 4 of K and V
  CHECK(config_of(problem) == "wgmma m128 n128 w8 s2");
  problem.pattern = causal() & strided(8, 2, 64);
  CHECK(config_of(problem) == "wgmma m64 n64 w8 s2 b2 h2");
  problem.kv_heads = 16;  // no two heads share K and V
  CHECK(config_of(problem) == "wgmma m128 n64 w8 s2 b2");
  problem.kv_heads = 4;
  problem.pattern = causal() & random(3, 1, 64);  // every head sees different blocks
  CHECK(config_of(problem) == "wgmma m64 n64 w4 s2 q x2");
  problem.pattern = causal() & random(3, 1, 96);
  CHECK(config_of(problem) == "wgmma m64 n48 w4 s2 q b2 x2");
  problem.pattern = causal() & strided(8, 2, 128);  // the blocks are finer near the diagonal
  CHECK(config_of(problem) == "wgmma m64 n64 w8 s2 b2 h2");
  problem.pattern = strided(8, 2, 256);
  CHECK(config_of(problem) == "wgmma m128 n128 w8 s2");
  problem = problem_of(192, 192, 4096);
  CHECK(config_of(problem) == "wgmma m128 n96 w8 s2");
  problem.pattern = strided(8, 2, 64);
  CHECK(config_of(problem) == "wgmma m128 n64 w8 s2");
  CHECK(config_of(problem_of(32, 32, 4096)).starts_with("mma "));
  problem = problem_of(64, 64, 16384);
  CHECK(config_of(problem) == "wgmma m128 n128 w8 s2 q");
  CHECK(attention::to_string(attention::choose_config(problem, kH100, {}, kThreeSegments).config) ==
        "wgmma m128 n128 w8 s2 q");
  problem.pattern = causal() & strided(8, 2, 64);
  CHECK(config_of(problem) == "wgmma m64 n64 w8 s2 q b2 h2");
  // There are too few rows for two tiles of 128 rows on each multiprocessor.
  problem = problem_of(64, 64, 2048);
  CHECK(attention::choose_config(problem, kH100).config.tile_rows == 64);
  // sm_90 without the features of sm_90a has the same limits, but no wgmma.
  const DeviceLimits plain = {{90, '\0'}, 132, 227 * 1024};
  CHECK(attention::choose_config(problem, plain).config.family == &attention::mma_family);
}

// The shards of a zigzag ring: a band in two segments allows the same tiles as a band in one
// segment. With more segments it does not.
TEST_CASE("two segments take the tiles that one takes, several those that read positions") {
  const auto taken = [](const Problem& problem, const attention::Segments& segments) {
    return attention::choose_config(problem, kH100, {}, segments);
  };
  const auto suits = [&](const char* config, const Problem& problem,
                         const attention::Segments& segments) {
    const attention::KernelConfig wide = *attention::parse_config(config);
    return !family_of(wide).why_unsuited(
        wide, {problem, attention::finest_blocks(problem.pattern.node()), kH100.arch,
               attention::positions_for(wide, segments)});
  };
  Problem problem = problem_of(128, 128, 32768);
  problem.pattern = causal();
  const char* const wide = "wgmma m192 n80 w12 s2";
  const char* const widest = "wgmma m128 n176 w8 s2 c2";
  attention::Segments two;
  two.add_q({{0, 16384}, {114688, 16384}});
  two.add_k({{0, 16384}, {114688, 16384}});
  CHECK(to_string(taken(problem, two).config) == to_string(taken(problem, {}).config));
  CHECK(suits(wide, problem, {}));
  CHECK(suits(wide, problem, two));
  CHECK(suits(widest, problem, two));
  CHECK_FALSE(suits(wide, problem, kThreeSegments));
  CHECK_FALSE(suits(widest, problem, kThreeSegments));
  // A box of O would reach into the next segment. In the other cases a segment of Q or of keys
  // would not fill a tile.
  attention::Segments uneven, few_rows, few_keys;
  uneven.add_q({{0, 1000}, {114688, 1000}});
  few_rows.add_q({{0, 128}, {114688, 1024}});
  few_keys.add_k({{0, 1024}, {114688, 79}});
  for (const attention::Segments& segments : {uneven, few_rows, few_keys}) {
    CHECK_FALSE(suits(wide, problem, segments));
  }
  CHECK(attention::positions_for(*attention::parse_config("mma m128 n64 w8 s2"), uneven) ==
        kernels::Positions::kTwoSegments);
}

TEST_CASE("clusters share copies of K and V where their CTAs make the same steps") {
  const auto config_of = [](const Problem& problem) {
    return attention::to_string(attention::choose_config(problem, kH100).config);
  };
  // For these head dims a configuration with clusters of two is preferred to the one without.
  const std::string alone = "wgmma m128 n128 w8 s2", in_twos = alone + " c2";
  Problem problem = problem_of(192, 128, 16384);  // 16 heads, 4 of K and V
  problem.pattern = causal();
  CHECK(config_of(problem) == in_twos);  // heads
  problem.kv_heads = 16;
  CHECK(config_of(problem) == alone);
  problem.pattern = dense();
  CHECK(config_of(problem) == in_twos);  // tile rows
  problem.score.alibi = std::vector<double>(16, 0.5);
  CHECK(config_of(problem) == in_twos);
  const Choice placed = attention::choose_config(problem, kH100, {}, kThreeSegments);
  CHECK(attention::to_string(placed.config) == alone);
  problem.score.alibi.clear();
  problem.batch = 16;
  problem.seq_q = 5 * 128;  // the sixth tile row of the last pair does not exist
  CHECK(config_of(problem) == alone);

  // Blocks whose rows contain whole pairs, different for every head, and blocks that do not.
  problem = problem_of(192, 128, 4096);
  problem.kv_heads = 16;
  problem.pattern = random(3, 1, 256);
  CHECK(config_of(problem) == in_twos);
  problem.seq_q -= 128;
  CHECK(config_of(problem) == alone);
  problem.seq_q += 128;
  problem.q0 = 128;
  CHECK(config_of(problem) == alone);
  problem.q0 = 0;
  problem.pattern = random(3, 1, 128);
  CHECK(config_of(problem) == alone);
  problem.pattern = random(3, 1, 256) & causal();
  CHECK(config_of(problem) == alone);
  BlockLayout everything = {128, 128, 4096, 4096, 1, {0}, {}, {}};
  for (int row = 0; row < 32; ++row) {
    for (int column = 0; column < 32; ++column) everything.indices.push_back(column);
    everything.indptr.push_back(32 * (row + 1));
  }
  problem.pattern = blocks(everything);
  CHECK(config_of(problem) == in_twos);
  everything.indices.pop_back();
  --everything.indptr.back();
  problem.pattern = blocks(everything);
  CHECK(config_of(problem) == alone);

  problem = problem_of(192, 128, 4096);
  problem.pattern = dense();
  const auto plan_of = [&](const Problem& of) {
    return attention::make_plan(of, attention::forced_config(of, kH100, in_twos), kH100);
  };
  CHECK(plan_of(problem).group == attention::WorkGroup{.rows = 1, .heads = 2});
  CHECK(plan_of(problem).shape.grid_x == 132);
  problem.kv_heads = 16;
  problem.seq_q = 3 * 128 - 1;
  problem.batch = 1;
  CHECK(plan_of(problem).group == attention::WorkGroup{.rows = 2, .heads = 1});
  CHECK(plan_of(problem).shape.grid_x == 2 * 2 * 16);
  CHECK(attention::work_count(problem, {2, 1}, plan_of(problem).tiles->row_tiles, 1) == 2 * 16);
  problem.pattern = causal();
  CHECK_THROWS_WITH_AS(plan_of(problem), doctest::Contains("16 query heads for 16 of K and V"),
                       Error);
  // With a list only the pairs decide, whatever the heuristic would have chosen.
  problem.pattern = random(3, 1, 256);
  CHECK_THROWS_WITH_AS(plan_of(problem), doctest::Contains("pairs that see the same keys"), Error);
  problem.seq_q = 4 * 128;
  CHECK(plan_of(problem).group == attention::WorkGroup{.rows = 2, .heads = 1});
  problem.pattern = random(3, 1, 128);
  CHECK_THROWS_AS(plan_of(problem), Error);
}

// A leaf whose edges are at tile edges, or near them.
Pattern coarse_leaf(base::Random* random, const std::shared_ptr<const BlockLayout>& layout) {
  const std::int64_t block = 128 << random->below(3);
  switch (random->below(6)) {
    case 0:
      return dense();
    case 1:
      return strided(4, 1, block);
    case 2:
      return block_dilated(2, block);
    case 3:
      return random->below(4) == 0 ? causal() : annulus::random(3, 2, block);
    default:
      return blocks(layout, OutsideLayout::kHidden);
  }
}

TEST_CASE("what the heuristic chooses can be planned, pairs of tile rows included") {
  base::Random random(77);
  // So that clusters are used for small problems.
  const DeviceLimits small = {{90, 'a'}, 2, 227 * 1024};
  int pairs = 0;
  for (int i = 0; i < 600; ++i) {
    Problem problem;
    problem.heads = problem.kv_heads = 2;
    problem.dim_qk = 192;
    problem.dim_v = 128;
    const auto length = [&] {
      return 128 * (1 + static_cast<std::int64_t>(random.below(12))) -
             (random.below(3) == 0 ? random.below(100) : 0);
    };
    problem.seq_q = length();
    problem.seq_k = length();
    if (random.below(2) == 0) problem.q0 = 128 * static_cast<std::int64_t>(random.below(4));
    if (random.below(4) == 0) problem.k0 = 64 * static_cast<std::int64_t>(random.below(4));
    BlockLayout layout;
    layout.block_rows = 128 << random.below(3);
    layout.block_columns = 64 << random.below(3);
    layout.seq_q = random.below(2) == 0 ? problem.seq_q : length();
    layout.seq_k = random.below(2) == 0 ? problem.seq_k : length();
    layout.heads = 1 + random.below(2);
    layout.indptr = {0};
    const std::uint32_t kept_of_4 = 2 + random.below(3);
    for (std::int64_t row = 0; row < layout.heads * layout.rows(); ++row) {
      for (std::int32_t column = 0; column < layout.columns(); ++column) {
        if (random.below(4) < kept_of_4) layout.indices.push_back(column);
      }
      layout.indptr.push_back(static_cast<std::int64_t>(layout.indices.size()));
    }
    const auto shared = std::make_shared<const BlockLayout>(std::move(layout));
    problem.pattern = coarse_leaf(&random, shared);
    if (random.below(2) == 0) problem.pattern = problem.pattern & coarse_leaf(&random, shared);
    if (random.below(4) == 0) problem.pattern = problem.pattern | coarse_leaf(&random, shared);
    CAPTURE(i);
    CAPTURE(problem.pattern.to_string());
    LaunchPlan plan;
    REQUIRE_NOTHROW(plan = plan_of(problem, small));
    pairs += plan.group.rows == 2 && plan.tiles->tile_order != kernels::TileOrder::kBand;
  }
  CHECK(pairs > 20);
}

TEST_CASE("strides that no tensor map takes leave the mma family, and the reason says so") {
  const Problem problem = problem_of(128, 128, 4096);
  OperandStrides strides;
  strides.q = strides.o = Strides::bshd(4096, 16, 128);
  strides.k = strides.v = Strides::bshd(4096, 4, 128);
  const auto chosen = [&] { return attention::choose_config(problem, kH100, strides); };
  CHECK(chosen().config.family == &attention::wgmma_family);
  const auto refused = [&](std::int64_t* stride, std::int64_t value, const std::string& says) {
    const std::int64_t before = *stride;
    *stride = value;
    const Choice choice = chosen();
    CHECK(choice.config.family == &attention::mma_family);
    CHECK_MESSAGE(choice.reason.find(says) != std::string::npos, choice.reason);
    CHECK_THROWS_AS(attention::forced_config(problem, kH100, "wgmma m128 n128 w8 s2", strides),
                    Error);
    *stride = before;
  };
  refused(&strides.k.head, 0, "the head stride of K is 0 elements");
  refused(&strides.q.row, -2048, "the row stride of Q is -2048 elements");
  refused(&strides.v.batch, std::int64_t{1} << 39, "the batch stride of V is 549755813888");
  refused(&strides.o.batch, 0, "the batch stride of O is 0");
  strides.v.batch = (std::int64_t{1} << 39) - 8;
  CHECK(chosen().config.family == &attention::wgmma_family);
  Problem one = problem;
  one.batch = 1;
  one.carry_out = true;
  strides.k.batch = 0;
  strides.o = {};
  CHECK(attention::choose_config(one, kH100, strides).config.family == &attention::wgmma_family);
}

TEST_CASE("e4m3 takes the wgmma8 family, and nothing else does") {
  Problem problem = problem_of(128, 128, 4096);
  problem.dtype = Dtype::kFloat8E4M3;
  const auto config_of = [&] {
    return attention::to_string(attention::choose_config(problem, kH100).config);
  };
  CHECK(config_of() == "wgmma8 m64 n64 w8 s2 b2 h2");  // heads that share K and V
  problem.kv_heads = 16;
  CHECK(config_of() == "wgmma8 m128 n128 w8 s2 f");
  problem.kv_heads = 4;
  problem.pattern = causal() & strided(8, 2, 64);
  CHECK(config_of() == "wgmma8 m64 n64 w8 s2 b2 h2");
  for (const DeviceLimits& limits : {kA100, DeviceLimits{{90, '\0'}, 132, 227 * 1024}}) {
    try {
      attention::choose_config(problem, limits);
      FAIL("accepted");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kUnsupported);
      CHECK(std::string(error.what()).find("convert Q, K and V to bf16") != std::string::npos);
    }
  }
  CHECK_THROWS_AS(attention::forced_config(problem, kH100, "wgmma m128 n128 w8 s2"), Error);
  problem.dtype = Dtype::kBfloat16;
  CHECK_THROWS_AS(attention::forced_config(problem, kH100, "wgmma8 m128 n128 w8 s2"), Error);
}

TEST_CASE("heads of one CTA have to share K, V and what they see") {
  Problem problem = problem_of(128, 128, 600);
  const Choice two = {*attention::parse_config("wgmma m64 n64 w8 s2 b2 h2"), "", {}};
  CHECK(attention::make_plan(problem, two, kH100).shape.threads == 384);
  problem.pattern = heads({causal(), dense()});
  CHECK_THROWS_AS(attention::make_plan(problem, two, kH100), Error);
  problem.pattern = causal();
  problem.kv_heads = 16;
  CHECK_THROWS_AS(attention::make_plan(problem, two, kH100), Error);
}

TEST_CASE("a device that fits nothing is named") {
  DeviceLimits tiny = kA100;
  tiny.shared_bytes_per_block = 1024;
  try {
    attention::choose_config(problem_of(64, 64, 100), tiny);
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kUnsupported);
    CHECK(std::string(error.what()).find("1024 bytes") != std::string::npos);
  }
  const DeviceLimits old = {{75, '\0'}, 40, 64 * 1024};
  CHECK_THROWS_AS(attention::choose_config(problem_of(64, 64, 100), old), Error);
}

TEST_CASE("a configuration can be forced by its text, if it is legal here") {
  const Problem problem = problem_of(256, 256, 1000);
  for (const attention::ShippedConfig& shipped : attention::shipped_configs()) {
    if (shipped.dims.qk != 256 || shipped.config.family->element_bytes == 1) continue;
    const std::string text = attention::to_string(shipped.config);
    if (shipped.reach == attention::Reach::kHopper) {
      CHECK(attention::forced_config(problem, kH100, text).config == shipped.config);
      CHECK_THROWS_AS(attention::forced_config(problem, kA100, text), Error);
      continue;
    }
    CHECK(attention::forced_config(problem, kA100, text).config == shipped.config);
    if (shipped.reach == attention::Reach::kLarge) {
      CHECK_THROWS_AS(attention::forced_config(problem, kRtx, text), Error);
    }
  }
  for (const char* text : {"", "fastest", "mma m128", "mma m128 n64 w8 s99999999999"}) {
    try {
      attention::forced_config(problem, kA100, text);
      FAIL("accepted " << text);
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kInvalidArgument);
      CHECK(std::string(error.what()).find("shipped for head dims 256/256 are '") !=
            std::string::npos);
    }
  }
}

TEST_CASE("a plan is data: grid, numbers and every decision") {
  Problem problem = problem_of(64, 64, 1000);
  const LaunchPlan plan = plan_of(problem);
  CHECK(plan.shape.grid_x == static_cast<unsigned>(plan.tiles->row_tiles));
  CHECK(plan.shape.grid_y == 16);
  CHECK(plan.shape.grid_z == 2);
  REQUIRE(plan.launches.size() == 1);
  CHECK(plan.launches[0].batches == 2);
  CHECK(plan.score.scale == doctest::Approx(0.125 * 1.4426950408889634));
  CHECK(plan.lse_factor == doctest::Approx(0.6931472));
  CHECK(plan.device_bytes >= plan.tiles->device_bytes());
  CHECK(says(plan.decisions, "family mma"));
  CHECK(says(plan.decisions, attention::to_string(plan.config)));
  CHECK(says(plan.decisions, "causal"));
  CHECK(says(plan.decisions, "1 launch of"));
  problem.lse_base = LseBase::kTwo;
  CHECK(plan_of(problem).lse_factor == 1.0f);
  problem.carry_in = problem.carry_out = true;
  CHECK(says(plan_of(problem).decisions, "carried in and out"));
}

TEST_CASE("what is only a number does not make another kernel") {
  const LaunchPlan first = plan_of(problem_of(64, 64, 1000));
  Problem other = problem_of(64, 64, 777);
  other.batch = 5;
  other.score.scale = 0.5;
  other.q0 = 3;
  const LaunchPlan second = plan_of(other);
  CHECK(jit::source_text(first.spec) == jit::source_text(second.spec));
  other.score.scale = -0.5;
  CHECK(jit::source_text(first.spec) != jit::source_text(plan_of(other).spec));
  other = problem_of(64, 64, 1000);
  other.pattern = window(5, 0);
  const std::string window_source = jit::source_text(plan_of(other).spec);
  other.pattern = window(99, 0);
  CHECK(jit::source_text(plan_of(other).spec) == window_source);
  other.pattern = random(1, 2, 64);
  const LaunchPlan chosen = plan_of(other);
  other.pattern = random(3, 7, 64);
  other.layer = 9;
  CHECK(jit::source_text(plan_of(other).spec) == jit::source_text(chosen.spec));
  CHECK(plan_of(other).mask.lists != chosen.mask.lists);
}

TEST_CASE("no rows launch nothing, many batches launch in parts") {
  Problem problem = problem_of(64, 64, 10);
  problem.seq_q = 0;
  CHECK(plan_of(problem).launches.empty());
  CHECK(says(plan_of(problem).decisions, "nothing to launch"));
  problem = problem_of(64, 64, 10);
  problem.batch = 0;
  CHECK(plan_of(problem).launches.empty());
  problem.batch = 150000;
  const LaunchPlan plan = plan_of(problem);
  REQUIRE(plan.launches.size() == 3);
  CHECK(plan.launches[1].first_batch == 65535);
  CHECK(plan.launches[2].first_batch + plan.launches[2].batches == 150000);
  CHECK(plan.shape.grid_z == 65535);
}

TEST_CASE("where the tiles forbid a choice, a plan takes the second one and says so") {
  Problem problem = problem_of(128, 128, 512);
  problem.pattern = heads({causal(), dense()});  // heads 0 and 1 differ
  const Choice together = {*attention::parse_config("wgmma m64 n64 w8 s2 b2 h2"), "a test", {}};
  CHECK_THROWS_AS(attention::make_plan(problem, together, kH100), Error);

  Choice choice = together;
  choice.second = attention::parse_config("wgmma m128 n128 w8 s2");
  choice.rejected = {{*choice.second, "later"}};
  const LaunchPlan plan = attention::make_plan(problem, choice, kH100);
  CHECK(plan.config == *choice.second);
  CHECK(plan.tiles->tile_rows == 128);
  CHECK(plan.group == attention::WorkGroup{1, 1});
  CHECK(says(plan.decisions, "configuration wgmma m128 n128 w8 s2: the second choice"));
  CHECK(says(plan.decisions, "heads 0 and 1 differ in what they see"));
  REQUIRE(plan.rejected.size() == 1);
  CHECK(plan.rejected[0].config == together.config);

  // The first configuration is kept if the tiles permit it.
  problem.pattern = causal();
  CHECK(attention::make_plan(problem, choice, kH100).config == together.config);
}

TEST_CASE("the heuristic names a second choice wherever the first may be forbidden") {
  int named = 0;
  for (const std::int64_t dim : {64, 96, 128, 256}) {
    for (const std::int64_t seq : {1, 60, 1000, 5000}) {
      for (const Pattern& pattern : {dense(), causal(), Pattern::parse("random(2,1,32)")}) {
        Problem problem = problem_of(dim, dim, seq);
        problem.pattern = pattern;
        const Choice choice = attention::choose_config(problem, kH100);
        const bool together = attention::cta_shape(choice.config).packed_heads() > 1;
        CHECK(choice.second.has_value() == together);
        if (!choice.second) continue;
        ++named;
        CHECK(attention::cta_shape(*choice.second).packed_heads() == 1);
        CHECK_FALSE(attention::why_not(*choice.second, {dim, dim}, kH100));
      }
    }
  }
  CHECK(named >= 5);
}

TEST_CASE("a text of a family that this build lacks is refused with those that it has") {
  try {
    attention::forced_config(problem_of(64, 64, 100), kA100, "tcgen05 m128 n128 w8 s2");
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kInvalidArgument);
    const std::string what = error.what();
    CHECK(what.find("this build has no family 'tcgen05', but wgmma, wgmma8 and mma") !=
          std::string::npos);
  }
}

}  // namespace
