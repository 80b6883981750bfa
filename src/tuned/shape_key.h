#ifndef ANNULUS_TUNED_SHAPE_KEY_H_
#define ANNULUS_TUNED_SHAPE_KEY_H_

// The properties of a problem that determine the best configuration. They are rounded, so that
// problems which differ little share a tuned result.

#include <compare>
#include <optional>
#include <string>

#include "annulus/problem.h"
#include "annulus/selection.h"
#include "base/hash.h"
#include "params/attention_params.h"
#include "params/batch_params.h"

namespace annulus::tuned {

// Classes of patterns, by the cost of a partial tile and by the differences between rows.
enum class PatternClass : int {
  kDense = 0,   // exactly dense
  kCausal = 1,  // exactly causal
  // any other expression that only compares positions, possibly with lists of positions
  kPositions = 2,
  kLists = 3,   // an expression with a lookup or a division for each pair: blocks, strides
  kChosen = 4,  // blocks that each run chooses on the device (annulus/selection.h)
};
// "dense", "causal", "positions", "lists", "chosen blocks"
const char* to_string(PatternClass pattern);
const char* to_string(kernels::Score score);  // returns "positive_scale", "any_scale" or "softcap"

// Classes of score expressions, by their cost and by their form in the kernel.
enum class ExpressionClass : int {
  kNone = 0,   // no expression
  kShort = 1,  // unrolled for every score
  kLoop = 2,   // a loop over a few columns at a time
  kLong = 3,   // the same loop, with the expression split into pieces
};
const char* to_string(ExpressionClass expression);  // "none", "short", "loop", "long"

// Classes of batch requests (annulus/batch.h), by their number of queries (batch_key.h).
enum class Requests : int { kNone = 0, kFewQueries = 1, kManyQueries = 2 };
const char* to_string(Requests requests);  // "no requests", "few queries", "many queries"

// The key for tuned results. For a sum, the pattern class is the costliest class of its branches,
// and the density is the mean of their densities.
struct ShapeKey {
  Requests requests = Requests::kNone;
  kernels::Pages pages = kernels::Pages::kNone;  // the pages of batch requests; else kNone
  int dim_qk = 0;
  int dim_v = 0;
  Dtype dtype = Dtype::kBfloat16;
  int group = 1;  // query heads per key head
  bool carry_in = false;
  bool carry_out = false;
  kernels::Score score = kernels::Score::kPositiveScale;
  ExpressionClass expression = ExpressionClass::kNone;
  PatternClass pattern = PatternClass::kDense;
  int branches = 1;    // the number of branches of a sum(...), which run one after another; else 1
  int block_rows = 0;  // the size of chosen blocks; else 0
  // the size of chosen blocks, or the keys of blocks that requests list; else 0
  int block_columns = 0;
  // round(-2 log2 of the density of 128 x 128 blocks), or kNoBlocks if no block is kept
  int density = 0;
  int queries = 0;  // round(2 log2 Sq)
  int keys = 0;     // round(2 log2 Sk)
  int heads = 0;    // round(log2 (B H))

  friend auto operator<=>(const ShapeKey&, const ShapeKey&) = default;
};
inline constexpr int kNoBlocks = 63;

// Requires: a valid problem. The cost grows with the number of rows of 128 x 128 blocks. Throws as
// pattern::emit does.
ShapeKey shape_key(const Problem& problem);

// The key of a problem whose blocks each run chooses. Its density is the share of the blocks that
// its rows may have, estimated from a sample of rows. Requires: selection::validate passes.
ShapeKey shape_key(const Problem& problem, const Selection& selection);

// The most blocks that a row may have, if it sees that many. If the selection takes a share of the
// mass without a limit, only the device finds the number; then it is a guess, 16.
std::int64_t blocks_of_row(const Selection& selection);

// Describes the problems that share the key: "D64 bf16, causal, 0.42 to 0.59 of the blocks, group
// 2, queries 862 to 1217, keys 862 to 1217, heads 6 to 11", where heads are B * H. Two texts are
// equal exactly if the keys are equal.
std::string to_string(const ShapeKey& key);
// Describes the key without lengths, heads and group: "D64 bf16, causal, about 0.5 of the blocks".
// Different keys may have the same text.
std::string kind_text(const ShapeKey& key);
// The digest of the whole key, which names the entry's file. It does not change as long as
// kEntrySchema (entry.h) does not change.
base::Digest digest(const ShapeKey& key);

// The differences between an entry's key and another key, except lengths: "group 4, not 8; causal,
// not dense". Empty if the keys differ only in lengths, or not at all.
std::string why_other_kind(const ShapeKey& stated, const ShapeKey& wanted);

// The distance between two keys that differ only in lengths: the sum of the differences of
// `queries` and `keys`, in steps of half a power of two. No value if anything else differs.
std::optional<int> length_distance(const ShapeKey& a, const ShapeKey& b);
// The largest distance at which a result is used: a factor of four in one length.
inline constexpr int kMaxDistance = 4;

}  // namespace annulus::tuned

#endif  // ANNULUS_TUNED_SHAPE_KEY_H_
