#ifndef ANNULUS_ATTENTION_KERNELS_KERNEL_SOURCE_H_
#define ANNULUS_ATTENTION_KERNELS_KERNEL_SOURCE_H_

// From a problem and a configuration to the kernel that computes it: what is compiled into it. The
// contract with the templates is templates/README.md.

#include <cstdint>
#include <string>
#include <vector>

#include "annulus/attention.h"
#include "attention/kernels/kernel_config.h"
#include "attention/score/score_code.h"
#include "jit/spec.h"
#include "params/attention_params.h"
#include "pattern/classify.h"
#include "pattern/mask_code.h"

namespace annulus::attention {

// What of a problem makes another kernel; everything else is a run-time parameter.
struct KernelFeatures {
  Dims dims;
  Dtype dtype = Dtype::kBfloat16;
  Dtype dtype_o = Dtype::kBfloat16;
  std::int64_t scale_block =
      0;  // keys that share their scales: the greatest divisor of both; 0 all
  kernels::Score score = kernels::Score::kPositiveScale;
  bool alibi = false;
  bool bias = false;
  bool sink_logit = false;
  bool carry_in = false;
  bool carry_out = false;
  bool placed = false;                                        // positions are read row by row
  kernels::TileOrder tile_order = kernels::TileOrder::kList;  // TileList::walk
  bool split = false;                 // CTAs take parts of rows (kv_split.h)
  std::int64_t distinct_batches = 1;  // in what they see
  std::string mask = "true";          // MaskCode::text
  ScoreStructure score_mod = {};      // without a text where there is no expression
};

// Positions are read row by row only where there are several segments and a mask or a score to need
// them. How rows are walked is a matter of the tiles, and set by whoever has them.
KernelFeatures features_of(const Problem& problem, const pattern::Placement& placement,
                           const pattern::MaskCode& mask);
// Of tensors that are whole. Throws as pattern::emit does.
KernelFeatures features_of(const Problem& problem);

// A mask that reads memory or divides for each element is evaluated in a loop (Mask::kInLoop).
bool evaluated_in_loop(const std::string& mask);

// A mask as a template argument of kernels: templates/README.md.
jit::Struct mask_struct(const std::string& mask);

// The dtype of an element as kernels name it: "tile::Bfloat16".
const char* element_of(Dtype dtype);

// What every kernel of forward attention is specialised by: `shape`, which a family may add its own
// constants to, the mask, and the score expression where there is one.
jit::KernelSpec forward_spec(std::string entry, const char* source, int stages,
                             const std::vector<jit::Constant>& tile, const KernelFeatures& features,
                             jit::Arch arch);

// Equal for problems that differ only in batch, heads, lengths, strides, numbers and lists.
// Requires: !why_illegal(config, features.dims, arch).
jit::KernelSpec kernel_spec(const KernelConfig& config, const KernelFeatures& features,
                            jit::Arch arch);

// Of combine_splits, which joins the parts of rows that the kernel above leaves.
jit::KernelSpec merge_spec(const KernelConfig& config, const KernelFeatures& features,
                           jit::Arch arch);

// AttentionParams::scale and softcap for a problem, with log2(e) folded in as its Score wants, and
// without it where there is a score expression.
struct ScoreNumbers {
  float scale = 0;
  float softcap = 0;
};
ScoreNumbers score_numbers(const Problem& problem);

// Whether a kernel without soft-cap takes ScoreNumbers::scale into the exponent
// (Score::kPositiveScale) or applies it to each score (kAnyScale).
bool is_folded(float scale);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_KERNELS_KERNEL_SOURCE_H_
