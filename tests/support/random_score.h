#ifndef ANNULUS_TESTS_SUPPORT_RANDOM_SCORE_H_
#define ANNULUS_TESTS_SUPPORT_RANDOM_SCORE_H_

// Random score expressions, which use every operation.

#include "annulus/score.h"
#include "base/random.h"

namespace annulus::test {

// A tree of at most `depth` levels of operations whose value is a number.
ScoreExpression random_score_expression(base::Random& random, int depth);

// An expression whose value in fp32 is right to 1e-5 for scores and positions of some hundreds:
// comparisons are of integers, and no operation makes large numbers of small ones.
ScoreExpression tame_score_expression(base::Random& random, int depth);

}  // namespace annulus::test

#endif  // ANNULUS_TESTS_SUPPORT_RANDOM_SCORE_H_
