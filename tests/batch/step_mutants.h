#ifndef ANNULUS_TESTS_BATCH_STEP_MUTANTS_H_
#define ANNULUS_TESTS_BATCH_STEP_MUTANTS_H_

// Mutants of the kernels of batches: a step with each of them has a fault of the checked mode, or a
// wrong answer of some request.

#include <set>
#include <string>
#include <vector>

#include "batch/batch_case.h"
#include "support/mutant.h"

namespace annulus::test {

// What a mistake may come out as: an answer is wrong; memory of nobody, or of others, is read as
// well; something is read before it is there.
inline const std::set<std::string> kWrong = {"wrong answer"};
inline const std::set<std::string> kElsewhere = {"wrong answer", "uninitialised read",
                                                 "out of bounds", "global memory race"};
inline const std::set<std::string> kEarly = {"wrong answer", "shared memory race",
                                             "uninitialised read", "access to bytes in flight"};

// Runs the step with each of them on a simulated device; without NVRTC or a simulator nothing. A
// row of nobody lies in front of the first request and one behind the last.
void try_steps(const std::vector<Mutant>& mutants, const std::string& device,
               const BatchProblem& problem, const BatchOptions& options,
               const std::vector<Request>& requests);

}  // namespace annulus::test

#endif  // ANNULUS_TESTS_BATCH_STEP_MUTANTS_H_
