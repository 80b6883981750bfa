#ifndef ANNULUS_TUNED_SHAPE_KEY_H_
#define ANNULUS_TUNED_SHAPE_KEY_H_

// The properties of a problem that decide which configuration is best, rounded so that problems
// which differ little share a tuned result.

#include <compare>
#include <optional>
#include <string>

#include "annulus/problem.h"
#include "annulus/selection.h"
#include "base/hash.h"
#include "params/attention_params.h"
#include "params/batch_params.h"

namespace annulus::tuned {

// Classes of patterns by the cost of a partial tile and by how even the rows are.
enum class PatternClass : int {
  kDense = 0,      // exactly dense
  kCausal = 1,     // exactly causal
  kPositions = 2,  // any other expression that compares positions, also with lists of them
  kLists = 3,      // one that looks up or divides for each pair: blocks, strides
  kChosen = 4,     // blocks that each run chooses on the device (annulus/selection.h)
};
// "dense", "causal", "positions", "lists", "chosen blocks"
const char* to_string(PatternClass pattern);
const char* to_string(kernels::Score score);  // "positive_scale", "any_scale", "softcap"

// Classes of score expressions by their cost and by their form in the kernel.
enum class ExpressionClass : int {
  kNone = 0,   // the problem has none
  kShort = 1,  // written out for every score
  kLoop = 2,   // a loop over a few columns at a time
  kLong = 3,   // such a loop, with the expression in pieces
};
const char* to_string(ExpressionClass expression);  // "none", "short", "loop", "long"

// Requests of batches (annulus/batch.h), by how many queries they have (batch_key.h).
enum class Requests : int { kNone = 0, kFewQueries = 1, kManyQueries = 2 };
const char* to_string(Requests requests);  // "no requests", "few queries", "many queries"

// The class and the density of a sum are those of its branches: the costliest class, and the mean
// of the densities.
struct ShapeKey {
  Requests requests = Requests::kNone;
  kernels::Pages pages = kernels::Pages::kNone;  // of requests; else none
  int dim_qk = 0;
  int dim_v = 0;
  Dtype dtype = Dtype::kBfloat16;
  int group = 1;  // query heads per key head
  bool carry_in = false;
  bool carry_out = false;
  kernels::Score score = kernels::Score::kPositiveScale;
  ExpressionClass expression = ExpressionClass::kNone;
  PatternClass pattern = PatternClass::kDense;
  int branches = 1;       // of a sum(...), which run one after another; else 1
  int block_rows = 0;     // of blocks that are chosen; else 0
  int block_columns = 0;  // likewise, and keys of blocks that requests list
  int density =
      0;  // round(-2 log2 of the density of 128 x 128 blocks); kNoBlocks where none is kept
  int queries = 0;  // round(2 log2 Sq)
  int keys = 0;     // round(2 log2 Sk)
  int heads = 0;    // round(log2 (B H))

  friend auto operator<=>(const ShapeKey&, const ShapeKey&) = default;
};
inline constexpr int kNoBlocks = 63;

// Requires: a valid problem. Costs by its rows of 128 x 128 blocks. Throws as pattern::emit does.
ShapeKey shape_key(const Problem& problem);

// The key of a problem whose blocks each run chooses: its density is the share of the blocks that
// its rows may have, as far as a sample of them tells. Requires: selection::validate passes.
ShapeKey shape_key(const Problem& problem, const Selection& selection);

// How many blocks a row may have, as far as it sees so many. Where only the device will know, as
// the selection takes a share of the mass without a bound, it is a guess, 16.
std::int64_t blocks_of_row(const Selection& selection);

// The problems that share the key, for people: "D64 bf16, causal, 0.42 to 0.59 of the blocks, group
// 2, queries 862 to 1217, keys 862 to 1217, heads 6 to 11", where heads are B H. Texts of
// problems are equal exactly where their keys are.
std::string to_string(const ShapeKey& key);
// Tells people what the key says besides lengths, heads and group: "D64 bf16, causal, about 0.5 of
// the blocks". Different keys may give one text.
std::string kind_text(const ShapeKey& key);
// The digest of all that the key holds, which names the entry's file. It stays as long as
// kEntrySchema (entry.h) does.
base::Digest digest(const ShapeKey& key);

// Says in what an entry's key differs from another one, besides lengths: "group 4, not 8; causal,
// not dense". Empty where lengths alone differ, or nothing does.
std::string why_other_kind(const ShapeKey& stated, const ShapeKey& wanted);

// The distance between two keys that differ only in lengths: the differences of `queries` and
// `keys` added, in steps of half a power of two. Empty where anything else differs.
std::optional<int> length_distance(const ShapeKey& a, const ShapeKey& b);
// A result is used for lengths up to this distance: a factor of four in one of them.
inline constexpr int kMaxDistance = 4;

}  // namespace annulus::tuned

#endif  // ANNULUS_TUNED_SHAPE_KEY_H_
