#ifndef ANNULUS_ATTENTION_SCORE_SCORE_H_
#define ANNULUS_ATTENTION_SCORE_SCORE_H_

// The checks of a problem's score (annulus/score.h), and its tables as kernels read them.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "annulus/problem.h"

namespace annulus::attention {

// Throws Error{kInvalidArgument} for numbers that are not finite or beyond fp32, lists with more
// entries than heads, and tables of an even length or of different lengths.
void check_score(const Problem& problem);

// The entry of a list for a head. Requires: the list is not empty.
template <typename T>
const T& of_head(const std::vector<T>& list, std::int64_t head) {
  return list[static_cast<std::size_t>(head) % list.size()];
}

// The terms that depend on the distance k - q: ALiBi and bias, in base e.
double position_terms(const Score& score, std::int64_t head, std::int64_t distance);

// The lists as a kernel reads them. log2(e) is folded in, except into slopes and bias if there is a
// score expression, which takes scores in base e.
struct ScoreTables {
  std::vector<float> slopes;
  std::vector<float> bias;  // table after table
  std::int64_t bias_reach = 0;
  std::vector<float> sinks;
};
ScoreTables score_tables(const Score& score);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_SCORE_SCORE_H_
