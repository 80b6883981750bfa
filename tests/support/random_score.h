#ifndef ANNULUS_TESTS_SUPPORT_RANDOM_SCORE_H_
#define ANNULUS_TESTS_SUPPORT_RANDOM_SCORE_H_

// Random score expressions that use every operation.

#include "annulus/score.h"
#include "base/random.h"

namespace annulus::test {

// A tree of at most `depth` levels of operations. Its value is a number.
ScoreExpression random_score_expression(base::Random& random, int depth);

// An expression whose fp32 value has an error of at most 1e-5 for scores and positions of a few
// hundred. It compares only integers, and no operation makes large numbers from small ones.
ScoreExpression tame_score_expression(base::Random& random, int depth);

}  // namespace annulus::test

#endif  // ANNULUS_TESTS_SUPPORT_RANDOM_SCORE_H_
