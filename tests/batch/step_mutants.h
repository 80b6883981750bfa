#ifndef ANNULUS_TESTS_BATCH_STEP_MUTANTS_H_
#define ANNULUS_TESTS_BATCH_STEP_MUTANTS_H_

// Mutants of the kernels of batches. A step with a mutant must have a fault of the checked mode, or
// a wrong answer of some request.

#include <set>
#include <string>
#include <vector>

#include "batch/batch_case.h"
#include "support/mutant.h"

namespace annulus::test {

// The possible outcomes of a mistake. kWrong: an answer is wrong. kElsewhere: also, memory of no
// request or of other requests is accessed. kEarly: also, data are read before they arrive.
inline const std::set<std::string> kWrong = {"wrong answer"};
inline const std::set<std::string> kElsewhere = {"wrong answer", "uninitialised read",
                                                 "out of bounds", "global memory race"};
inline const std::set<std::string> kEarly = {"wrong answer", "shared memory race",
                                             "uninitialised read", "access to bytes in flight"};

// Runs the step with each of the mutants on a simulated device. Does nothing without NVRTC or a
// simulator. There is a row that belongs to no request before the first request, and one after the
// last.
void try_steps(const std::vector<Mutant>& mutants, const std::string& device,
               const BatchProblem& problem, const BatchOptions& options,
               const std::vector<Request>& requests);

}  // namespace annulus::test

#endif  // ANNULUS_TESTS_BATCH_STEP_MUTANTS_H_
