#ifndef ANNULUS_PROBLEM_H_
#define ANNULUS_PROBLEM_H_

// One attention problem: O = softmax(mask(score(Q K^T))) V per batch and head, with grouped
// key/value heads. A problem is a plain value; annulus/device.h plans and runs it.
//
//   Problem problem{.heads = 32, .kv_heads = 8, .seq_q = 4096, .seq_k = 4096,
//                   .dim_qk = 128, .dim_v = 128};
//   problem.pattern = Pattern::parse("causal & window(511,0)");
//
// Letters: B batch, H query heads, Hkv key/value heads, Sq, Sk lengths, Dqk, Dv head dims.

#include <cstdint>
#include <optional>
#include <vector>

#include "annulus/pattern.h"
#include "annulus/score.h"
#include "annulus/types.h"

namespace annulus::inline v0 {

// ---- States
//
// A state is the running result of attention over some of the keys. States of disjoint sets of
// keys, from several launches, devices or machines, merge without loss. With t = log2(e) x the
// final score of a visible (query, key) pair (all parts of annulus/score.h except sink logits,
// which join when O is written), the state of one row is
//
//   m   = max of t                     base 2; -inf if no key is visible
//   l   = sum of 2^(t - m)             0 if no key is visible
//   acc = sum of 2^(t - m) v  [Dv]     not normalised; 0 if no key is visible
//
// and O = acc / l, LSE = ln 2 (m + log2 l). A row is empty if and only if l is 0: in a state that
// is read, m and acc of such a row may hold anything. On a device a state is three contiguous fp32
// arrays acc[B, H, Sq, Dv], m[B, H, Sq] and l[B, H, Sq].

// The version of this definition. States carry it, and states of different versions do not merge.
constexpr int kStateVersion = 1;

// States of `rows` rows in host memory.
struct HostState {
  int version = kStateVersion;
  std::int64_t rows = 0;
  std::int64_t dim_v = 0;
  std::vector<float> acc;  // [rows, dim_v]
  std::vector<float> m;    // [rows]
  std::vector<float> l;    // [rows]

  static ANNULUS_EXPORT HostState empty(std::int64_t rows, std::int64_t dim_v);
};

// Merges the states of two disjoint sets of keys into the state of their union. If a row is empty
// in one state, the result has the other state's row bit for bit. NaN spreads only within its row.
// Throws Error{kInvalidArgument} if rows, dim_v, array sizes or versions differ.
ANNULUS_EXPORT HostState merge(const HostState& a, const HostState& b);

// O and LSE of a state. An empty row gives 0 and -inf.
struct FinishedRows {
  std::vector<float> o;    // [rows, dim_v]
  std::vector<float> lse;  // [rows], in the base passed to finish()
};
ANNULUS_EXPORT FinishedRows finish(const HostState& state, LseBase base);

// ---- Problems

// Positions (q0 + i, k0 + j) are at least -kMaxPosition and at most kMaxPosition, so that their
// differences fit 32 bits.
constexpr std::int64_t kMaxPosition = std::int64_t{1} << 30;
// The largest B and H, because these are dimensions of a launch's grid.
constexpr std::int64_t kMaxHeads = 65535;

// The number of rows of Q, K and V that share a scale: a power of two from 32 to 2^30, or 0 if all
// rows of a head share one. The first block begins at row 0 of the tensor, whatever its position.
struct ScaleBlocks {
  std::int64_t q = 0;
  std::int64_t k = 0;
  std::int64_t v = 0;
  friend bool operator==(const ScaleBlocks&, const ScaleBlocks&) = default;
};

// The head dims of Q and K, and of V and O.
struct HeadDims {
  std::int64_t qk = 0;
  std::int64_t v = 0;
  friend bool operator==(const HeadDims&, const HeadDims&) = default;
};
// The head dims that kernels exist for, ascending. e4m3 needs head dims of 64 and more.
ANNULUS_EXPORT std::vector<HeadDims> supported_dims();

struct Problem {
  std::int64_t batch = 1;     // B >= 0; 0 launches nothing
  std::int64_t heads = 1;     // H >= 1
  std::int64_t kv_heads = 1;  // Hkv >= 1, divides H: query head h reads key head h / (H / Hkv)
  std::int64_t seq_q = 0;     // Sq >= 0; 0 launches nothing
  std::int64_t seq_k = 0;     // Sk >= 0; 0 gives empty rows
  std::int64_t dim_qk = 0;    // see supported_dims()
  std::int64_t dim_v = 0;
  // The dtype of Q, K and V: kFloat16, kBfloat16, or kFloat8E4M3 (sm_90a, head dims >= 64).
  Dtype dtype = Dtype::kBfloat16;

  Pattern pattern;                 // visible keys of each query; all by default
  Score score;                     // scale, soft-cap, ALiBi, bias, sinks, score_mod
  std::optional<std::int64_t> q0;  // position of query row 0; not set: Sk - Sq
  std::optional<std::int64_t> k0;  // position of key row 0; not set: 0
  // The number of keys of the whole sequence, at least k0 + Sk; not set: k0 + Sk. Leaves of the
  // pattern may depend on it and on the layer, which are the same for all chunks of a sequence.
  std::optional<std::int64_t> total_k;
  std::int64_t layer = 0;  // layer of the model; >= 0

  bool want_lse = false;                 // write LSE; not with carry_out
  LseBase lse_base = LseBase::kNatural;  // base of the LSE that is written
  bool carry_in = false;                 // start from a state of earlier keys
  bool carry_out = false;                // write the state instead of O and LSE

  // With e4m3 only: the dtype of O, kFloat16 or kBfloat16 (the default).
  std::optional<Dtype> dtype_o;
  ScaleBlocks scale_blocks;  // rows that share the scales of Operands; with e4m3 only

  // The dtype of O. If Q, K and V have 16 bits, it is their dtype.
  Dtype output_dtype() const {
    return dtype_o.value_or(dtype == Dtype::kFloat8E4M3 ? Dtype::kBfloat16 : dtype);
  }
  ANNULUS_EXPORT double effective_scale() const;  // `score.scale`, or 1 / sqrt(Dqk)
  std::int64_t q_position() const { return q0.value_or(seq_k - seq_q); }
  std::int64_t k_position() const { return k0.value_or(0); }
  ANNULUS_EXPORT PatternContext context() const;  // total_k and layer for the pattern
};

// A state in device memory, fp32, contiguous.
struct StatePointers {
  float* acc = nullptr;  // [B, H, Sq, Dv]
  float* m = nullptr;    // [B, H, Sq]
  float* l = nullptr;    // [B, H, Sq]
};

// The device addresses of one call's tensors. The caller owns the memory, which must stay until the
// work on the stream has ended. Base addresses are multiples of 16 bytes (of 4 for LSE, m, l and
// scales); Strides has the rules of strides. Memory that is written overlaps no other memory of the
// call, with two exceptions: O may be Q (the same address, strides and dtype, if no two elements of
// Q are in one place), and state_out may be state_in.
struct Operands {
  const void* q = nullptr;  // [B, Sq, H, Dqk] in the order of q_strides
  // Rows of K and V before the first key and after the last key that any row of the problem sees
  // are not read, for example the unused rest of a static cache. Between these keys, tiles are read
  // whole: a NaN or an infinity in a key or a value reaches all rows of the tile rows that read its
  // tile, even rows that do not see the key, for example at the border of two packed sequences.
  const void* k = nullptr;  // [B, Sk, Hkv, Dqk]
  const void* v = nullptr;  // [B, Sk, Hkv, Dv]
  void* o = nullptr;        // [B, Sq, H, Dv]; no two elements in one place; null with carry_out
  float* lse = nullptr;     // [B, H, Sq] contiguous; null without want_lse
  Strides q_strides;
  Strides k_strides;
  Strides v_strides;
  Strides o_strides;
  // Confirms that a row stride of 0 with several rows, or strides that are all 0, are intended:
  // every row of the tensor is then the same memory. If false, such strides are refused, because
  // they usually were forgotten. Strides of 0 of heads or batches alone are always accepted.
  bool broadcast_rows = false;
  StatePointers state_in;   // the state to start from; with carry_in
  StatePointers state_out;  // the state to write; with carry_out

  // With e4m3: the factors of the elements of each block of rows, contiguous fp32, from 0 to 2^125;
  // null means 1. Any other value, such as a negative number or a NaN, counts as NaN and turns
  // every row whose tiles read it into NaN. There are ceil(rows / ScaleBlocks) blocks, or one for
  // 0.
  const float* scale_q = nullptr;  // [B, H, blocks of Sq]
  const float* scale_k = nullptr;  // [B, Hkv, blocks of Sk]
  const float* scale_v = nullptr;  // [B, Hkv, blocks of Sk]
};

// The strides of Operands, for a plan that is made before its tensors exist (PlanOptions::strides).
struct OperandStrides {
  Strides q;
  Strides k;
  Strides v;
  Strides o;                    // ignored with carry_out
  bool broadcast_rows = false;  // see Operands::broadcast_rows
};

// The error names the wrong value and the correct values (annulus/types.h).
ANNULUS_EXPORT void validate(const Problem& problem);
// Checks the operands of a valid problem and throws the same errors. Tensors without elements are
// not checked. Only overlaps that begin at the same address are found.
ANNULUS_EXPORT void validate(const Problem& problem, const Operands& operands);

// The number of visible (query, key) pairs over the number of all pairs, for all heads of all
// batches. It is exact, whatever the tiles of a plan, and 0 if there are no pairs. A key that
// several branches of a sum see counts once. A run needs 2 (Dqk + Dv) floating-point operations per
// visible pair. Takes milliseconds for irregular patterns. Throws the errors of validate(),
// Error{kLimit} and Error{kCancelled}.
ANNULUS_EXPORT Density pair_density(const Problem& problem, const WorkLimit& limit = {});

}  // namespace annulus::inline v0

#endif  // ANNULUS_PROBLEM_H_
