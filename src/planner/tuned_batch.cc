#include "planner/tuned_batch.h"

#include <algorithm>

#include "autotune/batch_key.h"
#include "batch/batch_choice.h"
#include "planner/choices.h"

namespace annulus::planner {

TunedBatch tuned_batch(const BatchProblem& problem, const BatchOptions& options,
                       const attention::DeviceLimits& limits, autotune::TunedStore& tuned) {
  TunedBatch made{options, {}, {}};
  if (tuned.empty()) return made;
  const attention::Dims dims = {problem.dim_qk, problem.dim_v};
  const auto named = batch::named_configs(options.config, dims);
  for (const batch::RequestClass requests : autotune::classes_within(problem)) {
    if (std::ranges::any_of(named, [&](const attention::KernelConfig& config) {
          return batch::kernel_of(config).requests == requests;
        })) {
      continue;
    }
    auto found = tuned.find(autotune::shape_key(problem, requests));
    if (!found || batch::why_not(found->entry.config, problem) ||
        batch::why_not(found->entry.config, dims, limits)) {
      continue;
    }
    const auto append = [](std::string* to, const std::string& text) {
      if (!to->empty()) *to += ", ";
      *to += text;
    };
    append(&made.options.config, attention::to_string(found->entry.config));
    append(&made.origins, origin_of(*found));
    made.found.push_back(std::move(*found));
  }
  return made;
}

}  // namespace annulus::planner
