#include "attention/kernels/kernel_source.h"

#include <algorithm>
#include <limits>
#include <numbers>
#include <numeric>
#include <string_view>

#include "attention/kernels/family.h"
#include "attention/kernels/mask_program.h"
#include "attention/tiles/tile_list.h"
#include "pattern/batches.h"
#include "pattern/node.h"

namespace annulus::attention {
namespace {

using jit::Constant;

// ALiBi and bias are added to scores after scaling, so the scale cannot be folded into the
// exponent.
bool has_position_terms(const Score& score) { return !score.alibi.empty() || !score.bias.empty(); }

kernels::Score score_of(const Problem& problem) {
  if (problem.score.softcap > 0) return kernels::Score::kSoftcap;
  return is_folded(score_numbers(problem).scale) && !has_position_terms(problem.score) &&
                 !problem.score.score_mod
             ? kernels::Score::kPositiveScale
             : kernels::Score::kAnyScale;
}

// If all batches see the same, the text of the specification has no word of batches, so kernels
// stay the same.
void add_batches(const KernelFeatures& features, jit::Struct* shape) {
  if (features.distinct_batches == 1) return;
  shape->constants.push_back(Constant::integer("kDistinctBatches", features.distinct_batches));
}

jit::Struct score_mod_struct(const ScoreStructure& structure) {
  jit::Struct made;
  made.name = "ScoreMod";
  made.constants = {Constant::boolean("kPresent", true),
                    Constant::boolean("kPositions", structure.positions),
                    Constant::boolean("kInLoop", structure.costly),
                    Constant::boolean("kLong", structure.is_long)};
  made.functions = {{.declaration = "template <typename M> tile::Real modified(const M& m, "
                                    "tile::Real score, tile::Integer b, tile::Integer h, "
                                    "tile::Integer q, tile::Integer k)",
                     .expression = structure.text}};
  return made;
}

}  // namespace

const char* element_of(Dtype dtype) {
  if (dtype == Dtype::kFloat8E4M3) return "tile::Float8E4M3";
  return dtype == Dtype::kFloat16 ? "tile::Float16" : "tile::Bfloat16";
}

bool is_folded(float scale) {
  // A scale that is 0 as fp32 is not folded, because -inf times the scale would be NaN. A huge
  // scale is not folded either: the fused multiply-add subtracts a rounded row max from an exact
  // product, and if the rounding of a score exceeds the range of exponents (scores above 2^31),
  // every probability is 0 or infinite.
  return scale > 0 && scale <= 4096;
}

kernels::Positions positions_for(const KernelConfig& config, const Segments& segments) {
  if (segments.most == 1) return kernels::Positions::kOneSegment;
  const std::int64_t edges = family_of(config).second_segment_rows;
  const bool by_tiles = segments.most == 2 && edges > 0 && segments.q_edges % edges == 0 &&
                        segments.shortest_q >= config.tile_rows &&
                        segments.shortest_k >= config.tile_columns;
  return by_tiles ? kernels::Positions::kTwoSegments : kernels::Positions::kOfRows;
}

KernelFeatures features_of(const Problem& problem, kernels::Positions positions,
                           const pattern::MaskCode& mask) {
  const ScoreStructure score_mod = score_structure(problem.score.score_mod);
  const bool needs_positions =
      mask.text != "true" || has_position_terms(problem.score) || score_mod.positions;
  return {.dims = {problem.dim_qk, problem.dim_v},
          .dtype = problem.dtype,
          .dtype_o = problem.output_dtype(),
          .scale_block = std::gcd(problem.scale_blocks.k, problem.scale_blocks.v),
          .head_scales = problem.scale_blocks.q == 0 && problem.scale_blocks.k == 0 &&
                         problem.scale_blocks.v == 0,
          .score = score_of(problem),
          .alibi = !problem.score.alibi.empty(),
          .bias = !problem.score.bias.empty(),
          .sink_logit = !problem.score.sink_logit.empty() && !problem.carry_out,
          .carry_in = problem.carry_in,
          .carry_out = problem.carry_out,
          .positions = needs_positions ? positions : kernels::Positions::kOneSegment,
          .distinct_batches = problem.pattern.batches(),
          .mask = mask.text,
          .score_mod = score_mod};
}

KernelFeatures features_of(const Problem& whole) {
  Problem problem = whole;
  problem.pattern = pattern::for_batches(whole.pattern, whole.batch);
  // Only the text of the mask is needed here, so the mask is emitted for no queries, which makes no
  // lists.
  const pattern::MaskCode mask =
      pattern::emit(problem.pattern, kernels::kMaskNumbers, {problem.heads, {}, problem.context()});
  return features_of(problem, kernels::Positions::kOneSegment, mask);
}

bool evaluated_in_loop(const std::string& mask) {
  return mask == kProgramText || pattern::leaves::long_calls(mask) > 0;
}

jit::Struct mask_struct(const std::string& mask_text) {
  jit::Struct mask;
  mask.name = "Mask";
  mask.constants = {Constant::boolean("kInLoop", evaluated_in_loop(mask_text))};
  if (mask_text == kProgramText) {
    mask.constants.push_back(Constant::boolean("kProgram", true));
  }
  mask.functions = {
      {.declaration =
           "template <typename M, typename K> auto visible(const M& m, int q, const K& k)",
       .expression = mask_text}};
  return mask;
}

namespace {

// The features of a general kernel: everything that it allows, whatever the problem has.
KernelFeatures allowed(const KernelFeatures& features) {
  KernelFeatures all = features;
  all.score = kernels::Score::kPositiveScale;
  all.alibi = all.bias = all.sink_logit = true;
  all.carry_in = all.carry_out = true;
  all.positions = kernels::Positions::kOneSegment;
  all.tile_order = kernels::TileOrder::kAny;
  all.split = true;
  all.draws_work = false;
  all.distinct_batches = 0;  // the launch sets it
  all.mask = kProgramText;
  return all;
}

}  // namespace

jit::KernelSpec forward_spec(std::string entry, const char* source, int stages,
                             const std::vector<Constant>& tile, const KernelFeatures& asked,
                             jit::Arch arch) {
  const KernelFeatures features = asked.general ? allowed(asked) : asked;
  jit::Struct shape;
  shape.name = "Shape";
  shape.constants = {
      Constant::type("Element", element_of(features.dtype)),
      Constant::integer("kDimQk", features.dims.qk),
      Constant::integer("kDimV", features.dims.v),
      Constant::integer("kStages", stages),
      Constant::integer("kScore", static_cast<int>(features.score)),
      Constant::integer("kTileOrder", static_cast<int>(features.tile_order)),
      Constant::integer("kPositions", static_cast<int>(features.positions)),
      Constant::boolean("kAlibi", features.alibi),
      Constant::boolean("kBias", features.bias),
      Constant::boolean("kSinkLogit", features.sink_logit),
      Constant::boolean("kCarryIn", features.carry_in),
      Constant::boolean("kCarryOut", features.carry_out),
      Constant::boolean("kSplit", features.split),
  };
  shape.constants.insert(shape.constants.end(), tile.begin(), tile.end());
  add_batches(features, &shape);
  if (features.general) shape.constants.push_back(Constant::boolean("kGeneral", true));
  std::vector<jit::Struct> structs = {std::move(shape), mask_struct(features.mask)};
  if (features.score_mod.present()) structs.push_back(score_mod_struct(features.score_mod));
  return {.family = entry,
          .arch = arch,
          .file = source,
          .entry = std::move(entry),
          .structs = std::move(structs)};
}

jit::KernelSpec kernel_spec(const KernelConfig& config, const KernelFeatures& features,
                            jit::Arch arch) {
  jit::KernelSpec spec = family_of(config).spec(config, features, arch);
  spec.config = to_string(config);
  return spec;
}

jit::KernelSpec combine_spec(const KernelConfig& config, const KernelFeatures& asked,
                             jit::Arch arch) {
  const KernelFeatures features = asked.general ? allowed(asked) : asked;
  jit::Struct shape;
  shape.name = "Shape";
  shape.constants = {Constant::type("Output", element_of(features.dtype_o)),
                     Constant::integer("kDimV", features.dims.v),
                     Constant::integer("kTileRows", config.tile_rows),
                     Constant::boolean("kSinkLogit", features.sink_logit),
                     Constant::boolean("kCarryOut", features.carry_out)};
  add_batches(features, &shape);
  if (features.general) shape.constants.push_back(Constant::boolean("kGeneral", true));
  return {.family = "combine_splits",
          .arch = arch,
          .file = "kernels/combine/combine_splits.cu",
          .entry = "combine_splits",
          .structs = {std::move(shape)},
          .config = to_string(config)};
}

ScoreNumbers score_numbers(const Problem& problem) {
  const double scale = problem.effective_scale();
  const double base = problem.score.score_mod ? 1.0 : std::numbers::log2e;
  if (problem.score.softcap > 0) {
    // The factor is clamped, because an infinite factor times 0 is NaN.
    constexpr double kMax = std::numeric_limits<float>::max();
    return {static_cast<float>(std::clamp(scale / problem.score.softcap, -kMax, kMax)),
            static_cast<float>(problem.score.softcap * base)};
  }
  return {static_cast<float>(scale * base), 0.0f};
}

}  // namespace annulus::attention
