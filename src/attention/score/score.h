#ifndef ANNULUS_ATTENTION_SCORE_SCORE_H_
#define ANNULUS_ATTENTION_SCORE_SCORE_H_

// What annulus/score.h means for one problem.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "annulus/attention.h"

namespace annulus::attention {

// Throws Error{kInvalidArgument}: numbers that are not finite or beyond fp32, lists longer than the
// heads, tables of an even or of different lengths.
void check_score(const Problem& problem);

// The entry of a list by head. Requires: the list is not empty.
template <typename T>
const T& of_head(const std::vector<T>& list, std::int64_t head) {
  return list[static_cast<std::size_t>(head) % list.size()];
}

// What the score of a key at distance k - q gains: alibi and bias.
double position_terms(const Score& score, std::int64_t head, std::int64_t distance);

// The lists as a kernel reads them, log2(e) folded in; slopes and bias without where there is a
// score expression.
struct ScoreTables {
  std::vector<float> slopes;
  std::vector<float> bias;  // table by table
  std::int64_t bias_reach = 0;
  std::vector<float> sinks;
};
ScoreTables score_tables(const Score& score);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_SCORE_SCORE_H_
