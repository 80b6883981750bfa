#include "attention/kernels/kernel_source.h"

#include "attention/kernels/launch.h"
#include "attention/kernels/mma/config.h"

#include <doctest/doctest.h>

#include <cmath>

namespace annulus::attention {
namespace {

constexpr jit::Arch kSm80 = {80, '\0'};

Problem sample() {
  Problem problem;
  problem.batch = 2;
  problem.heads = 4;
  problem.kv_heads = 2;
  problem.seq_q = 100;
  problem.seq_k = 300;
  problem.dim_qk = problem.dim_v = 128;
  problem.pattern = causal();
  return problem;
}

std::string source_of(const Problem& problem, const KernelConfig& config = MmaConfig{}) {
  return jit::source_text(
      kernel_spec(config,
                  features_of(problem, kernels::Positions::kOneSegment,
                              pattern::emit(problem.pattern, kernels::kMaskNumbers)),
                  kSm80));
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("run-time values make no other kernel") {
  const std::string source = source_of(sample());
  Problem other = sample();
  other.batch = 7;
  other.heads = 1;
  other.kv_heads = 1;
  other.seq_q = 5;
  other.seq_k = 0;
  other.score.scale = 3.5;
  other.q0 = -17;
  other.want_lse = true;
  other.lse_base = LseBase::kTwo;
  CHECK(source_of(other) == source);

  Problem window3 = sample();
  window3.pattern = window(3, 0);
  Problem window9 = sample();
  window9.pattern = window(9, 5);
  CHECK(source_of(window3) == source_of(window9));
  CHECK(source_of(window3) != source);
}

TEST_CASE("what a kernel is made of is in its source") {
  Problem problem = sample();
  problem.dtype = Dtype::kFloat16;
  problem.carry_in = true;
  const std::string source = source_of(
      problem, MmaConfig{.tile_rows = 128, .tile_columns = 32, .stages = 3, .resident = 2});
  for (const char* part :
       {"#include \"kernels/mma/mma_forward.cu\"", "tile::Float16", "kDimQk = 128",
        "kTileRows = 128", "kTileColumns = 32", "kStages = 3", "kResident = 2", "kCarryIn = true",
        "kCarryOut = false", "kInLoop = false", "m.causal(q, k)"}) {
    CAPTURE(part);
    CHECK(has(source, part));
  }
  Problem carried = problem;
  carried.carry_out = true;
  CHECK(source_of(carried) != source_of(problem));
}

TEST_CASE("e4m3 brings its scales and the dtype of O") {
  Problem problem = sample();
  problem.dtype = Dtype::kFloat8E4M3;
  const auto source = [&](const char* config) {
    return jit::source_text(kernel_spec(*parse_config(config), features_of(problem), {90, 'a'}));
  };
  std::string text = source("wgmma8 m128 n128 w8 s2");
  for (const char* part : {"Element = tile::Float8E4M3", "Output = tile::Bfloat16",
                           "kScaleColumns = 0", "kOutputApart = true"}) {
    CAPTURE(part);
    CHECK(has(text, part));
  }
  problem.carry_in = true;
  CHECK(has(source("wgmma8 m128 n128 w8 s2"), "kScaleColumns = 128"));
  problem.carry_in = false;
  problem.dtype_o = Dtype::kFloat16;
  problem.scale_blocks = {32, 256, 64};
  text = source("wgmma8 m128 n128 w8 s2");
  CHECK(has(text, "Output = tile::Float16"));
  CHECK(has(text, "kScaleColumns = 64"));
  CHECK(has(source("wgmma8 m128 n96 w8 s2"), "kScaleColumns = 32"));
  problem.scale_blocks = {64, 256, 64};  // the scales of Q are read row by row
  CHECK(source("wgmma8 m128 n128 w8 s2") == text);
}

TEST_CASE("masks that look each key up are evaluated in a loop") {
  Problem problem = sample();
  problem.pattern = causal() & strided(4, 2, 16);
  CHECK(has(source_of(problem), "kInLoop = true"));
  for (const char* text : {"causal & documents([0, 50, 90])", "causal & global([0, 50, 90])",
                           "vertical_slash([0, 50], [1, 90])"}) {
    problem.pattern = Pattern::parse(text);
    CHECK(has(source_of(problem), "kInLoop = false"));
  }
  problem.pattern = causal() & (window(8, 8) | sink(4) | global(2));
  CHECK(has(source_of(problem), "kInLoop = false"));
  CHECK(evaluated_in_loop("m.blocks(q, k)"));
  CHECK(evaluated_in_loop("m.global_listed(0, 1, q, k) | m.every(2, 3, q, k)"));
  CHECK(evaluated_in_loop("m.causal(q, k) & m.dilated(0, q, k)"));
  CHECK_FALSE(evaluated_in_loop("(m.turn(2) == 0 ? m.causal(q, k) : m.sink(0, q, k))"));
  CHECK_FALSE(evaluated_in_loop("true"));
}

TEST_CASE("scale and soft-cap choose the score and its numbers") {
  Problem problem = sample();
  const auto score = [&] {
    return features_of(problem, kernels::Positions::kOneSegment, {}).score;
  };
  CHECK(score() == kernels::Score::kPositiveScale);
  CHECK(score_numbers(problem).scale ==
        doctest::Approx(std::log2(std::exp(1.0)) / std::sqrt(128.0)));
  problem.score.scale = -0.5;
  CHECK(score() == kernels::Score::kAnyScale);
  CHECK(score_numbers(problem).scale == doctest::Approx(-0.5 * std::log2(std::exp(1.0))));
  problem.score.scale = 0.0;
  CHECK(score() == kernels::Score::kAnyScale);
  problem.score.scale = 1e10;  // such scores would leave no probability
  CHECK(score() == kernels::Score::kAnyScale);
  problem.score.scale = 1e-300;  // 0 as fp32
  CHECK(score() == kernels::Score::kAnyScale);
  problem.score.scale = -3.0;
  problem.score.softcap = 30.0;
  CHECK(score() == kernels::Score::kSoftcap);
  CHECK(score_numbers(problem).scale == doctest::Approx(-0.1));
  CHECK(score_numbers(problem).softcap == doctest::Approx(30.0 * std::log2(std::exp(1.0))));
  problem.score.scale = 1e30;
  problem.score.softcap = 1e-20;
  CHECK(std::isfinite(score_numbers(problem).scale));
}

TEST_CASE("what a score gains is part of the kernel, its numbers are not") {
  Problem problem = sample();
  const std::string plain = source_of(problem);
  problem.score = Score::parse("alibi([0.5, 0.25])");
  const std::string alibi = source_of(problem);
  CHECK(has(alibi, "kAlibi = true"));
  CHECK(has(alibi, "kScore = 1"));  // added to the scaled score
  problem.score = Score::parse("alibi([7])");
  CHECK(source_of(problem) == alibi);
  problem.score = Score::parse("bias([1, 2, 3])");
  const std::string bias = source_of(problem);
  CHECK(has(bias, "kBias = true"));
  problem.score = Score::parse("bias([1, 2, 3, 4, 5], [5, 4, 3, 2, 1])");
  CHECK(source_of(problem) == bias);
  problem.score = Score::parse("sink_logit(1)");
  CHECK(has(source_of(problem), "kSinkLogit = true"));
  CHECK(has(source_of(problem), "kScore = 0"));
  problem.carry_out = true;  // the sink logit is added in the launch that writes O
  CHECK(has(source_of(problem), "kSinkLogit = false"));
  problem.score = {};
  problem.carry_out = false;
  CHECK(source_of(problem) == plain);
}

std::int64_t rows_of(std::int64_t tile_rows) {
  return (sample().seq_q + tile_rows - 1) / tile_rows;
}

TEST_CASE("a launch has a CTA for every tile row, head and batch") {
  const LaunchShape shape =
      launch_shape(MmaConfig{.tile_rows = 64, .warps = 4}, sample(), {}, rows_of(64), 3);
  CHECK(shape.grid_x == 2);
  CHECK(shape.grid_y == 4);
  CHECK(shape.grid_z == 2);
  CHECK(shape.threads == 128);
  CHECK(shape.shared_bytes == 80 * 1024);
}

TEST_CASE("CTAs of the wgmma family stay: no more than multiprocessors, nor than work") {
  const KernelConfig config = *parse_config("wgmma m128 n128 w8 s2");
  LaunchShape shape =
      launch_shape(config, sample(), packed_heads(config), rows_of(config.tile_rows), 3);
  CHECK(shape.grid_x == 3);
  CHECK(shape.grid_y == 1);
  CHECK(shape.grid_z == 1);
  CHECK(shape.threads == 384);
  shape = launch_shape(config, sample(), packed_heads(config), rows_of(config.tile_rows), 1000);
  CHECK(shape.grid_x == 8);
}

}  // namespace
}  // namespace annulus::attention
