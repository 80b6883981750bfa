#ifndef ANNULUS_ATTENTION_KERNELS_KERNEL_SOURCE_H_
#define ANNULUS_ATTENTION_KERNELS_KERNEL_SOURCE_H_

// From a problem and a configuration to the specification of the kernel: the source and its
// compiled-in constants. The contract with the templates is templates/README.md.

#include <cstdint>
#include <string>
#include <vector>

#include "annulus/problem.h"
#include "attention/kernels/kernel_config.h"
#include "attention/score/score_code.h"
#include "attention/tiles/segments.h"
#include "jit/spec.h"
#include "params/attention_params.h"
#include "pattern/classify.h"
#include "pattern/mask_code.h"

namespace annulus::attention {

// The features of a problem that are compiled into a kernel; everything else is a run-time
// parameter.
struct KernelFeatures {
  Dims dims;
  Dtype dtype = Dtype::kBfloat16;
  Dtype dtype_o = Dtype::kBfloat16;
  std::int64_t scale_block =
      0;  // keys that share their scales: greatest common divisor of K's and V's block; 0: all keys
  bool head_scales = true;  // whether Q, K and V have one scale for a head, if any
  kernels::Score score = kernels::Score::kPositiveScale;
  bool alibi = false;
  bool bias = false;
  bool sink_logit = false;
  bool carry_in = false;
  bool carry_out = false;
  kernels::Positions positions = kernels::Positions::kOneSegment;
  kernels::TileOrder tile_order = kernels::TileOrder::kList;  // TileList::tile_order
  bool split = false;                 // CTAs take parts of rows (kv_split.h)
  bool draws_work = false;            // persistent CTAs draw works from a counter (Deal::kCounter)
  std::int64_t distinct_batches = 1;  // batches that see different keys
  std::string mask = "true";          // MaskCode::text
  // Whether the kernel is general: it serves every mask, tile order, score without an expression,
  // and state. Of the other features, only dims and dtypes enter its specification.
  bool general = false;
  ScoreStructure score_mod = {};  // its text is empty if there is no expression
};

// How kernels of a configuration find the positions of rows of tensors with these segments, if they
// need positions.
kernels::Positions positions_for(const KernelConfig& config, const Segments& segments);

// The features of a problem. `positions` applies to masks and scores that need positions; other
// problems get Positions::kOneSegment. The tile order depends on the tiles, so the caller sets it.
KernelFeatures features_of(const Problem& problem, kernels::Positions positions,
                           const pattern::MaskCode& mask);
// The features of a problem whose tensors are not split into segments. Throws as pattern::emit
// does.
KernelFeatures features_of(const Problem& problem);

// Whether a mask is evaluated in a loop over the columns of a row (Mask::kInLoop): it is if one of
// its leaves searches in memory or divides for each element.
bool evaluated_in_loop(const std::string& mask);

// A mask as a template argument of kernels. templates/README.md describes it.
jit::Struct mask_struct(const std::string& mask);

// The dtype of an element as kernels name it: "tile::Bfloat16".
const char* element_of(Dtype dtype);

// The specification of a kernel of forward attention: the struct Shape with the constants of all
// families and the constants in `tile`, the mask, and the score expression if there is one.
jit::KernelSpec forward_spec(std::string entry, const char* source, int stages,
                             const std::vector<jit::Constant>& tile, const KernelFeatures& features,
                             jit::Arch arch);

// The specification of a configuration's kernel. It is the same for problems that differ only in
// batch, heads, lengths, strides, numbers and lists.
// Requires: !why_illegal(config, features.dims, arch).
jit::KernelSpec kernel_spec(const KernelConfig& config, const KernelFeatures& features,
                            jit::Arch arch);

// The specification of combine_splits, which joins the parts of rows that the kernel of
// kernel_spec() writes.
jit::KernelSpec combine_spec(const KernelConfig& config, const KernelFeatures& features,
                             jit::Arch arch);

// AttentionParams::scale and softcap for a problem, in the form that kernels::Score reads: log2(e)
// is folded in, unless there is a score expression.
struct ScoreNumbers {
  float scale = 0;
  float softcap = 0;
};
ScoreNumbers score_numbers(const Problem& problem);

// Whether a kernel without soft-cap applies ScoreNumbers::scale in the exponent
// (Score::kPositiveScale) rather than to each score before masking (kAnyScale).
bool is_folded(float scale);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_KERNELS_KERNEL_SOURCE_H_
