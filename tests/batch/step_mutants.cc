#include "batch/step_mutants.h"

#include <doctest/doctest.h>

#include "support/device.h"
#include "support/nvrtc.h"

namespace annulus::test {

void try_steps(const std::vector<Mutant>& mutants, const std::string& device,
               const BatchProblem& problem, const BatchOptions& options,
               const std::vector<Request>& requests) {
  if (!on_simulator() || !nvrtc()) return;
  MutantRun run;
  run.device = device;
  run.seeds = 2;
  for (const Mutant& mutant : to_try(mutants)) {
    CAPTURE(mutant.name);
    try_mutant(mutant, run, [&](const Device& on) {
      const BatchPlan plan = plan_batch(on, problem, options);
      const BatchCase step(on, plan, requests,
                           {.listed = true, .own_tables = true, .gap = 1, .seed = 3});
      step.run();
      bool untouched = true;
      const std::vector<Answer> answers = step.answers(&untouched);
      return untouched && first_wrong(problem, requests, answers).empty();
    });
  }
}

}  // namespace annulus::test
