#ifndef ANNULUS_TESTS_BATCH_INTERLEAVED_STEP_H_
#define ANNULUS_TESTS_BATCH_INTERLEAVED_STEP_H_

// A step of a batch on all ranks between which its keys are interleaved. The ranks run one after
// another on one device. Each has a separate plan and a separate cache.

#include <memory>
#include <string>
#include <vector>

#include "batch/batch_case.h"

namespace annulus::test {

class InterleavedStep {
 public:
  // `problem` is the problem of every rank, except for the rank's number. It requests LSE.
  InterleavedStep(const Device& device, const BatchProblem& problem, const BatchOptions& options,
                  const std::vector<Request>& requests, const Placing& placing);

  // The answers of a rank over its own keys.
  std::vector<Answer> of_rank(int rank) const;
  // Merges the answers of all ranks in the order of the ranks, and compares the result with the
  // oracle. Returns the first error, or "". May be called once.
  std::string first_wrong();
  // The first rule that a request of some rank breaks.
  BatchRule broken_rule() const;

 private:
  Device device_;
  BatchProblem problem_;
  std::vector<Request> requests_;
  std::vector<BatchPlan> plans_;
  std::vector<std::unique_ptr<BatchCase>> steps_;
};

}  // namespace annulus::test

#endif  // ANNULUS_TESTS_BATCH_INTERLEAVED_STEP_H_
