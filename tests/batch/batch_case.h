#ifndef ANNULUS_TESTS_BATCH_BATCH_CASE_H_
#define ANNULUS_TESTS_BATCH_BATCH_CASE_H_

// Steps of batches as the program makes them (program/input/batch_step.h), checked by doctest.

#include <cstdint>
#include <string>
#include <vector>

#include "annulus/batch.h"
#include "program/input/batch_step.h"

namespace annulus::test {

using program::bounds_of;
using program::Placing;
using program::Request;
using Answer = program::RequestAnswer;

class BatchCase : public program::BatchStep {
 public:
  using BatchStep::answers;
  using BatchStep::BatchStep;
  // Checks that no row of nobody was written.
  std::vector<Answer> answers() const;
};

// The device that the tests of a binary share.
const Device& device();

// Causal, `heads` query heads on 2 of K and V, head dim 64, bf16, pages of 16 rows and LSE, for
// these requests exactly.
BatchProblem problem_for(const std::vector<Request>& requests, std::int64_t heads);
// Parts of 128 keys, so that short requests have several.
BatchOptions in_parts();

// Where the pattern lets no query of a request see a key of a page, the page's entry becomes none:
// an engine has given the page to somebody else.
void lose_unseen_pages(const BatchCase& step, const BatchProblem& problem,
                       const std::vector<Request>& requests);

// Holds each request's answer against the oracle: what is wrong first, or nothing.
std::string first_wrong(const BatchProblem& problem, const std::vector<Request>& requests,
                        const std::vector<Answer>& answers);
// The same with doctest's checks. `what` is said where one fails.
void check_answers(const BatchProblem& problem, const std::vector<Request>& requests,
                   const std::vector<Answer>& answers, const std::string& what);

}  // namespace annulus::test

#endif  // ANNULUS_TESTS_BATCH_BATCH_CASE_H_
