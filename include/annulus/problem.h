#ifndef ANNULUS_PROBLEM_H_
#define ANNULUS_PROBLEM_H_

// One attention problem: O = softmax(mask(score(Q K^T))) V per batch and head, with grouped
// key/value heads. A problem is a plain value; planning and running it is annulus/device.h.
//
// Letters: B batch, H query heads, Hkv key/value heads, Sq, Sk lengths, Dqk, Dv head dims.

#include <cstdint>
#include <optional>
#include <vector>

#include "annulus/pattern.h"
#include "annulus/score.h"
#include "annulus/types.h"

namespace annulus::inline v0 {

// The running state of attention, so that the keys of one row may be split over several launches,
// devices or machines and joined afterwards without loss. With t = log2(e) x the final score of a
// visible (query, key) pair (all of annulus/score.h applied but the sink logits, which join where O
// is written), the state of one row is
//
//   m   = max of t                     base 2; -inf where no key was visible
//   l   = sum of 2^(t - m)             0 where no key was visible
//   acc = sum of 2^(t - m) v  [Dv]     not normalised; 0 where no key was visible
//
// and O = acc / l, LSE = ln 2 (m + log2 l). Only l decides whether a row is empty: in a state that
// comes in, m and acc of a row with l = 0 may be anything. On a device the three live in contiguous
// fp32 arrays acc[B, H, Sq, Dv], m[B, H, Sq], l[B, H, Sq]; here they are host memory.

// The version of the meaning above. A state carries it between processes, and states of different
// versions do not merge.
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

// Merges two states into that of the union of their key sets, which must be disjoint. Merging with
// an empty row returns the other row bit for bit; two empty rows give an empty row. NaN spreads
// only to its own row. Throws Error{kInvalidArgument} where rows, dim_v, array sizes or versions
// differ.
ANNULUS_EXPORT HostState merge(const HostState& a, const HostState& b);

// O and LSE of a state: an empty row gives 0 and -inf.
struct FinishedRows {
  std::vector<float> o;    // [rows, dim_v]
  std::vector<float> lse;  // [rows], in the base asked for
};
ANNULUS_EXPORT FinishedRows finish(const HostState& state, LseBase base);

// Positions (q0 + i, k0 + j) stay within plus and minus this bound, so that their differences fit
// 32 bits.
constexpr std::int64_t kMaxPosition = std::int64_t{1} << 30;
// The largest B and H, which are dimensions of a launch's grid.
constexpr std::int64_t kMaxHeads = 65535;

// How many rows of Q, K and V share a scale: a power of two from 32 to 2^30, or 0 where all rows of
// a head do. The first block begins at row 0 of the tensor, whatever its position.
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
// The head dims that kernels exist for, ascending. With e4m3 operands only those of 64 and more are
// supported.
ANNULUS_EXPORT std::vector<HeadDims> supported_dims();

struct Problem {
  std::int64_t batch = 1;     // B >= 0; 0 launches nothing
  std::int64_t heads = 1;     // H >= 1
  std::int64_t kv_heads = 1;  // Hkv >= 1, divides H: query head h reads key head h / (H / Hkv)
  std::int64_t seq_q = 0;     // Sq >= 0; 0 launches nothing
  std::int64_t seq_k = 0;     // Sk >= 0; 0 gives empty rows
  std::int64_t dim_qk = 0;    // see supported_dims()
  std::int64_t dim_v = 0;
  // The dtype of Q, K and V: kFloat16, kBfloat16, or on a device of sm_90a kFloat8E4M3 (head dims
  // of 64 and more).
  Dtype dtype = Dtype::kBfloat16;

  Pattern pattern;                 // which keys a query sees; dense unless said otherwise
  Score score;                     // scale, soft-cap, ALiBi, bias, sinks, score_mod
  std::optional<std::int64_t> q0;  // position of query row 0; Sk - Sq unless given
  std::optional<std::int64_t> k0;  // position of key row 0; 0 unless given
  // What leaves of the pattern may depend on; both are the same for all chunks of one sequence.
  // Keys of the whole sequence, at least k0 + Sk, which it is unless given.
  std::optional<std::int64_t> total_k;
  std::int64_t layer = 0;  // layer of the model; >= 0

  bool want_lse = false;                 // write LSE; needs the state not to be carried out
  LseBase lse_base = LseBase::kNatural;  // base of the LSE that is written
  bool carry_in = false;                 // start from a state of earlier keys
  bool carry_out = false;                // write the state instead of O and LSE

  // Only with e4m3: the dtype of O, kFloat16 or kBfloat16 (the default), and which rows share the
  // scales of Operands.
  std::optional<Dtype> dtype_o;
  ScaleBlocks scale_blocks;

  // The dtype of O: that of Q, K and V where those have 16 bits.
  Dtype output_dtype() const {
    return dtype_o.value_or(dtype == Dtype::kFloat8E4M3 ? Dtype::kBfloat16 : dtype);
  }
  ANNULUS_EXPORT double effective_scale() const;  // `score.scale`, or 1 / sqrt(Dqk)
  std::int64_t q_position() const { return q0.value_or(seq_k - seq_q); }
  std::int64_t k_position() const { return k0.value_or(0); }
  ANNULUS_EXPORT PatternContext context() const;  // holds total_k and layer
};

// Device memory of a carried state, fp32, contiguous; the running state above.
struct StatePointers {
  float* acc = nullptr;  // [B, H, Sq, Dv]
  float* m = nullptr;    // [B, H, Sq]
  float* l = nullptr;    // [B, H, Sq]
};

// The addresses of one call's tensors in device memory. The caller owns them; they must stay until
// the work that was put on the stream has ended. Base addresses are multiples of 16 bytes (of 4 for
// LSE, m, l and scales); see Strides for their rules. Memory that is written overlaps nothing else
// of the call, with two exceptions: O may be Q (the same address, strides and dtype, no two
// elements of Q in one place), and state_out may be state_in.
struct Operands {
  const void* q = nullptr;  // [B, Sq, H, Dqk] in the order of q_strides
  // Rows of K and V before the first key and after the last key that any row of the problem sees
  // are not read, as the unused rest of a static cache. Between these keys tiles are read whole: a
  // NaN or an infinity in a key or a value reaches every row of the tile rows that read its tile,
  // whether the row sees the key or not, as where two packed sequences meet within a tile.
  const void* k = nullptr;  // [B, Sk, Hkv, Dqk]
  const void* v = nullptr;  // [B, Sk, Hkv, Dv]
  void* o = nullptr;        // [B, Sq, H, Dv]; no two elements in one place. Null with carry_out.
  float* lse = nullptr;     // [B, H, Sq] contiguous; null unless want_lse
  Strides q_strides;
  Strides k_strides;
  Strides v_strides;
  Strides o_strides;
  // A row stride of 0 where there are several rows, and strides that are all 0, are meant: every
  // row of that tensor is the same memory. Without this word they are taken for strides that were
  // forgotten, and refused. Strides of 0 of heads or batches alone need no word.
  bool broadcast_rows = false;
  StatePointers state_in;   // with carry_in
  StatePointers state_out;  // with carry_out

  // With e4m3: the factors of the elements of each block of rows, contiguous fp32, from 0 to 2^125;
  // null means 1. Any other value, such as a negative number or a NaN, is taken as NaN and makes
  // the rows NaN whose tiles read it. There are ceil(rows / ScaleBlocks) blocks, or one where that
  // is 0.
  const float* scale_q = nullptr;  // [B, H, blocks of Sq]
  const float* scale_k = nullptr;  // [B, Hkv, blocks of Sk]
  const float* scale_v = nullptr;  // [B, Hkv, blocks of Sk]
};

// Only the strides of Operands, for a plan that is made before its tensors exist
// (PlanOptions::strides).
struct OperandStrides {
  Strides q;
  Strides k;
  Strides v;
  Strides o;                    // ignored with carry_out
  bool broadcast_rows = false;  // as Operands::broadcast_rows
};

// Throws Error{kInvalidArgument} or Error{kUnsupported}, which names the wrong value and what would
// be right.
ANNULUS_EXPORT void validate(const Problem& problem);
// Checks the operands of a valid problem in the same way. Tensors without elements are not looked
// at. Only overlaps that begin at the same address are found.
ANNULUS_EXPORT void validate(const Problem& problem, const Operands& operands);

// Visible pairs of a query and a key over all pairs, of all heads of all batches; exact, whatever
// the tiles of a plan; 0 where there are no pairs. What an answer needs is 2 (Dqk + Dv)
// floating-point operations for each visible pair, so B H Sq Sk times this tells what a run's time
// is worth. A key that several branches of a sum see is one pair. Takes milliseconds for irregular
// patterns. Throws as validate(), and Error{kLimit, kCancelled}.
ANNULUS_EXPORT Density pair_density(const Problem& problem, const WorkLimit& limit = {});

}  // namespace annulus::inline v0

#endif  // ANNULUS_PROBLEM_H_
