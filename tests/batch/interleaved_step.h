#ifndef ANNULUS_TESTS_BATCH_INTERLEAVED_STEP_H_
#define ANNULUS_TESTS_BATCH_INTERLEAVED_STEP_H_

// A step of a batch on all ranks between which its keys are interleaved, one after the other on one
// device, each with a plan and a cache of its own.

#include <memory>
#include <string>
#include <vector>

#include "batch/batch_case.h"

namespace annulus::test {

class InterleavedStep {
 public:
  // `problem` is that of every rank but for the rank's number, and asks for LSE.
  InterleavedStep(const Device& device, const BatchProblem& problem, const BatchOptions& options,
                  const std::vector<Request>& requests, const Placing& placing);

  // What a rank has found over its own keys.
  std::vector<Answer> of_rank(int rank) const;
  // Merges what all have found, in the order of the ranks, and holds it against the oracle: what is
  // wrong first, or nothing. Called once.
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
