#ifndef ANNULUS_TESTS_BATCH_BATCH_CASE_H_
#define ANNULUS_TESTS_BATCH_BATCH_CASE_H_

// Steps of batches as in the program (program/input/batch_step.h), with doctest checks.

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
  // Also checks that no row outside the requests was written.
  std::vector<Answer> answers() const;
};

// The device that the tests of a program share.
const Device& device();

// A problem with the exact bounds of these requests: causal, `heads` query heads on 2 heads of K
// and V, head dim 64, bf16, pages of 16 rows, and LSE.
BatchProblem problem_for(const std::vector<Request>& requests, std::int64_t heads);
// Options with parts of 128 keys, so that short requests have several parts.
BatchOptions in_parts();

// Replaces the entry of each page by an invalid one if the pattern hides all keys of the page. An
// engine may have given such a page to another request.
void lose_unseen_pages(const BatchCase& step, const BatchProblem& problem,
                       const std::vector<Request>& requests);

// Compares each request's answer with the oracle. Returns the first error, or "".
std::string first_wrong(const BatchProblem& problem, const std::vector<Request>& requests,
                        const std::vector<Answer>& answers);
// The same comparison with doctest's checks. `what` is printed if a check fails.
void check_answers(const BatchProblem& problem, const std::vector<Request>& requests,
                   const std::vector<Answer>& answers, const std::string& what);

}  // namespace annulus::test

#endif  // ANNULUS_TESTS_BATCH_BATCH_CASE_H_
